// Discovers the handlers that the files in a folder export.
import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { discover } from "../../src/ready/discovery/discovery.ts";
import { withFolder } from "../support/folder.ts";
import { sentence } from "../support/messages.ts";
import { testProcesses, withFiles } from "../support/command_line.ts";
import { root, run } from "../support/processes.ts";
import { handlerFiles } from "./handler_files.ts";

Deno.test("exported handlers are found in the order of their files' paths, each handler once", async () => {
  await withFolder(handlerFiles, async (folder) => {
    const toNames = async (options = {}) =>
      (await discover(new URL(`file://${folder}`), options)).map(({ name }) => name);
    assertEquals(await toNames(), ["a", "b"]);
    assertEquals(await toNames({ recursive: true }), ["a", "b", "c"]);
  });
});

Deno.test("a folder or a file without handlers is an error that names the path", async () => {
  await withFolder(
    { "x/none.ts": "export const one = 1;", "y/broken.ts": "throw new Error('broken')", "z/_a.ts": "" },
    async (folder) => {
      const findMessage = async (url: URL) =>
        (await assertRejects(() => discover(url), Error)).message.replaceAll(folder, "");
      assertEquals(await findMessage(new URL(`file://${folder}/x/`)), sentence("/x/none.ts"));
      assertEquals(await findMessage(new URL(`file://${folder}/y/`)), "broken");
      // Compare the message without the runtime's error at its end.
      assertEquals((await findMessage(new URL(`file://${folder}/none/`))).split(":")[0], sentence("/none/"));
      assertEquals(
        await findMessage(new URL("https://example.com/")),
        sentence("./handlers/", "https://example.com/", "import.meta.url"),
      );
    },
  );
});

// Handlers in an executable that Bun has compiled, which contains only the files that the build command names.

const compiledFiles = {
  "handlers/greet.ts":
    `import { tool } from "@x/mcp";\nexport const greet = tool({ name: "greet", run: () => "Hi!" });`,
  "double.ts":
    `import { exposeWorker } from "${root}src/ready/worker/worker.ts";\nexport default exposeWorker((n: number) => 2 * n);`,
  "discover.ts": `import { discover } from "${root}src/ready/discovery/discovery.ts";
const handlers = await discover(new URL("./handlers/", import.meta.url)).catch(({ message }) => ({ message }));
console.log(JSON.stringify(handlers));`,
  "worker.ts": `import { worker } from "${root}src/ready/worker/worker.ts";
try {
  const run = worker(new URL("./double.ts", import.meta.url));
  console.log(await run(21, { signal: new AbortController().signal, client: {}, log: {} }));
  process.exit();
} catch (error) { console.log(error.message); }`,
};

testProcesses(
  "bun: discover and worker work in an executable that contains their files, and their errors explain a missing file",
  async () => {
    await withFiles(compiledFiles, async (cwd) => {
      const compile = async (...entries: string[]) => {
        const made = await run(["bun", "build", "--compile", ...entries, "--outfile", "made"], { cwd });
        assertEquals(made.code, 0, made.stderr);
        return (await run([`${cwd}/made`], { cwd: "/" })).stdout;
      };
      assertStringIncludes(await compile("discover.ts", "handlers/greet.ts"), '"name":"greet"');
      assertStringIncludes(await compile("discover.ts"), sentence("bun build --compile server.ts handlers/*.ts"));
      assertEquals(await compile("worker.ts", "double.ts"), "42\n");
      assertStringIncludes(await compile("worker.ts"), sentence("double.ts"));
    });
  },
);
