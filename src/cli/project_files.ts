/**
 * Finds the files that configure a project, and whether they map the name `@x/mcp` to this library.
 */
import { NAME } from "./version.ts";
import { joinPath, toFolder } from "../ready/files/path.ts";
import { platform } from "./platform.ts";
import type { Params } from "../client/client.ts";
import { isObject, parseJson } from "../core/kit/json.ts";
import { importModule } from "./lazy_modules.ts";

/** Maximum number of bytes to read from a file. */
const MAX_BYTES = 1024 * 1024;

/** Finds the nearest file with one of the names whose text passes `test`, in a folder and its parent folders. */
export async function findProjectFile(
  start: string,
  { names, test }: { readonly names: readonly string[]; readonly test: (text: string) => boolean },
): Promise<{ readonly path: string; readonly text: string } | undefined> {
  for (let folder = start;; folder = toFolder(folder)) {
    for (const path of names.map((name) => joinPath(folder, name))) {
      const text = await readFile(path).catch(() => undefined);
      if (text !== undefined && test(text)) return { path, text };
    }
    if (toFolder(folder) === folder) return;
  }
}

/** Returns the text of a file, or `undefined` without the file or the permission to read it. */
export async function readFile(path: string): Promise<string | undefined> {
  // Check the read permission, because Deno would otherwise prompt for each folder.
  if (!platform.mayRead(path) || await platform.findKind(path) !== "file") return;
  return new TextDecoder().decode(await platform.files.read(path, MAX_BYTES));
}

/** Reads the nearest project file. Returns an empty object if no project file exists. */
export async function readProject(folder: string): Promise<Params> {
  const names = ["package.json", "deno.json", "deno.jsonc"];
  const found = await findProjectFile(folder, { names, test: () => true });
  if (!found) return {};
  const isPackageJson = found.path.endsWith("/package.json");
  const value = isPackageJson ? parseJson(found.text) : (await loadParser()).readJsonc(found.text, found.path).value;
  return isObject(value) ? value : {};
}

/** The function tests whether the nearest `deno.json` or `package.json` maps a specifier. */
export async function findLibraryNames(): Promise<(specifier: string) => boolean> {
  const names = platform.runtime === "deno" ? ["deno.json", "deno.jsonc", "package.json"] : ["package.json"];
  const found = await findProjectFile(platform.toPath("."), { names, test: (text) => text.includes(`"${NAME}`) });
  if (!found) return () => false;
  const isPackageJson = found.path.endsWith("/package.json");
  const value = isPackageJson ? parseJson(found.text) : (await loadParser()).readJsonc(found.text, found.path).value;
  if (!isObject(value)) return () => false;
  if (isPackageJson) {
    const isInstalled = [value.dependencies, value.devDependencies].some((all) => isObject(all) && NAME in all);
    return () => isInstalled;
  }
  const imports: Params = isObject(value.imports) ? value.imports : {};
  // If the name is mapped to a package, Deno also resolves its sub-paths. If the name is mapped to a file, each
  // sub-path needs a separate entry.
  const isPackage = /^(jsr|npm):/.test(String(imports[NAME] ?? ""));
  return (specifier) => specifier in imports || isPackage || `${NAME}/` in imports && specifier !== NAME;
}

function loadParser(): Promise<typeof import("./config/jsonc.ts")> {
  return importModule<typeof import("./config/jsonc.ts")>("./config/jsonc.ts");
}
