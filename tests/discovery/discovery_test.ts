// Discovers the handlers that the files in a folder export.
import { assertEquals, assertRejects } from "@std/assert";
import { discover } from "../../src/ready/discovery/discovery.ts";
import { withFolder } from "../support/folder.ts";
import { sentence } from "../support/messages.ts";

const toTool = (name: string) =>
  `import { tool } from "@x/mcp";\nexport const ${name} = tool({ name: "${name}", run: () => 1 });`;
const files = {
  "b.ts": toTool("b"),
  "a.ts": `${toTool("a")}\nexport default [a, a]; export const count = 1;`,
  "_shared.ts": "export const x = 1;",
  ".hidden.ts": toTool("hidden"),
  "a_test.ts": "throw new Error();",
  "types.d.ts": "",
  "notes.md": "no code",
  "sub folder/c%.ts": toTool("c"),
  "node_modules/d.ts": toTool("d"),
};

Deno.test("exported handlers are found in the order of their files' paths, each handler once", async () => {
  await withFolder(files, async (folder) => {
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
