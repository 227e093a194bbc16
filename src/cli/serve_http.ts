/**
 * `mcp serve --http`: listens on a port, and prints the URL and the next steps.
 */
import {
  copyRequest,
  type Endpoint,
  explainListenError,
  fetchFrom,
  isLoopbackHost,
  listEndpoints,
  toReachable,
  type Visit,
} from "../host.ts";
import type { Server } from "../library.ts";
import type { Args } from "./args.ts";
import { toInstall, toProgram, toShell } from "./command.ts";
import { toConcretePath, toEndpointOptions, toExampleParams, toNames } from "./endpoint_options.ts";
import { platform, type Served, type ServeOptions } from "./platform.ts";
import type { Inspector } from "./inspector/inspector.ts";
import { importModule } from "./lazy_modules.ts";
import { CliError, UsageError } from "./cli_error.ts";
import { explainPermission } from "./permissions.ts";

export interface HttpAddress {
  readonly hostname: string;
  readonly port: number;
  /** The path of the endpoint. If empty, the server uses its own path. */
  readonly path: string;
  /** Whether to also serve the inspector. */
  readonly isInspected: boolean;
  /** The values of the path's parameters, by name. */
  readonly params?: Readonly<Record<string, string>>;
  /** Whether the user chose the server with `--server`. */
  readonly isChosen?: boolean;
  /** Whether a client's configuration must contain the URL, because `install` cannot start the target. */
  readonly isInstalledByUrl?: boolean;
}

/** @throws {UsageError} if an option is invalid. */
export function readHttpAddress(flags: Args["flags"]): HttpAddress {
  const port = readPort(flags.port ?? "3000");
  const path = flags.path ?? "";
  if (path && !path.startsWith("/")) {
    throw new UsageError(`Cannot serve at ${path}: a path must start with /; write /${path}`);
  }
  if (path && (/[:*]/.test(path) || URL.parse(path, "http://x")?.pathname !== path)) {
    throw new UsageError(`Cannot serve at ${path}: it is not a valid path; write a path such as /mcp`);
  }
  const hostname = flags.host ?? "127.0.0.1";
  const isInspected = "inspect" in flags;
  if (isInspected && !isLoopbackHost(toAuthority(hostname))) {
    throw new UsageError(`Cannot inspect on ${hostname}: the inspector is for this machine only; remove --host`);
  }
  return { hostname, port, path, isInspected };
}

function readPort(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port < 65_536) return port;
  throw new UsageError(
    `Cannot listen on port ${text}: it is not a port; write a number from 0 (any free port) to 65535`,
  );
}

/**
 * Serves a server over HTTP, and prints the server's URL. `target` is the target as the user wrote it.
 *
 * @throws {CliError} if the address cannot be used, or if the inspector has the same path as the endpoint.
 */
export async function serveHttp(server: Server, target: string | undefined, address: HttpAddress): Promise<Served> {
  const { hostname, port, path, isInspected, params, isInstalledByUrl } = address;
  const name = target ?? "the demonstration";
  const endpoints = listEndpoints(server);
  checkPath(name, address, endpoints);
  const toPath = (endpoint: Endpoint, params: HttpAddress["params"]) =>
    path || toConcretePath(endpoint, params, { target: name, verb: "serve" });
  const paths = endpoints.map((each) => toPath(each, params));
  const inspector = isInspected ? await loadInspector(paths[0], endpoints) : undefined;
  const answer: Fetch = path
    ? toFetch(server, path, endpoints[0].path)
    : (request, info) => fetchFrom(server, { request, info });
  const fetch = inspector ? withInspector(inspector, answer) : answer;
  const served = await listen(name, { hostname, port, fetch }).catch(async (error) => {
    await inspector?.close();
    throw error;
  });
  // Load the code for the first request now. If loading fails, the first request reports the error.
  for (const each of endpoints) each.load().catch(() => {});
  const origin = `http://${toReachable(hostname)}:${served.port}`;
  if (!endpoints.every(({ hasAuth }) => hasAuth) && !isLoopbackHost(toAuthority(hostname))) {
    console.error(toNetworkWarning(hostname));
  }
  // Prefer an endpoint whose path has no parameters without a value.
  const suggested = endpoints.find((each, i) => paths[i] !== each.path || !each.params.length) ?? endpoints[0];
  const isChosen = address.isChosen || endpoints.length > 1;
  console.error(toNotice(target, {
    urls: paths.map((each) => origin + each),
    page: inspector && `${origin}/#key=${inspector.key}`,
    called: origin + toPath(suggested, toExampleParams(suggested, params)),
    options: toEndpointOptions(suggested, { isChosen, params }),
    isInstalledByUrl,
  }));
  if (!inspector) return served;
  const stop = async () => {
    await inspector.close();
    await served.stop();
  };
  return { port: served.port, stop };
}

type Fetch = ServeOptions["fetch"];

/** Returns the request handler of a server, with the endpoint at `path` instead of `own`. */
function toFetch(server: Server, path: string, own: string): Fetch {
  return async (...[request, info]) => {
    return await fetchFrom(server, rewritePath({ request, info }, path, own));
  };
}

function checkPath(name: string, { path, isInspected }: HttpAddress, endpoints: readonly Endpoint[]): void {
  if (endpoints.length > 1 && (path || isInspected)) {
    const state = `it has the servers ${toNames(endpoints)}; choose a server with --server NAME`;
    throw new UsageError(`Cannot use --${path ? "path" : "inspect"} with ${name}: ${state}`);
  }
  if (path && endpoints[0].params.length) {
    throw new UsageError(
      `Cannot use --path with ${name}: the server's path has parameters; change \`path\` in the file`,
    );
  }
}

function withInspector(inspector: Inspector, fetch: Fetch): Fetch {
  return async (request, info) => await inspector.respond(request, info) ?? await fetch(request, info);
}

async function listen(name: string, options: ServeOptions): Promise<Served> {
  try {
    return await platform.serve(options);
  } catch (error) {
    throw new CliError(`Cannot serve ${name}: ${explainError(error, options)}`);
  }
}

function toNetworkWarning(hostname: string): string {
  return `Anyone who can reach ${hostname} can use this server, because the server has no \`auth\`. Set \`auth\`, ` +
    "remove --host to serve this machine only, or put a proxy with authentication in front.";
}

interface Notice {
  readonly urls: readonly string[];
  /** The URL of the inspector page. `undefined` without `--inspect`. */
  readonly page: string | undefined;
  /** The server's URL in the suggested command. */
  readonly called: string;
  /** The options that select this endpoint in the suggested command. */
  readonly options: readonly string[];
  readonly isInstalledByUrl?: boolean;
}

function toNotice(
  target: string | undefined,
  { urls, page, called, options, isInstalledByUrl }: Notice,
): string {
  const call = toShell([...toProgram(), "call", called, ...target === undefined ? ["add", "a=2", "b=3"] : []]);
  return [
    `Serving ${target ?? "the demonstration"} at ${urls.join("\n  and ")}`,
    ...page === undefined ? [] : [`Try the server in a browser:\n  ${page}`],
    `Call the server from another terminal:\n  ${call}`,
    ...target === undefined ? [] : [
      `Add the server to the configuration of a client:\n  ` +
      `${isInstalledByUrl ? toInstall(called, []) : toInstall(target, options)}`,
    ],
    "Press Ctrl-C to stop.",
  ].join("\n\n");
}

async function loadInspector(endpoint: string, endpoints: readonly Endpoint[]): Promise<Inspector> {
  const module = await importModule<typeof import("./inspector/inspector.ts")>("./inspector/inspector.ts");
  const { createInspector, FaultBook, PAGE_PATH, startSandbox } = module;
  if (endpoint !== PAGE_PATH) {
    const faults = new FaultBook();
    endpoints.forEach((each) => faults.watch(each));
    return await createInspector({ endpoint, sandbox: await startSandbox(), faults });
  }
  throw new CliError(
    `Cannot inspect a server at ${endpoint}: the inspector uses this path; move the server with --path /mcp`,
  );
}

/** Returns an address as it stands in a URL. */
export function toAuthority(hostname: string): string {
  return hostname.includes(":") ? `[${hostname}]` : hostname;
}

/**
 * Changes the path of a request from `from` to `to`. Changes the path `to`, which the --path option has replaced, to
 * `/`, so that the server responds with HTTP 404.
 */
function rewritePath<Info>(visit: Visit<Info>, from: string, to: string): Visit<Info> {
  const { url } = visit.request;
  const start = url.indexOf("/", url.indexOf("//") + 2);
  const path = url.slice(start).replace(/[?#].*$/, "");
  if (path === from) return moveRequest(visit, url.slice(0, start) + to + url.slice(start + path.length));
  return path === to ? moveRequest(visit, `${url.slice(0, start)}/`) : visit;
}

function moveRequest<Info>(visit: Visit<Info>, url: string): Visit<Info> {
  try {
    return copyRequest(visit, { url });
  } catch {
    // A new request cannot have the method of this request, such as TRACE. Change the request itself, so that the server
    // refuses the method.
    Object.defineProperty(visit.request, "url", { value: url });
    return visit;
  }
}

function explainError(error: unknown, address: ServeOptions): string {
  const missing = explainPermission(error instanceof Error ? error.message : String(error));
  return missing ?? explainListenError(error, address, {
    inUse: "choose another port with --port, or any free port with --port 0",
    lowPort: "choose a port from 1024 with --port",
    other: "choose an address of this machine with --host",
  });
}
