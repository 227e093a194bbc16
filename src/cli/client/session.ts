/**
 * What a command does with a server: the words that name it to a client that is connected, until it is closed.
 *
 * @module
 */
import type { Client } from "../../client/calls.ts";
import type { ConnectOptions } from "../../client/connect.ts";
import { connect } from "../../client/connect.ts";
import { VERSIONS } from "../../client/detect_era.ts";
import { RpcError } from "../../client/rpc_error.ts";
import type { Target } from "../../client/target.ts";
import { isObject } from "../../protocol/jsonrpc.ts";
import { guardConsole } from "../../transports/stdio/stdout_guard.ts";
import type { Args, Flags } from "../args.ts";
import { type Command, toShell } from "../command.ts";
import { demo } from "../demo.ts";
import { readHeaders } from "../headers.ts";
import { platform } from "../platform.ts";
import { findTarget, load } from "../load.ts";
import { Problem, ServerProblem, UsageProblem } from "../problem.ts";
import { toLine, toPlain } from "./terminal_text.ts";
import { tellLine } from "./screen.ts";

/** The flags of every command that asks a server. */
export const SERVER_FLAGS: Flags = { header: true, env: true, timeout: true, revision: true, json: false };

/** What a shell offers for their words. */
export const SERVER_OFFERS = { operands: "files", flags: { revision: VERSIONS } } as const satisfies Command["offers"];

/** What the usage of these commands says of the server and of their flags. */
export const SERVER_USAGE =
  `The server is named first: the URL of one that runs, or a file, config file or folder as for serve. Or it is named last:
what follows -- is the command that starts a server on standard input and output, and then no other server is named.

--header N=V  a header of every request to a URL, such as authorization="Bearer …"; may be there more than once
--env A,B     variables that the command gets beside PATH, HOME and the like; N=V gives one a value
--timeout S   seconds that the server may take for an answer; 30 if nothing is said, 0 for any time
--revision R  the one revision to speak: ${VERSIONS.join(", ")}
--json        print everything as one JSON document`;

/** A server that a command was given, and what the command was given beside it. */
export interface Session {
  readonly client: Client;
  /** The words after the server's. */
  readonly operands: readonly string[];
  /** How the user named the server. */
  readonly name: string;
  /** Aborted when the user ends the command. */
  readonly signal: AbortSignal;
  /** Milliseconds that the server may take for an answer. */
  readonly timeoutMs: number;
}

/** What a command does beside what every one does. */
export interface SessionOptions {
  /** What is done, such as `call`. */
  readonly verb: string;
  /** Whether the file here, or the demonstration, is taken if no server is named. */
  readonly isOptional?: boolean;
  /** What the client does beside calling, for a server that the user named so. */
  readonly toOptions?: (
    name: string,
  ) => Pick<ConnectOptions, "onElicit" | "onElicitUrl" | "roots" | "logLevel" | "onNotification">;
}

/** Milliseconds that a process gets to end by itself. */
const EXIT_MS = 500;
/** Milliseconds to take leave of a server. */
const LEAVE_MS = 2500;
/** Warnings that are told. */
const MOST_TOLD = 10;
/** Warnings after which a server is taken for something else: it may write without end. */
const MOST_WARNINGS = 1000;
/** Milliseconds after which a person is told what is waited for. */
const PATIENCE_MS = 3000;

/**
 * Connects to the server that `args` name, and has it used. Ctrl-C cancels what runs, and the answer is then 130.
 *
 * @throws {Problem} if there is no such server, or it does not answer as it should.
 */
export async function withServer(
  args: Args,
  { verb, isOptional = false, toOptions }: SessionOptions,
  use: (session: Session) => Promise<number>,
): Promise<number> {
  const { target, name, operands, close } = await findServer(args, verb, isOptional);
  const headers = readHeaders(args.all.header);
  if (Object.keys(headers).length && typeof target !== "string") {
    throw new UsageProblem(`Cannot send headers to ${name}: they are for a URL; leave out --header`);
  }
  const timeoutMs = readTimeout(args.flags.timeout ?? "30");
  const stop = new AbortController();
  let exitCode = 130;
  platform.onSignal((code) => {
    if (stop.signal.aborted) platform.exit(code);
    exitCode = code;
    stop.abort(new DOMException("The user ended the command", "AbortError"));
  });
  const { signal } = stop;
  let warnings = 0;
  let client: Client | undefined;
  const waiting = setTimeout(() => {
    if (platform.terminal.isAt("errors")) tellLine(`Waiting for ${name} … (Ctrl-C ends it)`);
  }, PATIENCE_MS);
  try {
    client = await connect(target, {
      ...toOptions?.(name),
      headers,
      signal,
      timeoutMs,
      probeMs: Math.min(5000, timeoutMs),
      versions: readVersions(args.flags.revision),
      onWarning(text) {
        if (warnings < MOST_TOLD) tellLine(toLine(text));
        if (++warnings === MOST_TOLD) tellLine("What else the server does wrong is not told.");
        if (warnings === MOST_WARNINGS) stop.abort(new ServerProblem(`Cannot ask ${name}: what it writes is not MCP`));
      },
    });
    clearTimeout(waiting);
    return await use({ client, operands, name, signal, timeoutMs });
  } catch (error) {
    if (signal.reason instanceof Problem) throw signal.reason;
    if (signal.aborted) return exitCode;
    throw toProblem(error, name);
  } finally {
    clearTimeout(waiting);
    // A server that does not let go is not waited for.
    await Promise.race([leave(client, close), new Promise((resolve) => setTimeout(resolve, LEAVE_MS))]);
  }
}

async function leave(client: Client | undefined, close: (() => Promise<void>) | undefined): Promise<void> {
  await client?.close().catch(() => {});
  await close?.().catch(() => {});
}

interface Found {
  readonly target: Target;
  readonly name: string;
  readonly operands: readonly string[];
  close?(): Promise<void>;
}

async function findServer({ operands, rest, all }: Args, verb: string, isOptional: boolean): Promise<Found> {
  if (rest) {
    const [command, ...args] = rest;
    if (command === undefined) {
      throw new UsageProblem(`Cannot ${verb}: write the command that starts a server after --`);
    }
    return { target: { command, args, env: readVariables(all.env), exitMs: EXIT_MS }, name: toShell(rest), operands };
  }
  if (all.env) {
    throw new UsageProblem(`Cannot use --env: it is for a command that starts a server; write that after --`);
  }
  const [named, ...more] = operands;
  if (named === undefined && !isOptional) {
    throw new UsageProblem(
      `Cannot ${verb} a server: give its URL, such as http://127.0.0.1:3000/mcp, its file, or -- and its command`,
    );
  }
  if (named !== undefined && /^https?:/i.test(named)) {
    if (!URL.canParse(named)) throw new UsageProblem(`Cannot ${verb} ${named}: it is no URL; check its spelling`);
    return { target: named, name: named, operands: more };
  }
  if (named !== undefined && /^[\w.-]+:\d+(\/|$)/.test(named)) {
    throw new UsageProblem(`Cannot ${verb} ${named}: write http:// before it`);
  }
  // What the file prints is no answer of its server.
  guardConsole();
  const path = named ?? await findTarget();
  const { server } = path === undefined ? { server: demo() } : await load(path);
  return { target: server, name: path ?? "the demonstration", operands: more, close: () => server.close() };
}

function readVariables(words: readonly string[] = []): Readonly<Record<string, string>> {
  return Object.fromEntries(words.flatMap((word) => {
    const at = word.indexOf("=");
    if (at > 0) return [[word.slice(0, at), word.slice(at + 1)]];
    return word.split(",").filter(Boolean).map((name) => {
      const value = /^[A-Za-z_]\w*$/.test(name) ? platform.env(name) : undefined;
      if (value !== undefined) return [name, value];
      throw new Problem(`Cannot hand on ${name}: the environment has none; set it, or write --env ${name}=VALUE`);
    });
  }));
}

function readTimeout(text: string): number {
  const seconds = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text)) {
    throw new UsageProblem(`Cannot wait ${text}: write --timeout with a number of seconds`);
  }
  return seconds ? seconds * 1000 : Infinity;
}

function readVersions(revision: string | undefined): readonly string[] | undefined {
  if (revision === undefined || VERSIONS.includes(revision)) return revision === undefined ? VERSIONS : [revision];
  throw new UsageProblem(`Cannot speak ${revision}: there is no such revision; there are ${VERSIONS.join(", ")}`);
}

/** What went wrong, in words of the user. What is no error of the server's is thrown on. */
function toProblem(error: unknown, name: string): unknown {
  if (error instanceof Problem || !(error instanceof Error)) return error;
  const message = toPlain(error.message).slice(0, 2000);
  if (error instanceof RpcError) {
    const code = error.code ? ` (${error.code})` : "";
    return new ServerProblem(`Cannot ask ${name}: ${message}${code}${tellRemedy(error)}${tellErrorId(error)}`);
  }
  if (message.startsWith("Cannot reach")) return new Problem(`${message}; is the server running?`);
  if (message.startsWith("Cannot start")) return new Problem(`${message}; check the command`);
  if (error.name === "TimeoutError") {
    return new ServerProblem(`Cannot ask ${name}: ${message}; allow more with --timeout`);
  }
  return new ServerProblem(`Cannot ask ${name}: ${message}`);
}

/** What a server's operator finds the error by. */
function tellErrorId({ data }: RpcError): string {
  const id = isObject(data) && typeof data.errorId === "string" ? toLine(data.errorId, 100) : "";
  return id && `; its log has more under the error id ${id}`;
}

function tellRemedy({ code, status }: RpcError): string {
  if (status === 401 || status === 403) return `; show who you are with --header authorization="Bearer …"`;
  return code === 0 && status !== undefined ? "; check the path" : "";
}
