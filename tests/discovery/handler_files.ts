// The files of a folder with handlers: files that are loaded, and files that are left out.

const toTool = (name: string) =>
  `import { tool } from "@x/mcp";\nexport const ${name} = tool({ name: "${name}", run: () => 1 });`;

export const handlerFiles: Readonly<Record<string, string>> = {
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
