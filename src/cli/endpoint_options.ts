/**
 * Chooses a server of a file that serves several, and reads the parameters of its path.
 *
 * @module
 */
import { type Endpoint, listEndpoints } from "../host.ts";
import type { Server } from "../library.ts";
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
export function chooseEndpoints(
  server: Server,
  name: string | undefined,
  { target, verb }: Choice,
): readonly Endpoint[] {
  const endpoints = listEndpoints(server);
  if (name === undefined) return endpoints;
  const found = endpoints.filter((each) => each.name === name);
  if (found.length) return found;
  const names = toNames(endpoints);
  throw new UsageError(`Cannot ${verb} ${target}: it has no server ${name}; the servers are ${names}`);
}

/**
 * Returns the one server to use.
 *
 * @throws {UsageError} if there are several, and none is chosen.
 */
export function chooseEndpoint(server: Server, name: string | undefined, choice: Choice): Endpoint {
  const found = chooseEndpoints(server, name, choice);
  if (found.length === 1) return found[0];
  const state = `it has the servers ${toNames(found)}; choose one with --server NAME`;
  throw new UsageError(`Cannot ${choice.verb} ${choice.target}: ${state}`);
}

/** The names of servers, for error messages. */
export function toNames(endpoints: readonly Endpoint[]): string {
  return endpoints.map(({ name }) => name).join(", ");
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
