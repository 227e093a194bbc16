/**
 * Bundles a server file into one file for Node, with the bundler of the runtime, or with esbuild on Node.
 */
import { toState } from "../../core/kit/error_state.ts";
import { isObject } from "../../core/kit/json.ts";
import { toPrintable } from "../../core/kit/printable.ts";
import { CliError } from "../cli_error.ts";
import { toPlain } from "../client/terminal_text.ts";
import { isBundled } from "../command.ts";
import { isInstalled, listEntries } from "../own_entries.ts";
import { toBaseName, toFileHref, toFolder } from "../../ready/files/path.ts";
import { findPackageFolder } from "../package_folder.ts";
import { platform } from "../platform.ts";
import { findProjectFile } from "../project_files.ts";
import { bun, type BundlerPlugin } from "../runtime_globals.ts";
import { NAME, VERSION } from "../version.ts";
import type { Place } from "./foreign_code.ts";

interface Bundle {
  readonly code: string;
  readonly map: string;
}

/** Modules to leave out of the bundle, so that `pack` can report where the author's code imports them. */
const FOREIGN = ["bun", "bun:*", "jsr:*", "https:*", "http:*"];
/** Modules to leave out of the bundle on Deno, whose bundler can load packages from JSR and the web. */
const FOREIGN_ON_DENO = ["bun", "bun:*"];

/** Returns the specifier with which the bundle imports a file of this copy of the library. */
export function toOwnModule(entry: "library" | "stdio"): string {
  const names = { library: ["index", "library"], stdio: ["stdio", "server/transports/stdio/stdio"] }[entry];
  const url = isBundled
    ? new URL(`${names[0]}.js`, findPackageFolder())
    : new URL(`../../${names[1]}${import.meta.url.slice(-3)}`, import.meta.url);
  if (url.protocol === "file:") return decodeURIComponent(url.pathname).replace(/^\/(?=[a-z]:)/i, "");
  return `jsr:${NAME}@${VERSION}${entry === "stdio" ? "/stdio" : ""}`;
}

/**
 * Bundles the module `entry`, which imports the user's file. Imports in `entry` are resolved from the folder of the
 * file. Returns the code, and a function that maps a position in the code to a place in the author's files. The
 * function returns `undefined` for code by other authors.
 *
 * @throws {CliError} if there is no bundler, or if bundling fails.
 */
export async function bundleFile(
  target: string,
  { path, entry }: { readonly path: string; readonly entry: string },
): Promise<{ readonly code: string; readonly toPlace: (line: number, column: number) => Place | undefined }> {
  // Write the module to the folder of the file, because bundlers look up packages and configuration from there. The
  // name is the same in every run, because bundlers derive names in the output from this name.
  const folder = toFolder(path);
  const file = `${folder}/.${toBaseName(path)}.pack.mjs`;
  await platform.files.write(file, entry, { isNew: true }).catch((error) => {
    const remedy = "check the folder, and remove this file if a previous run left the file behind";
    throw new CliError(`Cannot write ${file}: ${toState(error)}; ${remedy}`);
  });
  try {
    const { code, map } = await bundlers[platform.runtime](file, target);
    return { code, toPlace: createPlaces(map, folder) };
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(`Cannot pack ${target}: its code cannot be bundled for Node\n${explain(error)}`);
  } finally {
    await platform.files.remove(file);
  }
}

const bundlers: Readonly<Record<typeof platform.runtime, (file: string, target: string) => Promise<Bundle>>> = {
  async deno(file) {
    const map = await toImportMap(file);
    const { execFile } = process.getBuiltinModule("child_process");
    const { readFile } = process.getBuiltinModule("fs/promises");
    const out = file.replace(/\.mjs$/, ".out.mjs");
    const externals = FOREIGN_ON_DENO.map((name) => `--external=${name}`);
    const flags = ["--quiet", "--platform=deno", "--minify", "--sourcemap=external", ...externals, `--output=${out}`];
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // Set `NO_COLOR`, because error messages contain the output.
    const options = { cwd: toFolder(file), env: { ...process.env, NO_COLOR: "1" } };
    execFile(platform.execPath(), ["bundle", ...flags, ...map, file], options, (error, _, stderr) => {
      if (error) {
        reject(stderr ? new Error(stderr.replace(/\n(?:error: bundling failed|Stack backtrace:)[^]*/, "")) : error);
      } else resolve();
    });
    try {
      await promise;
      return { code: await readFile(out, "utf8"), map: await readFile(`${out}.map`, "utf8") };
    } finally {
      await Promise.all([out, `${out}.map`].map((path) => platform.files.remove(path).catch(() => {})));
    }
  },

  async bun(file) {
    if (!bun) throw new Error("this is not Bun");
    const plugins = await createPlugins(file);
    const options = { target: "node", minify: true, sourcemap: "external", external: FOREIGN, plugins } as const;
    const { outputs } = await bun.build({ entrypoints: [file], ...options });
    const [code, map] = await Promise.all(
      ["entry-point", "sourcemap"].map((kind) => outputs.find((each) => each.kind === kind)?.text()),
    );
    if (code === undefined || map === undefined) throw new Error("the bundler wrote no file");
    return { code, map };
  },

  async node(file, target) {
    const esbuild = await loadEsbuild(file, target);
    const { outputFiles } = await esbuild.build({
      entryPoints: [file],
      outdir: toFolder(file),
      ...{ bundle: true, write: false, minify: true, format: "esm", platform: "node", target: "node22" },
      ...{ sourcemap: "external", external: FOREIGN, logLevel: "silent", plugins: await createPlugins(file) },
      // Define `require`, because CommonJS packages call `require` for Node's built-in modules.
      banner: {
        js: 'import { createRequire as toRequire } from "node:module";const require=toRequire(import.meta.url);',
      },
    });
    const map = outputFiles.find(({ path }) => path.endsWith(".map"))?.text;
    const code = outputFiles.find(({ path }) => !path.endsWith(".map"))?.text;
    if (code === undefined || map === undefined) throw new Error("the bundler wrote no file");
    return { code, map };
  },
};

/** The parts of esbuild that this file uses. */
interface Esbuild {
  build(
    options: object,
  ): Promise<{ readonly outputFiles: readonly { readonly path: string; readonly text: string }[] }>;
}

/** Loads esbuild from the project of a file. */
async function loadEsbuild(file: string, target: string): Promise<Esbuild> {
  const { createRequire } = process.getBuiltinModule("module");
  let path: string;
  try {
    path = createRequire(file).resolve("esbuild");
  } catch {
    throw new CliError(
      `Cannot pack ${target}: Node has no bundler, and esbuild is not installed; run npm install --save-dev esbuild, ` +
        `or run this command with bunx --bun or deno`,
    );
  }
  return (await import(toFileHref(path.replaceAll("\\", "/")))).default;
}

/** Returns this copy's entry points by name. Empty if the project has installed the package. */
async function findOwnEntries(file: string): Promise<ReadonlyMap<string, string>> {
  return new Map(isBundled && !isInstalled(toFolder(file)) ? await listEntries() : []);
}

/** The plugin resolves imports of this package to this copy. Empty if the project has installed the package. */
async function createPlugins(file: string): Promise<readonly BundlerPlugin[]> {
  const entries = await findOwnEntries(file);
  if (!entries.size) return [];
  return [{
    name: "own-entries",
    setup(build) {
      build.onResolve({ filter: new RegExp(`^${NAME}(/|$)`) }, ({ path }) => {
        const url = entries.get(path);
        return url === undefined ? undefined : { path: decodeURIComponent(new URL(url).pathname) };
      });
    },
  }];
}

/**
 * Returns the flag for an import map that, like the plugin, resolves imports of this package to this copy. Returns an
 * empty list if the project has its own configuration, because the flag would replace the project's import map.
 */
async function toImportMap(file: string): Promise<readonly string[]> {
  const isConfig = { names: ["deno.json", "deno.jsonc"], test: () => true };
  const entries = await findOwnEntries(file);
  if (!entries.size || await findProjectFile(toFolder(file), isConfig)) return [];
  return [
    `--import-map=data:application/json,${
      encodeURIComponent(JSON.stringify({ imports: Object.fromEntries(entries) }))
    }`,
  ];
}

/** Explains why a bundler failed. The explanation contains the position of each problem. */
function explain(error: unknown): string {
  const errors = isObject(error) && Array.isArray(error.errors) ? error.errors : [error];
  const text = errors.map((each) => {
    const { message, text, position, location } = Object(each);
    const place = toPlain(toPlaceText(position ?? location));
    return place + toPlain(message ?? text ?? each).trim();
  }).join("\n");
  const remedy = /\.node\b/.test(text)
    ? "A package with a native addon cannot be packed, because the addon is built for a single platform. Use " +
      "another package."
    : "Fix the file, and install the packages that it imports.";
  return toPrintable(`${text}\n${remedy}`);
}

function toPlaceText(position: unknown): string {
  return isObject(position) && position.file !== undefined
    ? `${position.file}:${position.line}:${position.column}: `
    : "";
}

/** Maps positions in the bundle to places in the author's files. Sources in `map` are relative to `folder`. */
function createPlaces(map: string, folder: string): (line: number, column: number) => Place | undefined {
  const { SourceMap } = process.getBuiltinModule("module");
  const payload = JSON.parse(map);
  const places = new SourceMap(payload);
  const base = `${toFileHref(folder)}/`;
  const { href: library } = isBundled ? findPackageFolder() : new URL("../../", import.meta.url);
  return (line, column) => {
    const entry = places.findEntry(line - 1, column);
    if (!("originalSource" in entry)) return;
    const { href } = new URL(entry.originalSource.replaceAll("\\", "/"), base);
    if (!href.startsWith("file:") || href.includes("/node_modules/") || href.startsWith(library)) return;
    const file = decodeURIComponent(new URL(href).pathname);
    return { file, line: entry.originalLine + 1, column: entry.originalColumn + 1 };
  };
}
