// The parts of the command line that are loaded by computed specifiers.
import { assert, assertEquals } from "@std/assert";
import { loadAll } from "../../src/cli/cli.ts";
import { platform } from "../../src/cli/platform.ts";
import { importPart } from "../../src/cli/lazy_modules.ts";

const root = decodeURIComponent(new URL("../../", import.meta.url).pathname);

async function readText(path: string): Promise<string> {
  return new TextDecoder().decode(await platform.files.read(`${root}src/cli/${path}`, 1_000_000));
}

Deno.test("the graph of ./cli holds every part, so that a cache can hold all of the command line", async () => {
  await loadAll();
  const listed = [...(await readText("lazy_modules.ts")).matchAll(/readonly "(\.\/\S+)": typeof/g)].map(([, path]) => path);
  const named = [...(await readText("cli.ts")).matchAll(/import\("(\.\/\S+)"\)/g)].map(([, path]) => path);
  assert(listed.length > 20, listed.join(", "));
  assertEquals(named.sort(), listed.sort());
});

Deno.test("a part is loaded by its path", async () => {
  assertEquals(typeof (await importPart("./demo.ts")).demo, "function");
});

Deno.test({
  name: "no graph of modules leads from the library to the command line",
  ignore: typeof Deno === "undefined", // the graph comes from Deno
  async fn() {
    const list = async (entry: string) => {
      const { stdout } = await new Deno.Command("deno", { args: ["info", "--json", root + entry] }).output();
      const { modules }: { modules: { specifier: string; local?: string }[] } = JSON.parse(
        new TextDecoder().decode(stdout),
      );
      return modules.map(({ specifier }) => specifier.replace(`file://${root}`, ""));
    };
    assertEquals((await list("mod.ts")).filter((path) => !/^(mod\.ts|src\/(?!cli\/))/.test(path)), []);
  },
});

Deno.test({
  name: "the command line names no package outside of what reads config files",
  ignore: typeof Deno === "undefined",
  async fn() {
    const users: string[] = [];
    for (const name of Deno.readDirSync(`${root}src/cli`)) {
      if (name.isFile && /from "(zod|yaml|jsonc-parser|smol-toml|@std\/)/.test(await readText(name.name))) {
        users.push(name.name);
      }
    }
    assertEquals(users.sort(), ["jsonc_edit.ts", "toml_edit.ts", "yaml_edit.ts"]);
  },
});

Deno.test("every package has one exact version", async () => {
  const bytes = await platform.files.read(`${root}deno.json`, 1_000_000);
  const { imports }: { imports: Record<string, string> } = JSON.parse(new TextDecoder().decode(bytes));
  const packages = Object.values(imports).filter((target) => !target.startsWith("./"));
  assertEquals(packages.filter((target) => !/^npm:\/?(@[^/]+\/)?[^@]+@\d+\.\d+\.\d+(\/|$)/.test(target)), []);
});
