/**
 * `mcp serve`, the default command: serves a file, a config file, a folder, or the demonstration.
 */
import { guardConsole, isLoopbackHost, listEndpoints, reportRejections } from "../host.ts";
import { deadline } from "../core/kit/deadline.ts";
import { toStartFailure } from "../core/kit/failed_part.ts";
import { formatError } from "../core/kit/error_log.ts";
import { serveStdio } from "../server/transports/stdio/stdio.ts";
import { type Args, rejectRest } from "./args.ts";
import { type Command, type Options, toShell } from "./command.ts";
import {
  checkParams,
  chooseEndpoint,
  chooseEndpoints,
  ENDPOINT_OPTIONS,
  readParams,
  toEndpointOptions,
} from "./endpoint_options.ts";
import { platform } from "./platform.ts";
import { findTarget, load, toKind } from "./load.ts";
import type { Loaded, LoadOptions } from "./loaded.ts";
import { importModule } from "./lazy_modules.ts";
import { CliError, UsageError, withAction } from "./cli_error.ts";

/** The options of all commands that serve. */
export const SERVE_OPTIONS: Options = {
  stdio: { text: "Serve over standard input and output" },
  http: { text: "Serve over HTTP" },
  port: { value: "PORT", text: "Port for HTTP; 0 chooses a free port (default: 3000)" },
  host: { value: "ADDRESS", text: "Address to listen on; 0.0.0.0 listens on all networks (default: 127.0.0.1)" },
  path: {
    value: "PATH",
    text: "Path of the endpoint (default: the path option of the server, which defaults to /mcp)",
  },
  log: {
    value: "FORMAT",
    text: "Print calls, rejected requests and errors to standard error; json prints one JSON object per line, pretty " +
      "is for people",
    completion: ["json", "pretty"],
  },
};

export const serve: Command = {
  name: "serve",
  summary: "Serve MCP over stdio or HTTP (the default command)",
  usage: [
    "[serve] [OPTIONS] [TARGET] [-- ARGS...]",
    "--inspect [--port PORT] -- COMMAND...",
  ],
  description: [
    "TARGET is a file that exports a server, a config file, a folder, or a quoted pattern for files that export " +
    "handlers, such as 'handlers/*.ts'. Defaults to ./mcp.jsonc, else ./server.ts, " +
    "else a demonstration server. The file can read ARGS as its arguments.",
    "The default transport is HTTP in a terminal, and stdio otherwise. After the first Ctrl-C, the command exits " +
    "when running calls have finished. After the second, it exits immediately.",
  ],
  options: {
    ...SERVE_OPTIONS,
    ...ENDPOINT_OPTIONS,
    skills: { text: "Serve the skills in the folder TARGET; a skill is a folder with a file SKILL.md" },
    watch: { text: "Reload the target when one of its files changes, and notify connected clients" },
    inspect: {
      text: "Also serve the inspector at /, a web page for trying the server; without TARGET, inspect the server " +
        "that COMMAND starts",
    },
  },
  operands: "files",
  examples: [
    "serve",
    "server.ts --http --inspect",
    "mcp.jsonc --watch --http --port 8080",
    "serve ./skills --skills",
    "--inspect -- npx -y some-server",
  ],
  run: serveTarget,
};

async function serveTarget(args: Args): Promise<void> {
  const { operands: [named, extra], flags, rest } = args;
  if ("inspect" in flags && named === undefined && rest) {
    return await (await importModule<typeof import("./inspector/serve.ts")>("./inspector/serve.ts")).servePage(args);
  }
  if (extra !== undefined) {
    throw new UsageError(
      `Cannot serve ${named} and ${extra}: serve takes one target; remove one of the two, or quote the pattern`,
    );
  }
  if (rest) await checkRest(args);
  await serveLoaded(args, async (options) => {
    const target = named ?? await findTarget();
    if ("skills" in flags) return { target, loaded: await loadSkills(named, flags) };
    return { target, loaded: target === undefined ? await loadDemo() : await load(target, options) };
  });
}

/** The target that a command serves. `target` is `undefined` for the demonstration. */
export interface Found {
  readonly target: string | undefined;
  readonly loaded: Loaded;
  /** The command and its own options, if the command is not `serve`. */
  readonly command?: readonly [name: string, ...options: readonly string[]];
}

/** Serves what `find` loads, with the options of `serve`. */
export async function serveLoaded(args: Args, find: (options: LoadOptions) => Promise<Found>): Promise<void> {
  const { flags } = args;
  const isTerminal = await platform.isTerminal();
  const isHttp = !("stdio" in flags) && ("http" in flags || isTerminal);
  checkHttpOptions(flags, isHttp);
  const log = "log" in flags
    ? (await importModule<typeof import("./event_log.ts")>("./event_log.ts")).createLog(flags.log)
    : undefined;
  // Load the code for HTTP only if necessary, because clients wait for a stdio server to start.
  const http = isHttp ? await importModule<typeof import("./serve_http.ts")>("./serve_http.ts") : undefined;
  const address = http?.readHttpAddress(flags);
  // Redirect the console before loading the file, because output from the file must not mix with protocol messages.
  if (!isHttp) guardConsole();
  const imports = "watch" in flags
    ? new (await importModule<typeof import("./import_graph.ts")>("./import_graph.ts")).ImportGraph()
    : undefined;
  const loadStart = Date.now();
  const isPublic = http && address && !isLoopbackHost(http.toAuthority(address.hostname));
  const publicHost = isPublic ? address.hostname : undefined;
  const { target, loaded, command: [command, ...own] = [] } = await find({ isHttp, imports, publicHost });
  const { server: whole } = loaded;
  const choice = { target: target ?? "the demonstration", verb: "serve" };
  const params = readParams(args);
  // If the user has not chosen a server, serve all servers of the file over HTTP.
  const [endpoint, ...others] = isHttp
    ? chooseEndpoints(whole, flags.server, choice)
    : [chooseEndpoint(whole, flags.server, choice)];
  const server = others.length ? whole : endpoint.server;
  const isChosen = flags.server !== undefined;
  const mayNeedParams = endpoint.params.length && (!isHttp || "inspect" in flags);
  if (!others.length && (params || mayNeedParams)) checkParams(endpoint, params, choice);
  // Turn on development warnings, because `--watch` and `--inspect` are for authors of servers.
  if ("watch" in flags || "inspect" in flags) {
    (await importModule<typeof import("./lag_watch.ts")>("./lag_watch.ts")).watchLag(listEndpoints(whole));
  }
  // Skip servers that use an older copy of this library, because they cannot be observed.
  if (log) listEndpoints(whole).forEach((each) => each.observe?.(log));
  if ("watch" in flags) {
    const { watchTarget } = await importModule<typeof import("./target_watcher.ts")>("./target_watcher.ts");
    watchTarget(target, loaded, loadStart);
  }
  loaded.watch?.();
  // Print the notice about Ctrl-C only for HTTP or in a terminal, because a client stops a stdio server.
  const closed = closeOnSignal(whole, isHttp || isTerminal);
  if (!await start(whole, target, closed)) return;
  if (http && address) {
    const served = await http.serveHttp(server, target, {
      ...address,
      params,
      isChosen,
      isInstalledByUrl: command !== undefined,
    });
    reportRejections(server);
    await new Promise<void>((resolve) => closed.addEventListener("abort", () => resolve()));
    // The last responses may not have been sent completely. Limit the wait, because clients may not read the responses.
    return await deadline(served.stop(), { ms: STOP_MS, onTimeout: () => {} });
  }
  if (isTerminal) {
    const options = [...toEndpointOptions(endpoint, { isChosen, params }), ...own];
    const { toStdioNotice } = await importModule<typeof import("./stdio_notice.ts")>("./stdio_notice.ts");
    console.error(await toStdioNotice(target, options, command));
  }
  reportRejections(server);
  const run = () => serveStdio(server, { signal: closed, pathParams: params, exit: false });
  await (params ? withAction(`Cannot serve ${choice.target}`, run) : run());
  await whole.close();
}

/**
 * Rejects arguments after `--` that no file can read.
 *
 * @throws {UsageError} if there is no target, or if the target contains no code.
 */
async function checkRest(args: Args): Promise<void> {
  const { operands: [named], flags, rest = [] } = args;
  if (named === undefined) {
    const command = toShell(rest);
    if (!command) throw new UsageError("Cannot use --: no target precedes it; remove --, or name a file");
    throw new UsageError(
      `Cannot serve -- ${command}: no target precedes --, and serve does not start commands; name the file that reads ` +
        `these arguments, use inspect -- ${command} for the server that the command starts, or use bridge URL to ` +
        "connect a client over stdio to a server over HTTP",
    );
  }
  if ("skills" in flags) rejectRest(args, "serve with --skills");
  if (await toKind(named) === "folder") rejectRest(args, "serve with a folder");
}

async function loadSkills(target: string | undefined, flags: Args["flags"]): Promise<Loaded> {
  if (target === undefined) {
    throw new UsageError("Cannot serve skills: no folder is named; write serve FOLDER --skills");
  }
  if ("watch" in flags) {
    throw new UsageError("Cannot use --watch with --skills: skills are always watched; remove --watch");
  }
  return await (await importModule<typeof import("./skills_folder.ts")>("./skills_folder.ts")).loadSkills(target);
}

/** Starts the parts of a server. Returns `false` if the server was closed while its parts started. */
async function start(server: Loaded["server"], target: string | undefined, closed: AbortSignal): Promise<boolean> {
  try {
    // `ready` is missing if the server comes from an older copy of this library.
    await server.ready?.();
  } catch (error) {
    await server.close();
    if (closed.aborted) return false;
    const state = toStartFailure(error);
    throw new CliError(`Cannot serve ${target ?? "the demonstration"}: ${state}\n${formatError(error)}`);
  }
  return !closed.aborted;
}

/** Maximum time for sending the last responses, in milliseconds. */
const STOP_MS = 1000;

function checkHttpOptions(flags: Args["flags"], isHttp: boolean): void {
  if ("http" in flags && "stdio" in flags) {
    throw new UsageError("Cannot use --http with --stdio: a server uses one transport; remove one of the two options");
  }
  const option = ["port", "host", "path", "inspect"].find((name) => name in flags && !isHttp);
  if (!option) return;
  const remedy = "stdio" in flags ? "remove --stdio" : "add --http";
  throw new UsageError(`Cannot use --${option}: the option needs HTTP; ${remedy}`);
}

/**
 * Closes the server on the first Ctrl-C or SIGTERM, and exits the process on the second. The returned signal aborts
 * when the server has closed.
 */
function closeOnSignal(server: Loaded["server"], hasNotice: boolean): AbortSignal {
  const closed = new AbortController();
  platform.onSignal(() => {
    if (hasNotice) console.error("Waiting for running calls to finish. Press Ctrl-C again to stop immediately.");
    server.close().then(() => closed.abort());
  });
  return closed.signal;
}

async function loadDemo(): Promise<Loaded> {
  const { demo } = await importModule<typeof import("./demo.ts")>("./demo.ts");
  return { server: demo(), files: [] };
}
