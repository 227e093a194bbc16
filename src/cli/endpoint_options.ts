/**
 * Chooses a server of a file that serves several, and a concrete path of a server whose path has parameters.
 *
 * @module
 */
import type { Server } from "../library.ts";
import { INTERNALS } from "../core/internals.ts";
import { enterServer, type PipeServer } from "../transports/channel.ts";
import { PathTemplate } from "../transports/http/path_template.ts";
import type { Args } from "./args.ts";
import { CliError, UsageError } from "./cli_error.ts";
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

type Params = Readonly<Record<string, string>>;

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

/**
 * Checks that a server and the parameters of a path fit together.
 *
 * @throws {UsageError} if parameters are missing or too many.
 */
export function checkParams(
  server: Server,
  params: Params | undefined,
  { target, verb }: Choice,
): void {
  const { enter, http: { path } } = server[INTERNALS];
  const names = enter ? listParams(path) : [];
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
 * Returns the server of the concrete path that the options choose.
 *
 * @throws {UsageError} if the options choose none.
 */
export async function enterEndpoint(server: Server, args: Args, choice: Choice): Promise<PipeServer> {
  const found = chooseServer(server, args.flags.server, choice);
  const params = readParams(args);
  checkParams(found, params, choice);
  try {
    return await enterServer(found, params);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new CliError(`Cannot ${choice.verb} ${choice.target}: ${error.message}`);
  }
}

/**
 * Returns the options that select an endpoint, for suggested commands. Set `isChosen` if the file serves several servers.
 * A parameter without a value becomes its name in capitals.
 */
export function toEndpointOptions(
  server: Server,
  { isChosen, params }: { readonly isChosen: boolean; readonly params?: Params },
): readonly string[] {
  const { name, enter, http: { path } } = server[INTERNALS];
  const values = Object.entries(enter ? toExampleParams(path, params) : {});
  const options = values.flatMap(([key, value]) => ["--param", `${key}=${value}`]);
  return [...isChosen ? ["--server", name] : [], ...options];
}

/** The names of a path's parameters. */
export function listParams(path: string): readonly string[] {
  return new PathTemplate(path).names;
}

/** The value of each parameter of a path. One without a value becomes its name in capitals. */
export function toExampleParams(path: string, params: Params = {}): Params {
  return Object.fromEntries(listParams(path).map((name) => [name, params[name] ?? name.toUpperCase()]));
}

/**
 * Returns the path of an endpoint with parameters in place of their names, or unchanged if one has no value.
 *
 * @throws {CliError} if a value cannot be part of a path.
 */
export function toConcretePath(path: string, params: Params | undefined, { target, verb }: Choice): string {
  const names = listParams(path);
  if (!params || !names.every((name) => Object.hasOwn(params, name))) return path;
  try {
    return new PathTemplate(path).build(Object.fromEntries(names.map((name) => [name, params[name]])));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new CliError(`Cannot ${verb} ${target}: ${error.message}`);
  }
}
