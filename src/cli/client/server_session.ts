/**
 * Connects a command to the server that its arguments name, and closes the connection when the command is done.
 */
import { type Client, connect, type ConnectOptions, type Target } from "../../client/client.ts";
import { deadline } from "../../core/kit/deadline.ts";
import { REVISIONS } from "../protocol.ts";
import type { Args } from "../args.ts";
import { readHeaders } from "../header_flags.ts";
import { type CommandAuthOptions, createAuth } from "../sign_in/sign_in_options.ts";
import { platform } from "../platform.ts";
import { CliError, ServerError, UsageError } from "../cli_error.ts";
import { toServerError } from "./server_errors.ts";
import { reportLine } from "./terminal_output.ts";
import { toLine } from "./terminal_text.ts";
import { guardConsole } from "../../host.ts";
import { toShell } from "../command.ts";
import { chooseEndpoint, enterEndpoint, readParams } from "../endpoint_options.ts";
import { demo } from "../demo.ts";
import { findTarget, load } from "../load.ts";

export interface ServerSession {
  readonly client: Client;
  /** The operands after SERVER. */
  readonly operands: readonly string[];
  /** The server as the user named it, such as its URL. */
  readonly name: string;
  /** Aborts when the user presses Ctrl-C. */
  readonly signal: AbortSignal;
  /** The time that the server may take to respond, in milliseconds. */
  readonly timeoutMs: number;
}

export interface SessionOptions {
  /** The action in error messages, such as `call`. */
  readonly verb: string;
  /**
   * Whether SERVER may be omitted. The command then uses the target in the working directory, or else the demonstration
   * server.
   */
  readonly isOptional?: boolean;
  readonly pauseWhile?: CommandAuthOptions["pauseWhile"];
  /** Whether to sign in even if standard error is not a terminal. */
  readonly isForced?: boolean;
  /** The server and the headers of its URL, if `args` do not name them. */
  readonly listed?: ServerTarget & { readonly headers: Readonly<Record<string, string>> };
  /** Returns additional client options. `name` is the server as the user named it. */
  readonly toOptions?: (
    name: string,
  ) => Pick<
    ConnectOptions,
    "onElicit" | "onElicitUrl" | "roots" | "logLevel" | "onNotification" | "extensions" | "use"
  >;
}

/** Milliseconds to wait for the connection to close before the command exits anyway. */
const CLOSE_MS = 2500;
/** Maximum number of warnings that are printed. */
const MAX_PRINTED_WARNINGS = 10;
/** Number of warnings that end the session, because a program that is not an MCP server may write endless output. */
const MAX_WARNINGS = 1000;
/** Milliseconds after which the command prints that it is still connecting. */
const NOTICE_MS = 3000;
/** Maximum time for finding out which protocol revision a server supports, in milliseconds. */
const PROBE_MS = 5000;

/**
 * Connects to the server that `args` names, and runs `use`. Returns the exit code of `use`, or the signal's exit code,
 * such as 130 after Ctrl-C.
 *
 * @throws {CliError} if the server cannot be found or reached, or if a request fails.
 */
export async function withServerSession(
  args: Args,
  options: SessionOptions,
  use: (session: ServerSession) => Promise<number>,
): Promise<number> {
  const server = options.listed ?? await findServer(args, options.verb, options.isOptional ?? false);
  const timeoutMs = readTimeout(args.flags.timeout ?? "30");
  const connectOptions = toConnectOptions(args, server, { ...options, timeoutMs });
  const interrupt = platform.abortOnSignal();
  const { signal } = interrupt.controller;
  let client: Client | undefined;
  const notice = setTimeout(() => {
    if (platform.terminal.isAt("errors")) reportLine(`Waiting for ${server.name} … (Ctrl-C to stop)`);
  }, NOTICE_MS);
  try {
    const onWarning = createWarningPrinter(server.name, interrupt.controller);
    client = await connect(server.target, { ...connectOptions, signal, onWarning });
    clearTimeout(notice);
    return await use({ client, operands: server.operands, name: server.name, signal, timeoutMs });
  } catch (error) {
    if (signal.reason instanceof CliError) throw signal.reason;
    if (signal.aborted) {
      // Start a new line, because the terminal has printed `^C`.
      if (platform.terminal.isAt("errors")) reportLine("");
      return interrupt.exitCode;
    }
    throw toServerError(error, server.name);
  } finally {
    clearTimeout(notice);
    await deadline(close(client, server), { ms: CLOSE_MS, onTimeout: () => {} });
  }
}

function toConnectOptions(
  args: Args,
  { target, name }: ServerTarget,
  { toOptions, timeoutMs, pauseWhile, isForced, listed }: SessionOptions & { readonly timeoutMs: number },
): ConnectOptions {
  const headers = listed?.headers ?? readHeaders(args.all.header);
  if (Object.keys(headers).length && typeof target !== "string") {
    throw new UsageError(`Cannot send headers to ${name}: it is not a URL; remove --header`);
  }
  const revisions = readRevisions(args.flags.revision);
  const auth = typeof target === "string" ? createAuth(args, headers, { pauseWhile, isForced }) : undefined;
  return { auth, ...toOptions?.(name), headers, timeoutMs, probeMs: Math.min(PROBE_MS, timeoutMs), revisions };
}

function createWarningPrinter(name: string, controller: AbortController): (text: string) => void {
  let count = 0;
  return (text) => {
    if (count < MAX_PRINTED_WARNINGS) reportLine(toLine(text));
    if (++count === MAX_PRINTED_WARNINGS) reportLine("Further warnings about the server are not printed.");
    if (count === MAX_WARNINGS) {
      controller.abort(new ServerError(`Cannot use ${name}: its output is not MCP; check the command`));
    }
  };
}

async function close(client: Client | undefined, server: ServerTarget): Promise<void> {
  await client?.close().catch(() => {});
  await server.close?.().catch(() => {});
}

function readTimeout(text: string): number {
  const seconds = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text)) {
    throw new UsageError(`Cannot use --timeout ${text}: it is not a number of seconds; write a number, such as 30`);
  }
  return seconds ? seconds * 1000 : Infinity;
}

function readRevisions(revision: string | undefined): readonly string[] {
  if (revision === undefined) return REVISIONS;
  if (REVISIONS.includes(revision)) return [revision];
  throw new UsageError(`Cannot use revision ${revision}: there is no such revision; use ${REVISIONS.join(", ")}`);
}

export interface ServerTarget {
  readonly target: Target;
  readonly name: string;
  readonly operands: readonly string[];
  /** Closes the server. `undefined` if the server does not run in this process. */
  close?(): Promise<void>;
}

/** Milliseconds that a server's command may take to exit after its standard input was closed. */
const EXIT_MS = 500;

/**
 * Finds the server that the arguments name, or with `isOptional` a default.
 *
 * @throws {CliError} if no server is named, or if the server cannot be loaded.
 */
export async function findServer(args: Args, verb: string, isOptional: boolean): Promise<ServerTarget> {
  const { operands: [named, ...operands], rest, all } = args;
  if (rest) return findCommand(args, rest, verb);
  const isUrl = named !== undefined && /^https?:/i.test(named);
  const wrong = ["server", "param"].find((name) => name in args.flags && isUrl);
  if (wrong) {
    throw new UsageError(
      `Cannot use --${wrong}: the option is for a file; write the endpoint's path in the URL`,
    );
  }
  if (all.env) {
    throw new UsageError(
      "Cannot use --env: the option is for a command that starts a server; write the command after --",
    );
  }
  if (named === undefined && !isOptional) {
    throw new UsageError(
      `Cannot ${verb} a server: no server is named; write a URL such as http://127.0.0.1:3000/mcp, a file, or a ` +
        "command after --",
    );
  }
  if (named !== undefined && isUrl) {
    if (!URL.canParse(named)) throw new UsageError(`Cannot ${verb} ${named}: it is not a URL; check its spelling`);
    return { target: named, name: named, operands };
  }
  if (named !== undefined && /^[\w.-]+:\d+(\/|$)/.test(named)) {
    throw new UsageError(`Cannot ${verb} ${named}: it has no scheme; write http:// before it`);
  }
  return await loadServer(named, operands, args, verb);
}

function findCommand({ operands, all }: Args, words: readonly string[], verb: string): ServerTarget {
  const [command, ...args] = words;
  if (!command) {
    const state = command === undefined ? "no command follows --" : "the command after -- is empty";
    throw new UsageError(`Cannot ${verb} a server: ${state}; write the command that starts the server`);
  }
  return { target: { command, args, env: readVariables(all.env), exitMs: EXIT_MS }, name: toShell(words), operands };
}

async function loadServer(
  named: string | undefined,
  operands: readonly string[],
  args: Args,
  verb: string,
): Promise<ServerTarget> {
  // Redirect the console, because output from the loaded file must not mix with the result on standard output.
  guardConsole();
  const path = named ?? await findTarget();
  const { server } = path === undefined ? { server: demo() } : await load(path);
  const name = path ?? "the demonstration";
  const choice = { target: name, verb };
  const endpoint = chooseEndpoint(server, args.flags.server, choice);
  const target = await enterEndpoint(endpoint, readParams(args), choice);
  return { target, name, operands, close: () => server.close() };
}

/** Reads the values of `--env`: names of variables, or `NAME=VALUE`. */
function readVariables(words: readonly string[] = []): Readonly<Record<string, string>> {
  return Object.fromEntries(words.flatMap((word) => {
    const equals = word.indexOf("=");
    if (equals > 0) return [[word.slice(0, equals), word.slice(equals + 1)]];
    return word.split(",").filter(Boolean).map((name) => {
      const value = /^[A-Za-z_]\w*$/.test(name) ? platform.env(name) : undefined;
      if (value !== undefined) return [name, value];
      throw new CliError(
        `Cannot pass ${name}: the environment has no such variable; set it, or write --env ${name}=VALUE`,
      );
    });
  }));
}
