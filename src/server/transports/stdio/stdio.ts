/**
 * Serves MCP over standard input and output, as newline-delimited JSON.
 *
 * ```ts ignore
 * import { serveStdio } from "@x/mcp/stdio";
 * import server from "./server.ts";
 *
 * await serveStdio(server);
 * ```
 *
 * @see specification/2026-07-28/basic/transports/stdio
 * @module
 */
import { deadline } from "../../../core/kit/deadline.ts";
import { bun, deno, node } from "../../../core/runtime.ts";
import { guardConsole } from "./stdout_guard.ts";
import { LineSplitter } from "../../../core/line_splitter.ts";
import { findNodeWrite, readNodeStream, writeNodeStream } from "../../../core/node_streams.ts";
import { exitSoon, listenToSignals } from "./stop_signals.ts";
import type { Account } from "../../capacity/account.ts";
import type { Principal } from "../../call/context.ts";
import { findRoot } from "../../call/container.ts";
import { INTERNALS } from "../../../core/internals.ts";
import { checkOptions, type KnownOptions } from "../../../core/known_options.ts";
import { enterServer, openPipe, type Pipe, type Served, type Write } from "../channel.ts";
import { Outbox } from "../outbox.ts";

export type { Served } from "../channel.ts";

/** Options of the stdio transport. */
export interface StdioOptions {
  /** Stream from which the server reads messages. Defaults to standard input. */
  readonly input?: ReadableStream<Uint8Array>;
  /** Writes bytes, and settles when the output accepts more. Defaults to writing to standard output. */
  readonly output?: (bytes: Uint8Array) => Promise<unknown>;
  /** Milliseconds that running calls have to finish after the input has ended. Defaults to 1500. */
  readonly drainMs?: number;
  /** The caller, for `ctx.principal`. Defaults to a caller with all scopes, because the client started this process. */
  readonly principal?: Principal;
  /** Values of the path parameters, such as `{ tenant: "acme" }` for `/tenants/:tenant/mcp`. */
  readonly pathParams?: Readonly<Record<string, unknown>>;
  /** When this signal aborts, the server stops, as if the input had ended. */
  readonly signal?: AbortSignal;
  /**
   * Whether the process ends with code 0 three seconds after standard input has ended and the server has stopped, even
   * if timers or connections of your code would keep it alive. Otherwise processes without a client would accumulate.
   * Set `false` if the process also does other work, such as serving HTTP. Defaults to `true`, but the process does not
   * end because of `input` or `signal`.
   */
  readonly exit?: boolean;
}

const OPTIONS: KnownOptions<keyof StdioOptions> = {
  names: {
    input: true,
    output: "function",
    drainMs: true,
    principal: true,
    pathParams: true,
    signal: true,
    exit: "boolean",
  },
  hints: { params: "pathParams" },
};

/**
 * Serves MCP until the input ends. Then waits at most `drainMs` milliseconds for running calls, cancels the remaining
 * calls, whose clients get an error, and settles when all responses are written, or when the client has read nothing
 * for 10 seconds.
 *
 * Creates the server's services before reading input, and rejects if a service fails. After the input has ended,
 * disposes the services, unless the server has also served HTTP requests. If the server has services, Ctrl-C and
 * SIGTERM end the process only after the services are disposed. If you pass `input` or `signal`, handle these signals
 * yourself.
 *
 * After standard input has ended and the server has stopped, the process ends with code 0 as soon as nothing else keeps
 * it running, and after 3 seconds in any case, unless `exit` is `false`.
 *
 * While the server runs, `console.log` and other output of this process go to standard error, because the client reads
 * messages from standard output. The output of child processes that inherit standard output is not redirected.
 */
export async function serveStdio(server: Served, options: StdioOptions = {}): Promise<void> {
  checkOptions("serve stdio", options, OPTIONS);
  const restore = options.output ? () => {} : guardConsole();
  try {
    const { pathParams, exit = true, input, signal } = options;
    const needsEntry = pathParams || server[INTERNALS].enter;
    await servePipe(needsEntry ? await enterServer(server, pathParams) : server, options);
    // A server should exit promptly when its input ends. See Shutdown in the specification.
    if (exit && !input && !signal?.aborted) exitSoon();
  } finally {
    restore();
  }
}

async function servePipe(server: Served, options: StdioOptions): Promise<void> {
  const { drainMs = 1500, principal } = options;
  const { host } = server[INTERNALS];
  const container = host && findRoot(host).container;
  const input = options.input ?? standardInput();
  const writer = new LineWriter(options.output ?? standardOutput(), () => pipe.account);
  const pipe: Pipe = openPipe(server, { write: writer.write, principal, transport: "stdio" });
  const lines = new LineSplitter(pipe.lineBytes);
  // Listen to signals only if there are services to dispose, and if the caller passes neither `input` nor `signal`.
  const listens = (container || host?.lives) && !options.input && !options.signal;
  const signals = listens ? listenToSignals() : undefined;
  const signal = signals?.signal ?? options.signal;
  const reader = input.getReader();
  const stopping = new AbortController();
  const stop = () => {
    stopping.abort();
    reader.cancel().catch(() => {});
  };
  signal?.addEventListener("abort", stop);
  if (signal?.aborted) stop();
  writer.lost.then(stop);
  const stopExpiry = pipe.watchCaller(undefined, stop);
  try {
    if (container) await Promise.race(signal ? [container.ready(), aborted(signal)] : [container.ready()]);
    while (true) {
      const { done, value } = await reader.read();
      let slow = pipe.unanswered;
      for (const line of done ? lines.end() : lines.push(value)) {
        const wait = "problem" in line ? pipe.reject(line.problem) : pipe.receive(line.text);
        // End the wait when serving ends, because the client may never read again.
        if (wait) await deadline(wait, { signal: stopping.signal }).catch(() => {});
        // Do not start all messages in a chunk at once, because only a written response shows whether the client still
        // reads.
        else if (pipe.unanswered >= slow + Math.max(AHEAD, slow / 4)) {
          await untilAnswered(pipe, slow);
          slow = pipe.unanswered;
        }
      }
      if (done) break;
    }
    // The timer must keep the process alive. The input has ended, and a call may wait for something that does not keep
    // the process alive. Without the timer, the process could exit before the call is cancelled and its error is
    // written.
    await deadline(Promise.race([pipe.idle(), writer.lost]), { ms: drainMs, onTimeout: () => {} });
  } finally {
    signal?.removeEventListener("abort", stop);
    stopExpiry();
    pipe.close(STOPPED);
    await Promise.race([writer.flush(), writer.lost]);
    await Promise.all([container?.disposeUnlessStarted(), host?.lives?.stopUnlessStarted()]);
    signals?.finish();
  }
}

const STOPPED =
  "Cannot finish the call: the server stopped before the call ended; keep the input open until the response arrives";

function aborted(signal: AbortSignal): Promise<unknown> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}

/**
 * Number of messages that the reader starts before it waits for their replies. If many messages wait for I/O, the
 * reader starts a quarter of their number instead, because waiting for a turn of the event loop takes a third as long
 * as a call with I/O.
 */
const AHEAD = 4;

/**
 * Waits until at most `count` messages are unanswered, but at most one turn of the event loop. A message without a
 * reply after this turn waits for I/O, or for a later message.
 */
async function untilAnswered(pipe: Pipe, count: number): Promise<void> {
  const { promise: turned, resolve } = Promise.withResolvers<void>();
  const turn = setImmediate(resolve);
  await Promise.race([pipe.untilAnswered(count), turned]);
  clearImmediate(turn);
}

/** Number of characters in the output queue above which calls wait (backpressure). */
const MAX_WAITING = 1024 * 1024;
/**
 * Milliseconds without reading after which the end of serving no longer waits for the client. Without a limit, a client
 * that does not read would keep the process and its services.
 */
const STALLED_MS = 10_000;
/** Maximum number of characters per write. */
const WRITE_SIZE = 1024 * 1024;

/** Writes lines, one write at a time. Lines that wait for the current write are written together. */
class LineWriter {
  /** Settles when the client stops reading. */
  readonly lost: Promise<void>;
  readonly #onDisconnect: () => void;
  readonly #output: (bytes: Uint8Array) => Promise<unknown>;
  readonly #outbox: Outbox;
  readonly #encoder = new TextEncoder();
  #writing?: Promise<void>;

  constructor(output: (bytes: Uint8Array) => Promise<unknown>, account: () => Account) {
    this.#output = output;
    this.#outbox = new Outbox({ texts: Infinity, characters: MAX_WAITING, account });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.lost = promise;
    this.#onDisconnect = resolve;
  }

  /** For backpressure, returns a promise that settles when the client has read more. */
  readonly write: Write = (text) => {
    // Treat a client whose unread data exceeds its memory limit as disconnected.
    if (!this.#outbox.push(`${text}\n`)) this.#onDisconnect();
    this.#writing ??= this.#drain();
    return this.#outbox.length > MAX_WAITING ? this.#outbox.untilRoom() : undefined;
  };

  /** Settles when all lines are written, or when the client has read nothing for {@linkcode STALLED_MS}. */
  async flush(): Promise<void> {
    for (let before = Infinity; this.#writing && this.#outbox.length < before;) {
      before = this.#outbox.length;
      await deadline(this.#writing, { ms: STALLED_MS, onTimeout: () => {} });
    }
  }

  async #drain(): Promise<void> {
    // Wait for a microtask, so that the responses to a chunk of input are written together.
    await undefined;
    try {
      while (this.#outbox.length) await this.#output(this.#encoder.encode(this.#outbox.read(WRITE_SIZE)));
    } catch {
      this.#outbox.clear();
      this.#onDisconnect();
    }
    this.#writing = undefined;
  }
}

// Read these properties before the guard replaces them.
const write = deno?.stdout.write.bind(deno.stdout);
const stdout = bun?.stdout;

function standardInput(): ReadableStream<Uint8Array> {
  if (deno) return deno.stdin.readable;
  if (bun) return bun.stdin.stream();
  if (node) return readNodeStream(node.stdin);
  throw new Error("Cannot read standard input: this runtime is not Deno, Bun or Node; pass `input` and `output`");
}

function standardOutput(): (bytes: Uint8Array) => Promise<unknown> {
  if (write) return (bytes) => writeAll(write, bytes);
  if (bun) return bun.write.bind(bun, stdout);
  if (node) {
    const write = findNodeWrite(node);
    return (bytes) => writeNodeStream(write, bytes);
  }
  throw new Error("Cannot write to standard output: this runtime is not Deno, Bun or Node; pass `input` and `output`");
}

async function writeAll(write: (bytes: Uint8Array) => Promise<number>, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await write(bytes.subarray(at));
}
