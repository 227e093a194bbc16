/**
 * Finds the local files that a file imports. Deno must be allowed to read them, because the file is not its main module.
 *
 * @module
 */
import { isObject } from "../../kit/json.ts";
import { toEntry, toOwnReads } from "../command.ts";
import { runProgram } from "../config/program_run.ts";
import { toFilePath } from "../target_url.ts";
import { toFolder } from "../path.ts";
import { platform } from "../platform.ts";

const TIMEOUT_MS = 30_000;
const MAX_BYTES = 64 * 1024 * 1024;

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
  const limits = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES, signal: new AbortController().signal };
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
