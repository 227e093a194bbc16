// Handlers in an executable that Bun has compiled, which contains only the files that the build command names.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { testProcesses, withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { root, run } from "../support/processes.ts";

const files = {
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
    await withFiles(files, async (cwd) => {
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
