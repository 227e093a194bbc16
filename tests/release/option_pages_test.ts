// Every public option is documented on a page, and its doc comment states its default.
import { assert, assertEquals } from "@std/assert";
import { readPages } from "./pages.ts";
import config from "../../deno.json" with { type: "json" };

const root = new URL("../../", import.meta.url);
const ignore = typeof Deno === "undefined"; // Only Deno runs these tests, because `deno doc` lists the options.

/** Pages for contributors, about the library's source code. */
const INNER = ["architecture", "decisions", "files"].map((name) => `docs/project/${name}.md`);

interface Property {
  readonly name: string;
  readonly optional: boolean;
  readonly tsType?: { readonly kind: string; readonly value?: unknown };
  readonly jsDoc?: { readonly doc?: string };
}

interface Option extends Property {
  /** The names of the type and the option. */
  readonly path: string;
}

async function listOptions(source: string): Promise<readonly Option[]> {
  const args = ["doc", "--json", source];
  const { stdout } = await new Deno.Command("deno", { args, cwd: root, stderr: "null" }).output();
  const { nodes } = JSON.parse(new TextDecoder().decode(stdout));
  const [{ symbols }] = Object.values<
    { symbols: { name: string; declarations: { def?: { properties?: Property[] } }[] }[] }
  >(nodes);
  return symbols.filter(({ name }) => name.endsWith("Options")).flatMap(({ name, declarations }) =>
    declarations.flatMap(({ def }) => def?.properties ?? []).map((each) => ({ ...each, path: `${name}.${each.name}` }))
  );
}

async function readUserPages(): Promise<string> {
  const pages = (await readPages()).filter(({ path }) => path === "README.md" || path.startsWith("docs/"));
  return pages.filter(({ path }) => !INNER.includes(path)).map(({ markdown }) => markdown).join("\n");
}

Deno.test({
  name: "every public option is on a page, and options that are numbers state their default",
  ignore,
  async fn() {
    const pages = await readUserPages();
    const options = (await Promise.all(Object.values(config.exports).map(listOptions))).flat();
    assert(options.length > 200, `${options.length} options`);
    // Matches the option in code: `name`, `name: …`, `{ name }` or `{ …, name }`.
    const isNamed = ({ name }: Option) => new RegExp(`\`${name}\\b|\\b${name}: |[{,] ${name}\\b`).test(pages);
    assertEquals(
      options.filter((option) => !isNamed(option)).map(({ path }) => path),
      [],
      "document these options on a page",
    );
    const isNumber = ({ tsType }: Option) => tsType?.kind === "keyword" && tsType.value === "number";
    const numbers = options.filter((option) => option.optional && isNumber(option));
    assert(numbers.length > 20, `${numbers.length} numbers`);
    const bare = numbers.filter(({ jsDoc }) => !/default|without/i.test(jsDoc?.doc ?? ""));
    assertEquals(
      bare.map(({ path }) => path),
      [],
      "state the default in the doc comment, or what happens without the option",
    );
  },
});
