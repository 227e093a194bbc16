/**
 * Finds the files that Deno needs to run a file that is not its main module: the `deno.json` with its import map, and
 * the files that it imports.
 *
 * @module
 */
import { toFolder } from "../../files/path.ts";
import { platform } from "../platform.ts";
import { findProjectFile } from "../project_files.ts";
import { isObject } from "../../kit/json.ts";
import { toEntry, toOwnReads } from "../command.ts";
import { runProgram } from "../config/program_run.ts";
import { toFilePath } from "../target_url.ts";

const NAMES = ["deno.json", "deno.jsonc"];
/** The properties of `deno.json` by which names in imports are resolved. */
const MAPS_IMPORTS = /"(imports|importMap|workspace)"\s*:/;

/** Returns the Deno options for the `deno.json` of a file with code. Empty on Bun, and if there is no `deno.json`. */
export async function toConfigFlags(file: string): Promise<readonly string[]> {
  if (platform.runtime !== "deno") return [];
  // Find the file here: Deno does not look in the folder of this file, because the file is not its main module.
  const config = await findProjectFile(toFolder(file), { names: NAMES, test: (text) => MAPS_IMPORTS.test(text) });
  return config ? ["--config", config.path] : [];
}

const TIMEOUT_MS = 30_000;
const MAX_REPORT_BYTES = 64 * 1024 * 1024;

/** The environment variables by which `deno info` finds its cache and the network. */
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
 * Returns the paths of the files that a file with code imports by literal specifiers, directly or indirectly, without
 * the files of this program. Empty on Bun, which has no permissions, and if `deno info` fails.
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

/** Whether a file belongs to this program. All entries may read such files. */
function isOwn(file: string): boolean {
  return file === toEntry() || toOwnReads().some((folder) => file.startsWith(`${folder}/`));
}
