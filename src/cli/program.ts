/**
 * The program of the npm package. `npx` and `bunx` store the package outside of the user's folder. A user's file could
 * therefore not import the package by name, unless the user has installed the package. The program resolves such
 * imports to its own copy of the package.
 */
import { findDeniedAccess } from "../core/kit/denied_access.ts";
import { CliError } from "./cli_error.ts";
import { main } from "./main.ts";
import { isInstalled, listEntries } from "./own_entries.ts";
import { bun } from "./runtime_globals.ts";
import { NAME } from "./version.ts";

function isOwn(specifier: string): boolean {
  return specifier === NAME || specifier.startsWith(`${NAME}/`);
}

async function resolveToSelf(): Promise<void> {
  if (isInstalled(process.cwd())) return;
  const entries = await listEntries();
  if (bun) {
    bun.plugin({
      name: "own-entries",
      setup(build) {
        // Use `build.module`, because Bun does not call `onResolve` for package names.
        for (const [name, file] of entries) {
          build.module(name, async () => ({ exports: await import(file), loader: "object" }));
        }
      },
    });
    return;
  }
  const files = new Map(entries);
  const { registerHooks } = process.getBuiltinModule("module");
  registerHooks({
    resolve(specifier, context, next) {
      const file = isOwn(specifier) ? files.get(specifier) : undefined;
      return file === undefined ? next(specifier, context) : { url: file, format: "module", shortCircuit: true };
    },
    // This hook changes nothing. But without a `load` hook, Deno resolves a file's imports before it calls `resolve`.
    load: (url, context, next) => next(url, context),
  });
}

/** @throws {CliError} if Deno may not read the package. */
async function prepare(): Promise<void> {
  try {
    await resolveToSelf();
  } catch (error) {
    if (!(error instanceof Error) || !findDeniedAccess(error.message)) throw error;
    const folder = decodeURIComponent(new URL(".", import.meta.url).pathname).replace(/(\/@x\/mcp)\/.*$/, "$1");
    throw new CliError(
      "Cannot start the CLI: Deno has no permission to read the files of the package; run the command again with -A, " +
        `or with --allow-read=${folder}`,
    );
  }
}

/** Runs the command line with the imports of the package resolved to this copy. */
export async function startProgram(): Promise<void> {
  await main(prepare);
}
