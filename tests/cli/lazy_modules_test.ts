// CLI modules that are loaded lazily, by specifiers that are computed.
import { assert, assertEquals } from "@std/assert";
import { loadAll } from "../../src/cli/cli.ts";
import { platform } from "../../src/cli/platform.ts";
import { importModule } from "../../src/cli/lazy_modules.ts";
import { listSources } from "../support/sources.ts";

const root = decodeURIComponent(new URL("../../", import.meta.url).pathname);

async function readText(path: string): Promise<string> {
  return new TextDecoder().decode(await platform.files.read(`${root}src/cli/${path}`, 1_000_000));
}

Deno.test("loadAll loads every module in its list", async () => {
  await loadAll();
});

// Deno lists the sources.
Deno.test("the module graph of ./cli contains every lazy module, so that caching ./cli caches the whole CLI", {
  ignore: typeof Deno === "undefined",
}, async () => {
  const used = new Set<string>();
  for (const path of await listSources("src/cli/")) {
    if (path.endsWith("/lazy_modules.ts")) continue;
    const source = await readText(path.slice("src/cli/".length));
    const uses = [...source.matchAll(/importModule<typeof import\("([^"]+)"\)>\(\s*"([^"]+)"/g)];
    // The compiler cannot check that the type belongs to the path, so this test does.
    assertEquals(
      uses.length,
      [...source.matchAll(/\bimportModule\b(?! })/g)].length,
      `${path} loads a module without naming its type`,
    );
    for (const [, type, module] of uses) {
      assertEquals(new URL(type, `file:///${path}`).href, new URL(module, "file:///src/cli/").href, path);
      used.add(module);
    }
  }
  const named = [...(await readText("cli.ts")).matchAll(/import\("(\.\/\S+)"\)/g)].map(([, path]) => path);
  assert(used.size > 20, [...used].join(", "));
  assertEquals(named.sort(), [...used].sort());
});

Deno.test("a lazy module is loaded by its path", async () => {
  assertEquals(typeof (await importModule<typeof import("../../src/cli/demo.ts")>("./demo.ts")).demo, "function");
});

// Deno provides the graph.
Deno.test(
  "the module graph of the library contains no CLI module",
  { ignore: typeof Deno === "undefined" },
  async () => {
    const list = async (entry: string) => {
      const { stdout } = await new Deno.Command("deno", { args: ["info", "--json", root + entry] }).output();
      const { modules }: { modules: { specifier: string; local?: string }[] } = JSON.parse(
        new TextDecoder().decode(stdout),
      );
      return modules.map(({ specifier }) => specifier.replace(`file://${root}`, ""));
    };
    assertEquals((await list("mod.ts")).filter((path) => !/^(mod\.ts|src\/(?!cli\/))/.test(path)), []);
  },
);

Deno.test("only the modules that read config files, edit client files and pack bundles import packages", {
  ignore: typeof Deno === "undefined",
}, async () => {
  const users: string[] = [];
  const search = async (folder: string) => {
    for (const { name, isFile, isDirectory } of Deno.readDirSync(`${root}src/cli/${folder}`)) {
      if (isDirectory && name !== "config") await search(`${folder}${name}/`);
      if (!isFile || !name.endsWith(".ts")) continue;
      const source = await readText(`${folder}${name}`);
      if (/from "(zod|yaml|jsonc-parser|smol-toml|acorn|@std\/)/.test(source)) {
        users.push(folder + name);
      }
    }
  };
  await search("");
  assertEquals(users.sort(), [
    "install/jsonc_edit.ts",
    "install/toml_edit.ts",
    "install/yaml_edit.ts",
    "pack/foreign_code.ts",
  ]);
});

Deno.test("every package is pinned to an exact version", async () => {
  const bytes = await platform.files.read(`${root}deno.json`, 1_000_000);
  const { imports }: { imports: Record<string, string> } = JSON.parse(new TextDecoder().decode(bytes));
  const packages = Object.values(imports).filter((target) => !target.startsWith("./"));
  assertEquals(packages.filter((target) => !/^npm:\/?(@[^/]+\/)?[^@]+@\d+\.\d+\.\d+(\/|$)/.test(target)), []);
});
