/**
 * Finds the `deno.json` whose import map a file needs.
 *
 * @module
 */
import { joinPath, toFolder } from "../path.ts";
import { platform } from "../platform.ts";
import { isObject } from "../../kit/json.ts";
import { toEntry, toOwnReads } from "../command.ts";
import { runProgram } from "../config/program_run.ts";
import { toFilePath } from "../target_url.ts";

const NAMES = ["deno.json", "deno.jsonc"];
/** The size up to which a file is searched, in bytes. */
const MAX_CONFIG_BYTES = 1024 * 1024;
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
  return MAPS_IMPORTS.test(new TextDecoder().decode(await platform.files.read(path, MAX_CONFIG_BYTES)));
}

/** The options of Deno that name the `deno.json` of a file with code. Empty on Bun, and if there is none. */
export async function toConfigFlags(file: string): Promise<readonly string[]> {
  const config = platform.runtime === "deno" ? await findDenoConfig(file) : undefined;
  return config === undefined ? [] : ["--config", config];
}

const TIMEOUT_MS = 30_000;
const MAX_REPORT_BYTES = 64 * 1024 * 1024;

/** What `deno info` needs to find its cache and the network. */
const VARIABLES = [
  "PATH",
  "HOME",
  "USERPROFILE",
  "LOCALAPPDATA",
  "XDG_CACHE_HOME",
  "TMPDIR",
  "TEMP",
  "DENO_DIR",
  "DENO_CERT",
  "DENO_AUTH_TOKENS",
  "DENO_TLS_CA_STORE",
  "NPM_CONFIG_REGISTRY",
  "JSR_URL",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "NO_PROXY",
];

/**
 * The paths of the files that a file with code imports by fixed names, directly or not, without this program itself.
 * Empty on Bun, which has no permissions, and if Deno cannot tell.
 */
export async function listLocalImports(path: string, configFlags: readonly string[]): Promise<readonly string[]> {
  if (platform.runtime !== "deno") return [];
  const env = Object.fromEntries(VARIABLES.flatMap((name) => {
    const value = platform.env(name);
    return value === undefined ? [] : [[name, value]];
  }));
  const words = [platform.execPath(), "info", "--json", "--no-lock", ...configFlags, path];
  const limits = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_REPORT_BYTES, signal: new AbortController().signal };
  try {
    const { stdout } = await runProgram(words, { cwd: toFolder(path), env }, limits);
    return readFiles(JSON.parse(stdout)).filter((file) => file !== path && !isOwn(file));
  } catch {
    return [];
  }
}

function readFiles(report: unknown): readonly string[] {
  const modules = isObject(report) && Array.isArray(report.modules) ? report.modules : [];
  return modules.flatMap((module: unknown) => {
    const specifier = isObject(module) ? module.specifier : undefined;
    return typeof specifier === "string" && specifier.startsWith("file:") ? [toFilePath(specifier)] : [];
  });
}

/** Whether a file belongs to this program, which every entry may read. */
function isOwn(file: string): boolean {
  return file === toEntry() || toOwnReads().some((folder) => file.startsWith(`${folder}/`));
}
