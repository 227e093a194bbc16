// Writes the files to publish into a folder. Run `deno task publish:prepare FOLDER`, and then `deno publish` in the
// folder.
import { readRepository, toPackageReadme } from "./repository.ts";

/**
 * Paths that are in the published folders, but that only the project itself uses. The inspector page is published as a
 * bundle.
 */
const LEFT_OUT = ["src/cli/inspector/browser"];

interface Config {
  readonly imports: Readonly<Record<string, string>>;
  readonly publish: { readonly include: readonly string[] };
}

/** Returns the files at a path: the file itself, or all files in the folder. */
async function listFiles(root: string, path: string): Promise<readonly string[]> {
  if (LEFT_OUT.includes(path)) return [];
  if ((await Deno.stat(root + path)).isFile) return [path];
  const entries = await Array.fromAsync(Deno.readDir(root + path));
  return (await Promise.all(entries.map(({ name }) => listFiles(root, `${path}/${name}`)))).flat().sort();
}

/** Returns the entries of the import map that the sources import. The other entries are for tests. */
function selectImports(imports: Config["imports"], sources: readonly string[]): Record<string, string> {
  const used = Object.entries(imports).filter(([name]) =>
    sources.some((source) => source.includes(`from "${name}"`) || source.includes(`import("${name}")`))
  );
  const ofTests = used.find(([, target]) => !/^npm:(?!deno-std@)/.test(target));
  if (!ofTests) return Object.fromEntries(used);
  throw new Error(
    `Cannot prepare the package: it imports ${ofTests[0]}, which is only for tests; import an npm package`,
  );
}

/** Copies the package in the folder `root`, which ends with a slash, into `folder`, which must be empty or missing. */
export async function preparePackage(root: string, folder: string): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  for await (const { name } of Deno.readDir(folder)) {
    throw new Error(`Cannot write into ${folder}: it contains ${name}; name an empty folder`);
  }
  const {
    imports,
    tasks: _tasks,
    fmt: _fmt,
    lint: _lint,
    exclude: _exclude,
    nodeModulesDir: _,
    workspace: __,
    ...kept
  } = JSON.parse(
    await Deno.readTextFile(`${root}deno.json`),
  );
  const { publish }: Config = { imports, ...kept };
  const paths = (await Promise.all(publish.include.map((path) => listFiles(root, path)))).flat();
  const sources: string[] = [];
  for (const path of paths) {
    await Deno.mkdir(`${folder}/${path}`.replace(/\/[^/]*$/, ""), { recursive: true });
    await Deno.copyFile(root + path, `${folder}/${path}`);
    if (path.endsWith(".ts")) sources.push(await Deno.readTextFile(root + path));
  }
  const readme = await Deno.readTextFile(`${root}README.md`);
  await Deno.writeTextFile(`${folder}/README.md`, toPackageReadme(readme, await readRepository(root)));
  const config = { ...kept, imports: selectImports(imports, sources) };
  await Deno.writeTextFile(`${folder}/deno.json`, JSON.stringify(config, null, 2) + "\n");
}

if (import.meta.main) {
  const [folder, extra] = Deno.args;
  if (!folder || extra !== undefined) {
    console.error("Cannot prepare the package: name one folder to write, such as /tmp/package");
    Deno.exit(2);
  }
  await preparePackage(new URL("../../", import.meta.url).pathname, folder);
  console.error(`Wrote the package. To publish it, run \`deno publish\` in ${folder}.`);
}
