// Compiles the package to JavaScript, as the registry does for npm clients such as Bun. The files keep their paths,
// with another suffix, and their imports name npm packages.
import config from "../../deno.json" with { type: "json" };
import { rewriteImports } from "./registry.ts";
import { preparePackage } from "./prepare.ts";

async function listFiles(folder: string): Promise<readonly string[]> {
  const entries = await Array.fromAsync(Deno.readDir(folder));
  const found = entries.map(({ name, isDirectory }) =>
    isDirectory ? listFiles(`${folder}/${name}`) : [`${folder}/${name}`]
  );
  return (await Promise.all(found)).flat();
}

/** Returns the npm name of a package. For example, `npm:zod@4` is `zod` for npm clients. */
function toNpmName(target: string): string {
  return target.replace(/^npm:\/?(@?[^@]+)@[^/]*/, "$1");
}

/**
 * Compiles the package in the folder `root`, which ends with a slash, into `folder`. Intermediate files are written to
 * `sources`.
 */
export async function compilePackage(root: string, { sources, folder }: { sources: string; folder: string }) {
  await preparePackage(root, sources);
  const { name, version, exports, imports }: typeof config = JSON.parse(
    await Deno.readTextFile(`${sources}/deno.json`),
  );
  const files = (await listFiles(sources)).filter((path) => path.endsWith(".ts"));
  const { success, stderr } = await new Deno.Command("deno", {
    args: [
      ...["run", "-A", "--quiet", config.imports.esbuild, ...files],
      ...["--format=esm", "--target=esnext", `--outdir=${folder}`, `--outbase=${sources}`, "--log-level=error"],
    ],
    cwd: root,
  }).output();
  if (!success) throw new Error(`Cannot compile the package: ${new TextDecoder().decode(stderr)}`);
  const names = Object.fromEntries(Object.entries(imports).map(([name, target]) => [name, toNpmName(target)]));
  for (const path of await listFiles(folder)) {
    const source = rewriteImports(await Deno.readTextFile(path), names);
    const suffixed = source.replace(/(\bfrom\s*|\bimport\s*\(?\s*)"(\.[^"\n]*)\.ts"/g, '$1"$2.js"');
    await Deno.writeTextFile(path, suffixed);
  }
  const toScript = (path: string) => path.replace(/\.ts$/, ".js");
  const scripts = Object.fromEntries(Object.entries(exports).map(([name, path]) => [name, toScript(path)]));
  await Deno.writeTextFile(
    `${folder}/package.json`,
    JSON.stringify({ name, version, type: "module", exports: scripts }),
  );
}
