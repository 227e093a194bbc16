// Writes the npm package into a folder. Run `deno task publish:npm FOLDER`, and then `npm publish` in the folder. The
// sources are bundled, because a runtime loads a few large files faster than many small files. The package contains no
// source maps, because the bundled code has the names and the structure of the sources.
import { rolldown } from "rolldown";
import config from "../../deno.json" with { type: "json" };
import { addUndefined } from "./optional_types.ts";
import { readRepository, toPackageReadme } from "./repository.ts";

/** Entries that the npm package does not export, because it provides the CLI as a program. */
const LEFT_OUT = ["./cli"];

/** The source of the CLI program. */
const PROGRAM = "src/cli/bin.ts";

/** The program of a child process, which must be next to the file that starts it. */
const CHILD = { name: "lib/ready/code/program_child", source: "src/ready/code/program_child.ts" };

/** Packages that only the CLI uses. They are bundled with the CLI, so that applications do not have to install them. */
const BUNDLED = /^(zod|yaml|smol-toml|jsonc-parser|acorn|@oxc-project\/runtime)(\/|$)/;

/**
 * Packages that are installed with the package, because the CLI needs them to sign in, to listen on Node and to read
 * OpenAPI documents, and runs in folders without a project. All other packages are optional peers.
 */
export const INSTALLED: readonly string[] = ["jose", "oauth4webapi", "srvx", "@scalar/openapi-upgrader"];

/**
 * Packages that are installed in exactly this version, because another version may read documents in another way, or
 * protect less.
 */
const PINNED = ["@scalar/openapi-upgrader", "quickjs-wasi"];

/** Optional packages that the library imports by a computed name. */
const COMPUTED = ["quickjs-wasi"];

/** The module that listens on Node, and its import of a package by a variable, which the npm package writes out. */
const NODE_LISTENER = {
  path: "src/core/node_listener.ts",
  variable: /import\(ADAPTER\)/,
  literal: 'import("srvx/node")',
};

/** Entries for programs without a server: a client, and the thread of a worker. */
const WITHOUT_SERVER = ["./client", "./worker"] as const;

/** The module that is loaded when the first session starts. */
const SESSIONS = "src/server/eras/legacy/legacy.ts";

/** The oldest Node versions that run TypeScript files without a flag. */
const NODE = ">=22.18";

/** The newest JavaScript that Node 22 supports. It does not include `using`. */
const TARGET = "es2024";

/** The published entries: keys such as `./auth`, with sources such as `./src/auth/auth.ts`. */
const ENTRIES = Object.entries(config.exports).filter(([key]) => !LEFT_OUT.includes(key));

/** Matches a call of `importModule` in the CLI. */
const LOADED = /importModule<typeof import\("[^"]+"\)>\(\s*"\.\/([^"]+)",?\s*\)/g;

/** Returns the file name of an entry, without its suffix. */
function toFileName(key: string): string {
  return key === "." ? "index" : key.slice("./".length);
}

/** Returns the name of the shared file that contains a module, or `null` if the bundler chooses the file. */
type ToChunk = (path: string) => string | null;

/** By path, the static imports of each module. */
type Graph = ReadonlyMap<string, readonly string[]>;

/** Returns a module's path, with the paths of all modules that it loads. */
function listLoaded(graph: Graph, path: string): ReadonlySet<string> {
  if (!graph.has(path)) throw new Error(`Cannot bundle ${path}: no entry imports it; correct its path`);
  const loaded = new Set([path]);
  for (const each of loaded) for (const next of graph.get(each) ?? []) loaded.add(next);
  return loaded;
}

/**
 * Returns a function that decides which file of the bundle contains a module. `null` leaves the decision to the
 * bundler, which makes a file for each set of `roots` (entries and dynamic imports) that load a module. Loading another
 * file costs more than loading unused code, so some sets share a file: all modules that the main entry loads, and the
 * modules that stdio and sessions share with other roots. Each of these two sets is split into two files, of which
 * entries without a server load only one.
 */
function createChunks(graph: Graph, root: string, roots: ReadonlySet<string>): ToChunk {
  const toLoaded = (source: string) => listLoaded(graph, root + source.replace(/^\.\//, ""));
  const main = toLoaded(config.exports["."]);
  const withoutServer = WITHOUT_SERVER.map((key) => toLoaded(config.exports[key]));
  const links = [config.exports["./stdio"], SESSIONS].map(toLoaded);
  const users = new Map<string, number>();
  for (const each of roots) for (const path of listLoaded(graph, each)) users.set(path, (users.get(path) ?? 0) + 1);
  return (path) => {
    const isWithoutServer = withoutServer.some((modules) => modules.has(path));
    if (main.has(path)) return isWithoutServer ? "shared" : "server";
    const isShared = !roots.has(path) && (users.get(path) ?? 0) > 1;
    if (!isShared || !links.some((modules) => modules.has(path))) return null;
    return isWithoutServer ? "shared_links" : "links";
  };
}

/** A file of the bundle that is not an entry. */
interface Chunk {
  /** The name that the bundler made from a module. */
  readonly name: string;
  /** The entry or dynamic import for which the bundler made the chunk. */
  readonly facadeModuleId: string | null;
  /** The paths of the modules in the chunk, in the order in which they run. */
  readonly moduleIds: readonly string[];
}

/**
 * Returns the name of a chunk, without its suffix: the name that `toChunk` returns, the name of a package, or the path of
 * the last module in `src`. Stack traces contain these names. A chunk without modules, whose name ends with `.exports`,
 * exports the modules of another chunk for a dynamic import.
 */
function toChunkName({ name, facadeModuleId, moduleIds }: Chunk, root: string, toChunk: ToChunk): string {
  const path = moduleIds.at(-1) ?? facadeModuleId ?? name;
  const shared = toChunk(path);
  if (shared !== null) return moduleIds.length ? shared : `${shared}.exports`;
  const [, inPackage] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path) ?? [];
  if (inPackage) return `packages/${inPackage}`;
  if (!path.startsWith(`${root}src/`)) return name;
  const source = path.slice(`${root}src/`.length).replace(/\.ts$/, "");
  return moduleIds.length ? source : `${source}.exports`;
}

/**
 * Bundles the entries of the project in the folder `root`, which ends with a slash, into `folder`: one file per entry,
 * such as `index.js` and `auth.js`, and in `lib` the files that several entries share, with names such as
 * `lib/server.js`. Returns the names of the imported packages.
 */
export async function bundleEntries(root: string, folder: string): Promise<readonly string[]> {
  let toChunk: ToChunk = () => null;
  const bundle = await rolldown({
    cwd: root,
    input: {
      ...Object.fromEntries(ENTRIES.map(([key, source]) => [toFileName(key), source])),
      bin: PROGRAM,
      [CHILD.name]: CHILD.source,
    },
    external: (name) => /^[^./]/.test(name) && !BUNDLED.test(name),
    platform: "neutral",
    resolve: { mainFields: ["module", "main"] },
    tsconfig: false,
    // The CLI is started by its own file, so no module of the bundle is the main module.
    transform: { target: TARGET, define: { "import.meta.main": "false" } },
    preserveEntrySignatures: "allow-extension",
    plugins: [{
      name: "commands",
      // Makes imports of CLI modules by computed specifiers static, so that the bundler finds the modules.
      transform(code, path) {
        if (path === root + NODE_LISTENER.path) {
          const { variable, literal } = NODE_LISTENER;
          if (!variable.test(code)) {
            throw new Error(`Cannot bundle ${path}: it lacks ${variable}; correct NODE_LISTENER`);
          }
          return { code: code.replace(variable, literal), map: null };
        }
        if (!path.startsWith(`${root}src/cli/`)) return;
        const replaced = code.replace(LOADED, (call: string, name: string) => {
          // The number of lines does not change, so the source map stays correct.
          const breaks = call.replaceAll(/[^\n]/g, "");
          return `import(${JSON.stringify(`${root}src/cli/${name}`)}${breaks})`;
        });
        return { code: replaced, map: null };
      },
    }, {
      name: "chunks",
      buildEnd() {
        const modules = [...this.getModuleIds()].flatMap((path) => this.getModuleInfo(path) ?? []);
        const roots = modules.flatMap(({ id, isEntry, dynamicallyImportedIds }) => [
          ...isEntry ? [id] : [],
          ...dynamicallyImportedIds,
        ]);
        const graph = new Map(modules.map(({ id, importedIds }) => [id, importedIds]));
        toChunk = createChunks(graph, root, new Set(roots));
      },
    }],
  });
  try {
    const { output } = await bundle.write({
      dir: folder,
      chunkFileNames: (chunk) => `lib/${toChunkName(chunk, root, toChunk)}.js`,
      comments: { jsdoc: false },
      codeSplitting: {
        includeDependenciesRecursively: false,
        groups: [{ debugName: "main", name: (path) => toChunk(path) }],
      },
    });
    const files = new Set(output.map(({ fileName }) => fileName));
    const imports = output.flatMap((file) => file.type === "chunk" ? [...file.imports, ...file.dynamicImports] : []);
    const packages = imports.filter((name) => !files.has(name) && !name.startsWith("node:"))
      .map((name) => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name);
    return [...new Set([...packages, ...COMPUTED])].sort();
  } finally {
    await bundle.close();
  }
}

/**
 * Writes the declarations of all modules that an entry's types refer to into `folder`, under the paths of the sources.
 */
async function writeTypes(root: string, folder: string): Promise<void> {
  const sources = ENTRIES.map(([, source]) => source.slice("./".length));
  const { success, stdout, stderr } = await new Deno.Command("deno", {
    args: [
      ...["run", "-A", "--quiet", `${config.imports.typescript}/tsc`, ...sources],
      // Do not check the types, because `deno task check` does.
      ...["--declaration", "--emitDeclarationOnly", "--noCheck", "--strict"],
      ...["--target", "esnext", "--lib", "esnext,dom,dom.iterable,dom.asynciterable"],
      ...["--module", "esnext", "--moduleResolution", "bundler", "--allowImportingTsExtensions"],
      ...["--rootDir", ".", "--outDir", folder],
    ],
    cwd: root,
  }).output();
  if (!success) {
    const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
    throw new Error(`Cannot write the declarations: ${text}`);
  }
  await adaptTypes(folder, await listDeclarations(folder, sources.map(toDeclaration)));
}

/** Returns the path of the declarations of a source file. */
function toDeclaration(source: string): string {
  return source.replace(/\.ts$/, ".d.ts");
}

/** Returns the paths of declaration files in `folder`, with the paths of all declaration files that they import. */
async function listDeclarations(folder: string, paths: readonly string[]): Promise<ReadonlySet<string>> {
  const found = new Set(paths);
  for (const path of found) {
    // Comments contain examples with imports.
    const text = (await Deno.readTextFile(`${folder}/${path}`)).replaceAll(/\/\*\*[^]*?\*\//g, "");
    for (const [, name] of text.matchAll(/\b(?:from |import |import\()"(\.[^"]+)"/g)) {
      found.add(toDeclaration(new URL(name, `file:///${path}`).pathname.slice(1)));
    }
  }
  return found;
}

/** Adds the types of `Disposable` and `AsyncDisposable`, which no target of the compiler before `esnext` contains. */
function addLib(source: string): string {
  return /\b(Async)?Disposable\b/.test(source) ? `/// <reference lib="esnext.disposable" />\n${source}` : source;
}

/**
 * Makes the declarations in a folder usable with `exactOptionalPropertyTypes`, and removes the files that are not in
 * `used`. `path` is empty, or the path of a subfolder that ends with a slash.
 */
async function adaptTypes(folder: string, used: ReadonlySet<string>, path = ""): Promise<void> {
  for await (const { name, isDirectory } of Deno.readDir(`${folder}/${path}`)) {
    const file = `${folder}/${path}${name}`;
    if (isDirectory) await adaptTypes(folder, used, `${path}${name}/`);
    else if (used.has(path + name)) await Deno.writeTextFile(file, addLib(addUndefined(await Deno.readTextFile(file))));
    else await Deno.remove(file);
  }
}

function toPackage(packages: readonly string[]): object {
  const versions: Readonly<Record<string, string>> = config.imports;
  const toRange = (name: string) => {
    const [, version] = /^npm:.+@(\d+\.\d+\.\d+)$/.exec(versions[name] ?? "") ?? [];
    if (version === undefined) {
      throw new Error(`Cannot depend on ${name}: deno.json imports no version of it; add it to "imports"`);
    }
    return PINNED.includes(name) ? version : `^${version}`;
  };
  const { name, version, license } = config;
  const peers = packages.filter((each) => !INSTALLED.includes(each));
  const exports = Object.fromEntries(ENTRIES.map(([key, source]) => [key, {
    types: `./types/${toDeclaration(source.slice("./".length))}`,
    default: `./${toFileName(key)}.js`,
  }]));
  return {
    name,
    version,
    license,
    type: "module",
    engines: { node: NODE },
    bin: { mcp: "./bin.js" },
    // A bundle for browsers can contain the code that listens, such as that of the sign-in, but not the modules of Node.
    browser: { "srvx/node": false },
    exports: { ...exports, "./package.json": "./package.json" },
    dependencies: Object.fromEntries(INSTALLED.map((each) => [each, toRange(each)])),
    peerDependencies: Object.fromEntries(peers.map((each) => [each, toRange(each)])),
    peerDependenciesMeta: Object.fromEntries(peers.map((each) => [each, { optional: true }])),
  };
}

/**
 * Writes the npm package of the project in the folder `root`, which ends with a slash, into `folder`, which must be
 * empty or missing.
 */
export async function buildNpmPackage(root: string, folder: string): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  for await (const { name } of Deno.readDir(folder)) {
    throw new Error(`Cannot write into ${folder}: it contains ${name}; name an empty folder`);
  }
  const packages = await bundleEntries(root, folder);
  await writeTypes(root, `${folder}/types`);
  await Deno.copyFile(`${root}LICENSE`, `${folder}/LICENSE`);
  const repository = await readRepository(root);
  const readme = await Deno.readTextFile(`${root}README.md`);
  await Deno.writeTextFile(`${folder}/README.md`, toPackageReadme(readme, repository));
  // npm requires the repository of a package that is published with provenance.
  const manifest = { ...toPackage(packages), ...repository && { repository: { type: "git", url: repository } } };
  await Deno.writeTextFile(`${folder}/package.json`, JSON.stringify(manifest, null, 2) + "\n");
}

if (import.meta.main) {
  const [folder, extra] = Deno.args;
  if (!folder || extra !== undefined) {
    console.error("Cannot write the npm package: name one folder to write, such as /tmp/package");
    Deno.exit(2);
  }
  await buildNpmPackage(new URL("../../", import.meta.url).pathname, new URL(folder, `file://${Deno.cwd()}/`).pathname);
  console.error(`Wrote the npm package. To publish it, run \`npm publish\` in ${folder}.`);
}
