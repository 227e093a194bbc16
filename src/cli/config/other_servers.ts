/**
 * Makes the handlers of other servers, which a config file or the configuration of a client lists.
 */
import type { CommandTarget } from "../../client/client.ts";
import type { Handler } from "../../library.ts";
import { proxy } from "../../proxy/proxy.ts";
import { platform } from "../platform.ts";
import { createStoredAuth } from "../sign_in/sign_in_options.ts";
import { isAbsolute, joinPath } from "../../ready/files/path.ts";
import type { OtherServer } from "./schema.ts";

/** Functions and values that interpret the texts of an entry. */
export interface EntryTexts {
  /** Replaces the environment variables in a text. */
  readonly expand: (text: string) => string;
  /** Resolves the working directory of a program. */
  readonly resolveCwd: (path: string) => string;
}

export interface OtherServerParts extends EntryTexts {
  /** Whether the server is served over HTTP, where all clients belong to one user. */
  readonly isHttp: boolean;
  /** Path of the lock file, in which the name of the server is its key. */
  readonly lock?: string;
}

/** @throws {TypeError} if an option is invalid, or if there is no lock file. */
export function toProxy(name: string, entry: OtherServer, parts: OtherServerParts): Handler {
  const { prefix = `${name}_`, share = parts.isHttp ? "all" : undefined, tools, tags, timeoutMs, listMs } = entry;
  const { forward, instructions, required } = entry;
  const { lock } = parts;
  const options = { name, prefix, share, tools, tags, timeoutMs, listMs, forward, instructions, required, lock };
  const { target, headers } = toTarget(entry, parts);
  if (typeof target !== "string") return proxy(target, options);
  return proxy(target, { ...options, headers, auth: createStoredAuth(target, headers) });
}

/** Returns what to connect to, and the headers of a URL. */
export function toTarget(
  entry: OtherServer,
  texts: EntryTexts,
): { readonly target: string | CommandTarget; readonly headers: Readonly<Record<string, string>> } {
  const { expand } = texts;
  if (!("command" in entry)) return { target: expand(entry.url), headers: mapValues(entry.headers, expand) };
  const target = { ...toProgram(entry, texts), args: entry.args?.map(expand), env: mapValues(entry.env, expand) };
  return { target, headers: {} };
}

/** Returns the working directory, and the program: a name to look up in PATH, or the absolute path of a file. */
export function toProgram(
  { command, cwd = "" }: Extract<OtherServer, { readonly command: string }>,
  { expand, resolveCwd }: EntryTexts,
): { readonly command: string; readonly cwd: string } {
  const folder = resolveCwd(expand(cwd));
  const program = expand(command);
  // Deno would resolve the path in a permission against the working directory of this process.
  const isRelative = /[\\/]/.test(program) && !isAbsolute(program);
  return { command: isRelative ? platform.toPath(joinPath(folder, program)) : program, cwd: folder };
}

function mapValues(values: Readonly<Record<string, string>> = {}, map: (text: string) => string) {
  return Object.fromEntries(Object.entries(values).map(([name, text]) => [name, map(text)]));
}
