/**
 * Imports a user's file, and explains why a file cannot be loaded.
 *
 * @module
 */
import { toPrintable } from "../kit/printable.ts";
import { CliError } from "./cli_error.ts";
import { importModule } from "./lazy_modules.ts";
import { platform } from "./platform.ts";

/** Milliseconds after which the command prints that a file is still loading. */
const NOTICE_MS = 5000;

/**
 * Imports the default export of a file.
 *
 * @throws {CliError} if the file cannot be loaded.
 */
export async function importDefault(target: string, url: string): Promise<unknown> {
  return await importFile(target, url, async (exports) => await exports.default);
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
  try {
    return await read(await import(url));
  } catch (error) {
    const remedy = /^https?:/i.test(url)
      ? "Name a file. To use a server that runs at this URL, use the call, inspect or doctor command."
      : url.startsWith("file:")
      ? "Fix the file."
      : "Check the name.";
    const { explainLoadError } = await importModule<typeof import("./load_error.ts")>("./load_error.ts");
    throw new CliError(`Cannot load ${target}: ${explainLoadError(error, remedy)}`);
  } finally {
    stopNotice();
  }
}
