/**
 * Finds the `deno.json` whose import map a file needs.
 *
 * @module
 */
import { joinPath, toFolder } from "../path.ts";
import { platform } from "../platform.ts";

const NAMES = ["deno.json", "deno.jsonc"];
/** The size up to which a file is searched, in bytes. */
const MAX_BYTES = 1024 * 1024;
/** The properties that tell Deno where the names in imports lead. */
const MAPS_IMPORTS = /"(imports|importMap|workspace)"\s*:/;

/**
 * Finds the nearest `deno.json` or `deno.jsonc` with imports, in the folder of a file or above it. Deno does not look
 * there by itself, because the file is not its main module.
 */
async function findDenoConfig(file: string): Promise<string | undefined> {
  for (let folder = toFolder(file);; folder = toFolder(folder)) {
    for (const name of NAMES) {
      const path = joinPath(folder, name);
      if (await mapsImports(path)) return path;
    }
    if (toFolder(folder) === folder) return;
  }
}

async function mapsImports(path: string): Promise<boolean> {
  // Deno would prompt for each folder.
  if (!platform.mayRead(path)) return false;
  if ((await platform.files.stat(path))?.kind !== "file") return false;
  return MAPS_IMPORTS.test(new TextDecoder().decode(await platform.files.read(path, MAX_BYTES)));
}

/** The options of Deno that name the `deno.json` of a file with code. Empty on Bun, and if there is none. */
export async function toConfigFlags(file: string): Promise<readonly string[]> {
  const config = platform.runtime === "deno" ? await findDenoConfig(file) : undefined;
  return config === undefined ? [] : ["--config", config];
}
