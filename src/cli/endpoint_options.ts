/**
 * Selects a server from a file that serves several servers, and sets the parameters of the server's path.
 */
import { type Endpoint, listEndpoints } from "../host.ts";
import type { Server } from "../library.ts";
import type { Args } from "./args.ts";
import { CliError, UsageError, withAction } from "./cli_error.ts";
import type { Options } from "./command.ts";
import type { Served } from "../client/client.ts";

/** The options of commands that use a single server. */
export const ENDPOINT_OPTIONS: Options = {
  server: { value: "NAME", text: "Server to use, if the file serves several servers" },
  param: {
    value: "NAME=VALUE",
    isRepeatable: true,
    text: "Parameter of the server's path, such as tenant=acme for /tenants/:tenant/mcp; may be repeated",
  },
};

/** The values of a path's parameters, keyed by name. */
export type Params = Readonly<Record<string, string>>;

export interface Choice {
  /** The target as the user wrote it. */
  readonly target: string;
  /** The action in error messages, such as `serve`. */
  readonly verb: string;
}

/** Returns the servers of a target: all servers, or only the server that `--server` names. */
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

/** @throws {UsageError} if the target has several servers and `name` is `undefined`. */
export function chooseEndpoint(server: Server, name: string | undefined, choice: Choice): Endpoint {
  const found = chooseEndpoints(server, name, choice);
  if (found.length === 1) return found[0];
  const state = `it has the servers ${toNames(found)}; choose a server with --server NAME`;
  throw new UsageError(`Cannot ${choice.verb} ${choice.target}: ${state}`);
}

export function toNames(endpoints: readonly Endpoint[]): string {
  return endpoints.map(({ name }) => name).join(", ");
}

/** Reads `--param NAME=VALUE`. Returns `undefined` if `--param` is missing. */
export function readParams({ all: { param } }: Args): Params | undefined {
  if (!param) return;
  const params = new Map<string, string>();
  for (const word of param) {
    const at = word.indexOf("=");
    const name = word.slice(0, Math.max(0, at));
    if (!name) {
      throw new UsageError(`Cannot read --param ${word}: it has no name or no value; write --param NAME=VALUE`);
    }
    if (params.has(name)) {
      throw new UsageError(
        `Cannot read --param ${word}: ${name} is given twice; remove one of the two options`,
      );
    }
    params.set(name, word.slice(at + 1));
  }
  return Object.fromEntries(params);
}

/** @throws {UsageError} if a parameter is missing, or if the path does not have a given parameter. */
export function checkParams(endpoint: Endpoint, params: Params | undefined, { target, verb }: Choice): void {
  const { path, params: names } = endpoint;
  const missing = names.filter((name) => params?.[name] === undefined);
  if (missing.length) {
    const options = missing.map((name) => `--param ${name}=VALUE`).join(" ");
    throw new UsageError(`Cannot ${verb} ${target}: its path ${path} has parameters; add ${options}`);
  }
  const extra = Object.keys(params ?? {}).find((name) => !names.includes(name));
  if (extra === undefined) return;
  throw new UsageError(`Cannot ${verb} ${target}: its path ${path} has no parameter ${extra}; remove --param ${extra}`);
}

/**
 * Returns the server at the concrete path with these parameters.
 *
 * @throws {UsageError} if a parameter is missing, or if the path does not have a given parameter.
 * @throws {CliError} if the value of a parameter is invalid.
 */
export async function enterEndpoint(
  endpoint: Endpoint,
  params: Params | undefined,
  choice: Choice,
): Promise<Served> {
  checkParams(endpoint, params, choice);
  return await withAction(`Cannot ${choice.verb} ${choice.target}`, () => endpoint.enter(params));
}

/**
 * Returns the options that select an endpoint, for suggested commands. Set `isChosen` if the file serves several
 * servers. The value of a missing parameter is the parameter's name in capitals.
 */
export function toEndpointOptions(
  endpoint: Endpoint,
  { isChosen, params }: { readonly isChosen: boolean; readonly params?: Params },
): readonly string[] {
  const values = Object.entries(toExampleParams(endpoint, params));
  const options = values.flatMap(([key, value]) => ["--param", `${key}=${value}`]);
  return [...isChosen ? ["--server", endpoint.name] : [], ...options];
}

/** The value of a missing parameter is the parameter's name in capitals. */
export function toExampleParams(endpoint: Endpoint, params: Params = {}): Params {
  return Object.fromEntries(endpoint.params.map((name) => [name, params[name] ?? name.toUpperCase()]));
}

/**
 * Returns the concrete path of an endpoint. Returns the path template unchanged if `params` lacks a parameter.
 *
 * @throws {CliError} if a value cannot be part of a path.
 */
export function toConcretePath(endpoint: Endpoint, params: Params | undefined, { target, verb }: Choice): string {
  const { params: names, path } = endpoint;
  if (!params || !names.every((name) => Object.hasOwn(params, name))) return path;
  try {
    return endpoint.toPath(Object.fromEntries(names.map((name) => [name, params[name]])));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new CliError(`Cannot ${verb} ${target}: ${error.message}`);
  }
}
