/**
 * Writes the files of a new server, which import this library.
 */
import { toState } from "../core/kit/error_state.ts";
import { NAME } from "./version.ts";
import { toEntry } from "./command.ts";
import { findLibraryNames } from "./project_files.ts";
import { platform } from "./platform.ts";
import { explainPermission } from "./permissions.ts";
import { CliError } from "./cli_error.ts";

/** A sub-path of this library, such as `@x/mcp/auth`. */
type SubPath =
  | "apps"
  | "auth"
  | "client"
  | "client/oauth"
  | "oauth"
  | "oauth/proxy"
  | "openapi"
  | "search"
  | "testing";

/** Returns the specifier of this library, or of a sub-path. */
export type ToLibrary = (path?: SubPath) => string;

/** If the working directory's configuration does not map the library's name, specifiers point to this copy. */
export async function findLibrary(): Promise<ToLibrary> {
  const isMapped = await findLibraryNames();
  return (path) => {
    const name = path === undefined ? NAME : `${NAME}/${path}`;
    return isMapped(name) ? name : toOwnSpecifier(path);
  };
}

/** Returns the specifier of this copy of the library, or of one of its sub-paths. */
function toOwnSpecifier(path?: SubPath): string {
  const entry = toEntry();
  const library = entry.includes("/node_modules/") ? NAME : entry;
  if (path === undefined) return library;
  if (!library.endsWith("/mod.ts")) return `${library}/${path}`;
  const files = {
    apps: "extensions/apps/apps.ts",
    auth: "auth/auth.ts",
    client: "client/client.ts",
    "client/oauth": "client/oauth/oauth.ts",
    oauth: "auth/oauth/oauth.ts",
    "oauth/proxy": "auth/oauth/proxy/proxy.ts",
    openapi: "ready/openapi/openapi.ts",
    search: "ready/search/search.ts",
    testing: "testing/testing.ts",
  };
  return library.replace(/mod\.ts$/, `src/${files[path]}`);
}

/** Creates a folder, with its missing parents. */
export async function makeFolder(name: string): Promise<void> {
  try {
    await platform.files.makeFolder(platform.toPath(name));
  } catch (error) {
    throw createWriteError(name, error);
  }
}

/** @throws {CliError} if one of the files exists. */
export async function refuseExisting(names: readonly string[]): Promise<void> {
  const existing = await findExisting(names);
  if (existing !== undefined) throw new CliError(`Cannot write ${existing}: it already exists; choose another name`);
}

async function findExisting(names: readonly string[]): Promise<string | undefined> {
  for (const name of names) {
    try {
      // Use `lstat` to also detect broken symbolic links, because writing through a broken link would create the file
      // in another place.
      if (await platform.files.lstat(platform.toPath(name))) return name;
    } catch (error) {
      throw createWriteError(name, error);
    }
  }
}

/** Writes all files. If a file cannot be written, removes the files that the function has already written. */
export async function writeAll(files: readonly (readonly [name: string, text: string])[]): Promise<void> {
  const written: string[] = [];
  for (const [name, text] of files) {
    const path = platform.toPath(name);
    try {
      await platform.files.write(path, text, { isNew: true });
      written.push(path);
    } catch (error) {
      await Promise.all(written.map((each) => platform.files.remove(each).catch(() => {})));
      throw createWriteError(name, error);
    }
  }
}

function createWriteError(name: string, error: unknown): CliError {
  const message = error instanceof Error ? error.message : String(error);
  return new CliError(`Cannot write ${name}: ${explainPermission(message) ?? `${toState(message)}; check the folder`}`);
}
