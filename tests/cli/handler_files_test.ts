// Servers made from the handlers in all files that match a pattern. `discover` loads the same files.
import { assertEquals, assertRejects } from "@std/assert";
import { load } from "../../src/cli/load.ts";
import { sentence } from "../support/messages.ts";
import { withFolder } from "./folder.ts";

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

Deno.test("a pattern serves the handlers of the matching files, and each handler is served once", async () => {
  await withFolder(files, async (folder) => {
    for (const pattern of ["{a,b}.ts", "*.ts", "*", "{*,*/*}.ts", "{*,_*,.*}.ts", "**/*.ts"]) {
      const { server } = await load(`${folder}/${pattern}`);
      const names = server.handlers.list().map(({ name }) => name);
      assertEquals(names, pattern.includes("/") ? ["a", "b", "c"] : ["a", "b"], pattern);
      await server.close();
    }
  });
});

Deno.test("a pattern without handlers is an error that names the pattern", async () => {
  await withFolder(
    { "x/none.ts": "export const one = 1;", "z/_a.ts": "" },
    async (folder) => {
      for (
        const [pattern, name] of [
          ["x/*.ts", "/x/none.ts"],
          ["w/*.ts", "/w/*.ts"],
          ["z/*.ts", "/z/*.ts: z/_a.ts"],
          ["x/*.js", "/x/*.js"],
        ]
      ) {
        await assertRejects(() => load(`${folder}/${pattern}`), Error, sentence(folder + name));
      }
    },
  );
});
