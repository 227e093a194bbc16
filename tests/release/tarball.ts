// The package as a tarball for node_modules: the files that `deno publish` would upload, as JavaScript, because that is
// what JSR hands to package managers. Bun does the transpiling and the packing.
import { listFiles, rewriteImports } from "./registry.ts";

interface Config {
  readonly name: string;
  readonly version: string;
  readonly exports: Record<string, string>;
  readonly imports: Record<string, string>;
}

async function runBun(args: readonly string[], cwd: string): Promise<void> {
  const { success, stderr } = await new Deno.Command("bun", { args: [...args], cwd }).output();
  if (!success) throw new Error(`Cannot run bun ${args.join(" ")}: ${new TextDecoder().decode(stderr)}`);
}

const TRANSPILE = `
const transpiler = new Bun.Transpiler({ loader: "ts", target: "bun" });
for (const path of Bun.argv.slice(2)) {
  const code = transpiler.transformSync(await Bun.file(path).text());
  const toScript = (all, lead, specifier) => lead + specifier.replace(/\\.ts"$/, '.js"');
  await Bun.write(path.replace(/\\.ts$/, ".js"), code.replace(/(\\bfrom |\\bimport ?\\(?)("\\.[^"]+")/g, toScript));
}`;

/** Packs the package whose deno.json lies in the folder `root` into the empty folder `into`; returns the tarball. */
export async function packPackage(root: string, into: string): Promise<string> {
  const { name, version, exports, imports }: Config = JSON.parse(await Deno.readTextFile(`${root}/deno.json`));
  const files = await listFiles(root);
  for (const file of files) {
    await Deno.mkdir(`${into}${file}`.replace(/\/[^/]*$/, ""), { recursive: true });
    const bytes = await Deno.readFile(root + file);
    // Package managers know packages by name, not by `npm:` specifier.
    const toName = (source: string) =>
      rewriteImports(source, imports).replace(/"npm:\/?((?:@[^@"/]+\/)?[^@"]+)[^"/]*/g, '"$1');
    await (file.endsWith(".ts")
      ? Deno.writeTextFile(into + file, toName(new TextDecoder().decode(bytes)))
      : Deno.writeFile(into + file, bytes));
  }
  const sources = files.filter((file) => file.endsWith(".ts")).map((file) => into + file);
  await Deno.writeTextFile(`${into}/transpile.js`, TRANSPILE);
  await runBun(["transpile.js", ...sources], into);
  for (const path of [...sources, `${into}/transpile.js`]) await Deno.remove(path);
  const scripts = Object.entries(exports).map(([key, path]) => [key, path.replace(/\.ts$/, ".js")]);
  const manifest = { name, version, type: "module", exports: Object.fromEntries(scripts) };
  await Deno.writeTextFile(`${into}/package.json`, JSON.stringify(manifest));
  const tarball = `${into}/package.tgz`;
  await runBun(["pm", "pack", "--quiet", "--filename", tarball], into);
  return tarball;
}
