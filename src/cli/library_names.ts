/**
 * Whether the working directory gives this library the name `@x/mcp`, so that new files can import it by that name.
 *
 * @module
 */
import type { Params } from "../client/client.ts";
import { isObject } from "../kit/json.ts";
import { importModule } from "./lazy_modules.ts";
import { joinPath, toFolder } from "./path.ts";
import { platform } from "./platform.ts";

const NAME = "@x/mcp";
const MAX_BYTES = 1024 * 1024;

/** Finds out which names the nearest `deno.json` or `package.json` knows. The function tests a name. */
export async function findLibraryNames(): Promise<(specifier: string) => boolean> {
  const names = platform.runtime === "deno" ? ["deno.json", "deno.jsonc", "package.json"] : ["package.json"];
  for (let folder = platform.toPath(".");; folder = toFolder(folder)) {
    for (const name of names) {
      const text = await readFile(joinPath(folder, name));
      if (text?.includes(`"${NAME}`)) return await readNames(text, name);
    }
    if (toFolder(folder) === folder) return () => false;
  }
}

async function readNames(text: string, name: string): Promise<(specifier: string) => boolean> {
  const value = name === "package.json"
    ? parse(text)
    : (await importModule<typeof import("./config/jsonc.ts")>("./config/jsonc.ts")).readJsonc(text, name).value;
  if (!isObject(value)) return () => false;
  if (name === "package.json") {
    const isInstalled = [value.dependencies, value.devDependencies].some((all) => isObject(all) && NAME in all);
    return () => isInstalled;
  }
  const imports: Params = isObject(value.imports) ? value.imports : {};
  // Deno derives the sub-paths of a package. Those of a file need names of their own.
  const isPackage = /^(jsr|npm):/.test(String(imports[NAME] ?? ""));
  return (specifier) => specifier in imports || isPackage || `${NAME}/` in imports && specifier !== NAME;
}

// A project that has only this library has no parser for comments.
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return;
  }
}

async function readFile(path: string): Promise<string | undefined> {
  try {
    // Deno would prompt for each folder.
    if (!platform.mayRead(path) || (await platform.files.stat(path))?.kind !== "file") return;
    return new TextDecoder().decode(await platform.files.read(path, MAX_BYTES));
  } catch {
    return;
  }
}
