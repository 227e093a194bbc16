/**
 * Chooses a concrete path of a server whose path has parameters.
 *
 * @module
 */
import type { Server } from "../library.ts";
import { INTERNALS } from "../core/internals.ts";
import { enterServer, type PipeServer } from "../transports/channel.ts";
import { PathTemplate } from "../transports/http/path_template.ts";
import type { Args } from "./args.ts";
import { CliError, UsageError } from "./cli_error.ts";
import { type Choice, chooseServer, type Params, readParams } from "./endpoint_options.ts";

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
