/**
 * `mcp [target]`: serves a file, a config file, a folder, or a demonstration.
 *
 * @module
 */
import type { Server } from "../../mod.ts";
import { guardConsole } from "../transports/console.ts";
import { isLoopbackHost } from "../transports/gate.ts";
import { HTTP } from "../transports/http.ts";
import { serveStdio } from "../transports/stdio.ts";
import type { Args } from "./args.ts";
import { type Command, toProgram, toShell } from "./command.ts";
import { demo } from "./demo.ts";
import { host, type Served } from "./host.ts";
import { isCoded } from "./host_files.ts";
import type { Inspector } from "./inspector/inspector.ts";
import { findTarget, load, type Loaded, toName, toTargetUrl } from "./load.ts";
import { Problem } from "./problem.ts";
import { watchFile } from "./watch.ts";

/** The command that runs when none is named. */
export const serve: Command = {
  name: "serve",
  summary: "Serve a file that exports a server, a config file, or a folder, over standard input and output or HTTP",
  usage:
    `[serve] [target] [--stdio | --http [--port N] [--host H] [--path P] [--inspect]] [--watch] [-- words for the file]

Without a target ./mcp.jsonc is served, or else ./server.ts, or else a demonstration.

--stdio      serve over standard input and output, as is done if these are no terminal
--http       serve over HTTP, as is done if they are
--watch      load the file or the config file again when it changes; clients stay connected and are told
--port N     the port; 3000 if nothing is said, 0 for any that is free
--host H     the address to listen on; 127.0.0.1 if nothing is said, 0.0.0.0 for all networks
--path P     the path of the endpoint; the server's own (/mcp) if nothing is said
--inspect    serve a page at / too, in which you see the server and try it; on this machine only
--help, --version

For example:
  serve
  server.ts --http --inspect
  mcp.jsonc --watch --http --port 8080`,
  flags: { stdio: false, watch: false, http: false, port: true, host: true, path: true, inspect: false },
  offers: { operands: "files" },
  run: serveTarget,
};

async function serveTarget({ operands, flags }: Args): Promise<void> {
  const [named, extra] = operands;
  if (extra !== undefined) throw new Problem(`Cannot serve ${extra} beside ${named}: name one file`);
  const isTerminal = await host.isTerminal();
  const isHttp = !("stdio" in flags) && ("http" in flags || isTerminal);
  const alone = ["port", "host", "path", "inspect", "http"].find((name) => name in flags && !isHttp);
  if (alone) {
    const remedy = "stdio" in flags ? "leave out --stdio" : "add --http";
    throw new Problem(`Cannot use --${alone}: it is about HTTP; ${remedy}`);
  }
  const port = readPort(flags.port ?? "3000");
  const path = flags.path ?? "";
  if (path && !path.startsWith("/")) throw new Problem(`Cannot serve at ${path}: a path begins with /; write /${path}`);
  const hostname = flags.host ?? "127.0.0.1";
  if ("inspect" in flags && !isLoopbackHost(toAuthority(hostname))) {
    throw new Problem(`Cannot inspect on ${hostname}: the page is for this machine only; leave out --host`);
  }
  // What the file prints while it is loaded must not come between the messages either.
  if (!isHttp) guardConsole();
  const target = named ?? await findTarget();
  const loaded: Loaded = target === undefined ? { server: demo(), files: [] } : await load(target);
  const { server } = loaded;
  if ("watch" in flags) watchTarget(target, loaded);
  loaded.watch?.();
  const ended = new AbortController();
  let closing = false;
  host.onSignal((code) => {
    if (closing) host.exit(code);
    closing = true;
    // A client that ends its server knows that it does.
    if (isHttp || isTerminal) console.error("Ending; calls that run may finish, and another Ctrl-C ends them at once.");
    server.close().then(() => ended.abort());
  });
  if (isHttp) {
    const inspector = "inspect" in flags ? await loadInspector(path || server[HTTP].path) : undefined;
    const served = serveHttp(server, target, { port, hostname, path, inspector });
    await new Promise<void>((resolve) => ended.signal.addEventListener("abort", () => resolve()));
    // The last answers are written by now, but not sent. A client that does not read them is not waited for.
    return await Promise.race([served.stop(), new Promise<void>((resolve) => setTimeout(resolve, 1000))]);
  }
  if (isTerminal) console.error(explainSilence(target));
  await serveStdio(server, { signal: ended.signal });
  await server.close();
}

/** Loads a target again whenever one of its files changes. What cannot be used is told, and the last good state stays. */
function watchTarget(target: string | undefined, { reload, files }: Loaded): void {
  if (!reload) throw new Problem(`Cannot watch ${target ?? "the demonstration"}: it has no file that could change`);
  let stops: readonly (() => void)[] = [];
  const follow = (paths: readonly string[]) => {
    stops.forEach((stop) => stop());
    stops = paths.map((path) => watchFile(path, again));
  };
  // One after the other: what is loaded last is what was written last.
  let last = Promise.resolve();
  const again = () => {
    last = last.then(async () => {
      try {
        follow(await reload());
        console.error(`Loaded ${target} again.`);
      } catch (error) {
        console.error(error instanceof Problem ? error.message : error);
        console.error("\nWhat was loaded before is still served.");
      }
    });
  };
  follow(files);
}

function readPort(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port < 65_536) return port;
  throw new Problem(`Cannot listen on port ${text}: a port is a number from 0 (any that is free) to 65535`);
}

interface Place {
  readonly hostname: string;
  readonly port: number;
  readonly path: string;
  readonly inspector?: Inspector;
}

// Loaded when it is wanted: whoever serves without it, over standard input above all, starts sooner.
async function loadInspector(endpoint: string): Promise<Inspector> {
  const { createInspector, PAGE_PATH } = await import("./inspector/inspector.ts");
  if (endpoint !== PAGE_PATH) return await createInspector(endpoint);
  throw new Problem(`Cannot inspect a server at ${endpoint}: the page is there; move the server with --path /mcp`);
}

function serveHttp(server: Server, target: string | undefined, place: Place): Served {
  const { hostname, port, path, inspector } = place;
  const own = server[HTTP].path;
  const ask = (request: Request, info: object) => server.fetch(path ? move(request, path, own) : request, info);
  const fetch = inspector
    ? async (request: Request, info: object) => inspector(request, info) ?? await ask(request, info)
    : ask;
  const name = target ?? "the demonstration";
  let served: Served;
  try {
    served = host.serve({ hostname, port, fetch });
  } catch (error) {
    throw new Problem(`Cannot serve ${name}: ${tellPlace(error, hostname, port)}`);
  }
  const shown = hostname === "0.0.0.0" || hostname === "::" ? "127.0.0.1" : hostname;
  const origin = `http://${toAuthority(shown)}:${served.port}`;
  const url = origin + (path || own);
  const question = target === undefined ? ["add", "a=2", "b=3"] : [];
  console.error(`Serving ${name} at ${url}
${inspector ? `\nSee it and try it in a browser:\n  ${origin}/\n` : ""}
Ask it from another terminal:
  ${toShell([...toProgram(), "call", url, ...question])}
${target === undefined ? "" : `\nPut it into the configuration of a client:\n  ${toInstall(target)}\n`}
Ctrl-C ends it.`);
  return served;
}

function toInstall(target: string): string {
  return toShell([...toProgram(), "install", target, "--client", "claude-desktop"]);
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

// Who starts a server by hand sees nothing: what it waits for is a client, or a line like the one below.
function explainSilence(target: string | undefined): string {
  const name = target === undefined ? "demo" : toName(toTargetUrl(target));
  const url = target === undefined ? undefined : toTargetUrl(target);
  const path = url?.startsWith("file:") ? decodeURIComponent(new URL(url).pathname) : url;
  const operands = path === undefined ? [] : [path];
  const [command, ...args] = [...toProgram(path === undefined ? "none" : "all"), ...operands];
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  return `This is ${
    target ?? "a demonstration server"
  }. It speaks MCP on standard input and output, and waits for a client.

To try it here, paste this line:
  ${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta } })}

To give it to a client, put this into the client's configuration:
  ${JSON.stringify({ mcpServers: { [name]: { command, args } } })}
${target === undefined ? "" : `or have it put there, with no more permissions than it needs:\n  ${toInstall(target)}\n`}
To serve it over HTTP:
  ${toShell([...toProgram(), ...operands, "--http"])}

Ctrl-C ends it.`;
}
