/**
 * Chooses a concrete path of a server whose path has parameters.
 *
 * @module
 */
import type { PipeServer } from "../client/client.ts";
import type { Endpoint } from "../host.ts";
import { CliError, UsageError } from "./cli_error.ts";
import type { Choice, Params } from "./endpoint_options.ts";

/**
 * Checks that a server and the parameters of a path fit together.
 *
 * @throws {UsageError} if parameters are missing or too many.
 */
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
 * Returns the server of the concrete path with these parameters.
 *
 * @throws {UsageError} if parameters are missing or too many.
 * @throws {CliError} if a parameter does not fit.
 */
export async function enterEndpoint(
  endpoint: Endpoint,
  params: Params | undefined,
  choice: Choice,
): Promise<PipeServer> {
  checkParams(endpoint, params, choice);
  try {
    return await endpoint.enter(params);
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
  endpoint: Endpoint,
  { isChosen, params }: { readonly isChosen: boolean; readonly params?: Params },
): readonly string[] {
  const values = Object.entries(toExampleParams(endpoint, params));
  const options = values.flatMap(([key, value]) => ["--param", `${key}=${value}`]);
  return [...isChosen ? ["--server", endpoint.name] : [], ...options];
}

/** The value of each parameter of a path. A parameter without a value becomes its name in capitals. */
export function toExampleParams(endpoint: Endpoint, params: Params = {}): Params {
  return Object.fromEntries(endpoint.params.map((name) => [name, params[name] ?? name.toUpperCase()]));
}

/**
 * Returns the path of an endpoint with parameters in place of their names, or unchanged if one has no value.
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
