/**
 * Finds the files that Deno needs to run a user's file that is not the main module: the `deno.json` with its import
 * map, and the files that the user's file imports.
 */
import { toFolder } from "../../ready/files/path.ts";
import { platform } from "../platform.ts";
import { findProjectFile } from "../project_files.ts";
import { isObject } from "../../core/kit/json.ts";
import { toEntry, toOwnReads } from "../command.ts";
import { runProgram } from "../config/program_run.ts";
import { toFilePath } from "../target_url.ts";

const NAMES = ["deno.json", "deno.jsonc"];
/** The properties of `deno.json` that map names in imports. */
const MAPS_IMPORTS = /"(imports|importMap|workspace)"\s*:/;

/** Selects the `deno.json` of a code file. Returns an empty list on Bun, or if there is no `deno.json`. */
export async function toConfigFlags(file: string): Promise<readonly string[]> {
  if (platform.runtime !== "deno") return [];
  // Find `deno.json` here: Deno does not search the folder of this file, because the file is not the main module.
  const config = await findProjectFile(toFolder(file), { names: NAMES, test: (text) => MAPS_IMPORTS.test(text) });
  return config ? ["--config", config.path] : [];
}

const TIMEOUT_MS = 30_000;
const MAX_REPORT_BYTES = 64 * 1024 * 1024;

/** Environment variables that `deno info` needs to find its cache and to connect to the network. */
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
 * Returns the paths of the files that a code file imports by literal specifiers, directly or indirectly, without the
 * files of this program. Returns an empty list on Bun, which has no permissions, or if `deno info` fails.
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

/** Whether a file belongs to this program. Every entry grants the permission to read such files. */
function isOwn(file: string): boolean {
  return file === toEntry() || toOwnReads().some((folder) => file.startsWith(`${folder}/`));
}
