// The compiler's errors for the most frequent mistakes with extensions. One line names the missing or incorrect part.
import { assertEquals, assertStringIncludes } from "@std/assert";

const isDeno = navigator.userAgent.startsWith("Deno");
const root = new URL("../../", import.meta.url);

const method = (rest: string) =>
  `extension({ id: "a/b", methods: { "a/get": { params: z.object({ a: z.string() }), ${rest} } } })`;

/** Mistakes, each with a line of the compiler's error. */
const mistakes: readonly (readonly [code: string, line: string])[] = [
  [`extension({ settings: {} })`, "Property 'id' is missing in type '{ settings: {}; }' but required"],
  [method(`subject: "b", run: ({ a }) => ({ a })`), `Type '"b"' is not assignable to type '"a"'.`],
  [method(`run: ({ a }) => a`), "Type 'string' is not assignable to type 'Result | Promise<Result>'."],
  [method(`run: ({ b }) => ({ b })`), "Property 'b' does not exist on type '{ a: string; }'."],
  [method(""), "Property 'run' is missing in type"],
  [`extension({ id: "a/b", listen: { ids: { grant: () => true } } })`, "Property 'filter' is missing in type"],
  [
    `extension({ id: "a/b", listen: { ids: { filter: z.array(z.string()) } } }).publish("id", { method: "m" })`,
    `Argument of type '"id"' is not assignable to parameter of type '"ids"'.`,
  ],
  [
    `tool({ name: "a", use: [extension({ id: "a/b" })], run: () => "" })`,
    "Type 'Extension<never>' is not assignable to type 'UseItem",
  ],
  [
    `extension({ id: "a/b" }).layer({ around: (_call, next) => { next(); } })`,
    "Type 'void' is not assignable to type 'Result | Promise<Result>'.",
  ],
  [`clientExtension({ id: "a/b", results: { task: { finish: () => ({}) } } })`, "Property 'schema' is missing in type"],
];

Deno.test({
  name: "the compiler reports each mistake with an extension in one line",
  // Only Deno can type-check the code here.
  ignore: !isDeno,
  async fn() {
    const folder = await Deno.makeTempDir();
    try {
      const imports = [
        `import { extension, tool } from "${new URL("mod.ts", root).href}";`,
        `import { clientExtension } from "${new URL("src/client/client.ts", root).href}";`,
        `import { z } from "zod";`,
      ];
      const lines = mistakes.map(([code], at) => `export const x${at} = ${code};`);
      await Deno.writeTextFile(`${folder}/mistakes.ts`, [...imports, ...lines].join("\n"));
      const config = new URL("deno.json", root).pathname;
      const { success, stderr } = await new Deno.Command(Deno.execPath(), {
        args: ["check", "--quiet", "--config", config, `${folder}/mistakes.ts`],
        env: { NO_COLOR: "1" },
      }).output();
      const text = new TextDecoder().decode(stderr);
      assertEquals(success, false);
      for (const [, line] of mistakes) assertStringIncludes(text, line);
      assertEquals(text.match(/\[ERROR\]/g)?.length, mistakes.length, text);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
