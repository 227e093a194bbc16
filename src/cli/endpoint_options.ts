/**
 * Chooses a server of a file that serves several, and reads the parameters of its path.
 *
 * @module
 */
import type { Server } from "../library.ts";
import { INTERNALS } from "../core/internals.ts";
import type { Args } from "./args.ts";
import { UsageError } from "./cli_error.ts";
import type { Options } from "./command.ts";

/** The options of commands that use one server. */
export const ENDPOINT_OPTIONS: Options = {
  server: { value: "NAME", text: "Server to use, if the file serves several" },
  param: {
    value: "NAME=VALUE",
    isRepeatable: true,
    text: "Parameter of the server's path, such as tenant=acme for /tenants/:tenant/mcp; may be repeated",
  },
};

/** The parameters of a path by name. */
export type Params = Readonly<Record<string, string>>;

/** The command and its target, for error messages. */
export interface Choice {
  /** How the user named the target. */
  readonly target: string;
  /** The action in error messages, such as `serve`. */
  readonly verb: string;
}

/** Returns the servers of a target: all, or the one that `--server` names. */
export function chooseServers(server: Server, name: string | undefined, { target, verb }: Choice): readonly Server[] {
  // The file may use an older copy of this library, which knows no names.
  const servers = server[INTERNALS].servers ?? [server];
  if (name === undefined) return servers;
  const found = servers.filter((each) => each[INTERNALS].name === name);
  if (found.length) return found;
  const names = servers.map((each) => each[INTERNALS].name).join(", ");
  throw new UsageError(`Cannot ${verb} ${target}: it has no server ${name}; the servers are ${names}`);
}

/**
 * Returns the one server to use.
 *
 * @throws {UsageError} if there are several, and none is chosen.
 */
export function chooseServer(server: Server, name: string | undefined, choice: Choice): Server {
  const [found, ...others] = chooseServers(server, name, choice);
  if (!others.length) return found;
  const names = [found, ...others].map((each) => each[INTERNALS].name).join(", ");
  const state = `it has the servers ${names}; choose one with --server NAME`;
  throw new UsageError(`Cannot ${choice.verb} ${choice.target}: ${state}`);
}

/** Reads `--param NAME=VALUE`. Returns `undefined` without any. */
export function readParams({ all: { param } }: Args): Params | undefined {
  if (!param) return;
  const params = new Map<string, string>();
  for (const word of param) {
    const at = word.indexOf("=");
    const name = word.slice(0, Math.max(0, at));
    if (!name) throw new UsageError(`Cannot read --param ${word}: it has no value; write --param NAME=VALUE`);
    if (params.has(name)) throw new UsageError(`Cannot read --param ${word}: ${name} is given twice; remove one`);
    params.set(name, word.slice(at + 1));
  }
  return Object.fromEntries(params);
}
