/**
 * Imports a user's file, and explains why a file cannot be loaded.
 */
import { hasErrorCode } from "../core/kit/error_code.ts";
import { toPrintable } from "../core/kit/printable.ts";
import { CliError } from "./cli_error.ts";
import { importModule } from "./lazy_modules.ts";
import { platform } from "./platform.ts";
import { toFilePath } from "./target_url.ts";

/** Milliseconds after which the command prints that a file is still loading. */
const NOTICE_MS = 5000;

/** @throws {CliError} if the file cannot be loaded. */
export async function importDefault(target: string, url: string): Promise<unknown> {
  return await importFile(target, url, async (exports) => await exports.default);
}

/**
 * Number of stack frames of an error that occurs while a file is loaded. By default, V8 keeps only 10 frames, and the
 * frames of the library within groups and layers would displace the frames of the file.
 */
const FRAMES = 100;

const PACKAGES = "Check the packages that the file imports.";

function toRemedy(url: string): string {
  if (url.startsWith("file:")) return "Fix the file.";
  if (!/^https?:/i.test(url)) return "Check the name.";
  return "Name a file. To use a server that runs at this URL, use the call, inspect or doctor command.";
}

/** Returns the remedy for a URL. Node and Bun do not import URLs, and their errors name frames of the runtime. */
function findUrlRemedy(url: string): string | undefined {
  return /^https?:/i.test(url) && platform.runtime !== "deno" ? toRemedy(url) : undefined;
}

/** Explains an error about a file that Deno may not read. With the package from npm, Deno says that there is no file. */
async function findUnreadable(error: unknown, url: string): Promise<string | undefined> {
  if (!hasErrorCode(error) || error.code !== "ERR_MODULE_NOT_FOUND" || !url.startsWith("file:")) return;
  const path = toFilePath(url);
  if (platform.mayRead(path)) return;
  return (await importModule<typeof import("./permissions.ts")>("./permissions.ts")).explainUnreadable(path);
}

/**
 * Imports a file, and passes its exports to `read`.
 *
 * @throws {CliError} if the file cannot be loaded.
 */
export async function importFile<T>(
  target: string,
  url: string,
  // `read` is called within the `try` block, because a file may export a promise that rejects.
  read: (exports: Readonly<Record<string, unknown>>) => T | Promise<T>,
): Promise<T> {
  // Use a background timer: another timer would keep the process alive, so that Deno could not detect modules that wait
  // for each other.
  const stopNotice = platform.startBackgroundTimer(() => {
    console.error(
      toPrintable(
        `Waiting for ${target}: it has not finished loading; check the top-level await expressions in the file`,
      ),
    );
  }, NOTICE_MS);
  const kept: unknown = Reflect.get(Error, "stackTraceLimit");
  Reflect.set(Error, "stackTraceLimit", FRAMES);
  try {
    return await read(await import(url));
  } catch (error) {
    const { explainLoadError } = await importModule<typeof import("./load_error.ts")>("./load_error.ts");
    const { findModuleRemedy } = await importModule<typeof import("./module_type.ts")>("./module_type.ts");
    const { findImportRemedy } = await importModule<typeof import("./own_imports.ts")>("./own_imports.ts");
    const known = findUrlRemedy(url) ?? await findUnreadable(error, url) ??
      await findModuleRemedy(error, url).catch(() => undefined) ??
      await findImportRemedy(error).catch(() => undefined);
    throw new CliError(
      `Cannot load ${target}: ${explainLoadError(error, { known, file: toRemedy(url), packages: PACKAGES })}`,
    );
  } finally {
    Reflect.set(Error, "stackTraceLimit", kept);
    stopNotice();
  }
}
