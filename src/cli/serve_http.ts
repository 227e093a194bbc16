/**
 * `serve --http`: a port, the inspector, and what the terminal shows.
 *
 * @module
 */
import { INTERNALS } from "../core/internals.ts";
import type { Server } from "../library.ts";
import { isLoopbackHost } from "../transports/http/access.ts";
import type { Args } from "./args.ts";
import { toInstall, toProgram, toShell } from "./command.ts";
import { platform, type Served } from "./platform.ts";
import { isCoded } from "./platform_files.ts";
import type { Inspector } from "./inspector/inspector.ts";
import { importPart } from "./parts.ts";
import { Problem, UsageProblem } from "./problem.ts";

/** Where to serve, and whether with the inspector. */
export interface Place {
  readonly hostname: string;
  readonly port: number;
  /** Empty for the path of the server itself. */
  readonly path: string;
  readonly isInspected: boolean;
}

/**
 * Reads the flags about HTTP.
 *
 * @throws {Problem} if one cannot be used.
 */
export function readPlace(flags: Args["flags"]): Place {
  const port = readPort(flags.port ?? "3000");
  const path = flags.path ?? "";
  if (path && !path.startsWith("/")) {
    throw new UsageProblem(`Cannot serve at ${path}: a path begins with /; write /${path}`);
  }
  const hostname = flags.host ?? "127.0.0.1";
  const isInspected = "inspect" in flags;
  if (isInspected && !isLoopbackHost(toAuthority(hostname))) {
    throw new UsageProblem(`Cannot inspect on ${hostname}: the page is for this machine only; leave out --host`);
  }
  return { hostname, port, path, isInspected };
}

function readPort(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port < 65_536) return port;
  throw new UsageProblem(`Cannot listen on port ${text}: a port is a number from 0 (any that is free) to 65535`);
}

/**
 * Serves a server over HTTP. `target` is the user's name for it.
 *
 * @throws {Problem} if the port cannot be listened on, or the inspector would take the place of the server.
 */
export async function serveHttp(server: Server, target: string | undefined, place: Place): Promise<Served> {
  const { hostname, port, path, isInspected } = place;
  const own = server[INTERNALS].http.path;
  const inspector = isInspected ? await loadInspector(path || own) : undefined;
  const ask = (request: Request, info: object) => server.fetch(path ? move(request, path, own) : request, info);
  const fetch = inspector
    ? async (request: Request, info: object) => await inspector.respond(request, info) ?? await ask(request, info)
    : ask;
  const name = target ?? "the demonstration";
  let served: Served;
  try {
    served = platform.serve({ hostname, port, fetch });
  } catch (error) {
    throw new Problem(`Cannot serve ${name}: ${tellPlace(error, hostname, port)}`);
  }
  const shown = hostname === "0.0.0.0" || hostname === "::" ? "127.0.0.1" : hostname;
  const origin = `http://${toAuthority(shown)}:${served.port}`;
  const url = origin + (path || own);
  const question = target === undefined ? ["add", "a=2", "b=3"] : [];
  if (!isLoopbackHost(toAuthority(hostname))) {
    console.error(
      `Everybody who can reach ${hostname} can use this server, unless it authenticates callers itself; leave out ` +
        "--host to serve this machine only, or put a proxy with authentication in front",
    );
  }
  console.error(`Serving ${name} at ${url}
${inspector ? `\nSee it and try it in a browser:\n  ${origin}/#key=${inspector.key}\n` : ""}
Ask it from another terminal:
  ${toShell([...toProgram(), "call", url, ...question])}
${target === undefined ? "" : `\nPut it into the configuration of a client:\n  ${toInstall(target)}\n`}
Ctrl-C ends it.`);
  if (!inspector) return served;
  const stop = async () => {
    await inspector.close();
    await served.stop();
  };
  return { port: served.port, stop };
}

async function loadInspector(endpoint: string): Promise<Inspector> {
  const { createInspector, PAGE_PATH } = await importPart("./inspector/inspector.ts");
  if (endpoint !== PAGE_PATH) return await createInspector({ endpoint });
  throw new Problem(`Cannot inspect a server at ${endpoint}: the page is there; move the server with --path /mcp`);
}

/** A host as it stands in a URL. */
function toAuthority(hostname: string): string {
  return hostname.includes(":") ? `[${hostname}]` : hostname;
}

/** A request for `from` as one for `to`, and one for anything else as it is, unless it is for `to`, where nothing is. */
function move(request: Request, from: string, to: string): Request {
  const start = request.url.indexOf("/", request.url.indexOf("//") + 2);
  const path = request.url.slice(start).replace(/[?#].*$/, "");
  if (path !== from) return path === to ? new Request(`${request.url.slice(0, start)}/`, request) : request;
  return new Request(request.url.slice(0, start) + to + request.url.slice(start + path.length), request);
}

function tellPlace(error: unknown, hostname: string, port: number): string {
  const { message } = error instanceof Error ? error : { message: String(error) };
  const code = isCoded(error) ? error.code : "";
  if (code === "EADDRINUSE") {
    return `port ${port} of ${hostname} is in use; choose another with --port, or any with --port 0`;
  }
  if (code === "EACCES") return `port ${port} needs special rights; choose one from 1024 on with --port`;
  if (/^Requires \w+ access/.test(message)) return message;
  return `cannot listen on ${hostname}, port ${port}: ${message}; choose an address of this machine with --host`;
}
