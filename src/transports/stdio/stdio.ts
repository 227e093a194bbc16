/**
 * Serves MCP over standard input and output, with one JSON message per line.
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
import { bun, deno, node } from "../../runtime.ts";
import { guardConsole } from "./stdout_guard.ts";
import { LineSplitter } from "./line_splitter.ts";
import { findNodeWrite, readNodeStream, writeNodeStream } from "./node_streams.ts";
import { listenToSignals } from "./stop_signals.ts";
import type { Account } from "../../core/capacity/account.ts";
import type { Principal } from "../../core/call/context.ts";
import { findRoot } from "../../core/call/container.ts";
import { INTERNALS } from "../../core/call/internals.ts";
import { checkOptions, type KnownOptions } from "../../core/call/known_options.ts";
import { enterServer, openPipe, type Pipe, type PipeServer, type Write } from "../channel.ts";
import { Outbox } from "../outbox.ts";

export type { PipeServer };

/** Options of the stdio transport. */
export interface StdioOptions {
  /** Source of the bytes. Defaults to standard input. */
  readonly input?: ReadableStream<Uint8Array>;
  /** Writes bytes. Settles when the output accepts more. Defaults to standard output. */
  readonly output?: (bytes: Uint8Array) => Promise<unknown>;
  /** Milliseconds for which running calls may finish after the input has ended. Defaults to 1500. */
  readonly drainMs?: number;
  /** The caller, for `ctx.principal`. Defaults to a caller with all scopes, because the client started this process. */
  readonly principal?: Principal;
  /** Parameters of the server's path, such as `{ tenant: "acme" }` for `/tenants/:tenant/mcp`. */
  readonly params?: Readonly<Record<string, unknown>>;
  /** Signal that stops serving when it aborts, as if the input had ended. */
  readonly signal?: AbortSignal;
}

const OPTIONS: KnownOptions<keyof StdioOptions> = {
  names: { input: true, output: "function", drainMs: true, principal: true, params: true, signal: true },
};

/**
 * Serves MCP until the input ends. Then gives running calls time to finish, cancels all other calls, and settles when
 * all responses are written.
 *
 * Creates the services of the server before it reads, and rejects if a service fails. At the end, disposes them, unless
 * the server has served HTTP requests too. If there are services, Ctrl-C and SIGTERM end the process only after the
 * services are disposed. With `input` or `signal`, the caller must handle these signals.
 *
 * Meanwhile, `console.log` and other output of this process go to standard error, because standard output carries the
 * protocol. The output of child processes that inherit standard output is not redirected.
 */
export async function serveStdio(server: PipeServer, options: StdioOptions = {}): Promise<void> {
  checkOptions("serve stdio", options, OPTIONS);
  const restore = options.output ? () => {} : guardConsole();
  try {
    const { params } = options;
    const needsEntry = params || server[INTERNALS].enter;
    await servePipe(needsEntry ? await enterServer(server, params) : server, options);
  } finally {
    restore();
  }
}

async function servePipe(server: PipeServer, options: StdioOptions): Promise<void> {
  const { drainMs = 1500, principal } = options;
  const { host } = server[INTERNALS];
  const container = host && findRoot(host).container;
  const input = options.input ?? standardInput();
  const writer = new LineWriter(options.output ?? standardOutput(), () => pipe.account);
  const pipe: Pipe = openPipe(server, { write: writer.write, principal, transport: "stdio" });
  const lines = new LineSplitter(pipe.lineBytes);
  // Without services, a signal may end the process at once. With `input` or `signal`, the caller handles signals.
  const listens = (container || host?.lives) && !options.input && !options.signal;
  const signals = listens ? listenToSignals() : undefined;
  const signal = signals?.signal ?? options.signal;
  const reader = input.getReader();
  const stop = () => void reader.cancel().catch(() => {});
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
        if (wait) await wait;
        // Do not start all messages of a chunk at once, because only a response shows whether the client still reads.
        else if (pipe.unanswered >= slow + Math.max(AHEAD, slow / 4)) {
          await untilAnswered(pipe, slow);
          slow = pipe.unanswered;
        }
      }
      if (done) break;
    }
    const { promise: grace, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, drainMs);
    await Promise.race([pipe.idle(), writer.lost, grace]);
    // The timer must keep the process alive: the input has ended, and a call may wait for something that does not keep
    // the process alive. Without the timer, the process could exit before the call is cancelled and its error is
    // written.
    clearTimeout(timer);
  } finally {
    signal?.removeEventListener("abort", stop);
    stopExpiry();
    pipe.close();
    await Promise.race([writer.flush(), writer.lost]);
    await Promise.all([container?.rest(), host?.lives?.rest()]);
    signals?.finish();
  }
}

/** Settles when a signal aborts. */
function aborted(signal: AbortSignal): Promise<unknown> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}

/**
 * Number of messages that start before the reader waits for their replies. If many messages wait for I/O, the number is
 * instead a quarter of these messages, because waiting for a turn of the event loop takes a third of the time of such a
 * call.
 */
const AHEAD = 4;

/**
 * Waits until at most `count` messages are unanswered, or for one turn of the event loop. A message without a reply by
 * then is waiting for I/O, perhaps for the next message.
 */
async function untilAnswered(pipe: Pipe, count: number): Promise<void> {
  const { promise: turned, resolve } = Promise.withResolvers<void>();
  const turn = setImmediate(resolve);
  await Promise.race([pipe.untilAnswered(count), turned]);
  clearImmediate(turn);
}

/** Number of characters in the queue above which calls wait. */
const MAX_WAITING = 1024 * 1024;
/** Maximum number of characters per write. */
const WRITE_SIZE = 1024 * 1024;

/** Writes lines. Lines that are queued together share a write. Writes never overlap. */
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

  /** Writes a line. Returns a promise if the writer should wait until the client has read more. */
  readonly write: Write = (text) => {
    // A client that exceeds its memory limit with unread data is treated as disconnected.
    if (!this.#outbox.push(`${text}\n`)) this.#onDisconnect();
    this.#writing ??= this.#drain();
    return this.#outbox.length > MAX_WAITING ? this.#outbox.untilRoom() : undefined;
  };

  /** Settles when all lines are written. */
  flush(): Promise<void> {
    return this.#writing ?? Promise.resolve();
  }

  async #drain(): Promise<void> {
    // Wait for a microtask, so that the responses to one chunk of input share a write.
    await undefined;
    try {
      while (this.#outbox.length) await this.#output(this.#encoder.encode(this.#outbox.take(WRITE_SIZE)));
    } catch {
      this.#outbox.clear();
      this.#onDisconnect();
    }
    this.#writing = undefined;
  }
}

// Read both streams before the guard starts, because the guard redirects output to standard error.
const write = deno?.stdout.write.bind(deno.stdout);
const stdout = bun?.stdout;

function standardInput(): ReadableStream<Uint8Array> {
  if (deno) return deno.stdin.readable;
  if (bun) return bun.stdin.stream();
  if (node) return readNodeStream(node.stdin);
  throw new Error("Cannot read standard input: this is neither Deno, Bun nor Node; pass `input` and `output`");
}

function standardOutput(): (bytes: Uint8Array) => Promise<unknown> {
  if (write) return (bytes) => writeAll(write, bytes);
  if (bun) return bun.write.bind(bun, stdout);
  if (node) {
    const write = findNodeWrite(node);
    return (bytes) => writeNodeStream(write, bytes);
  }
  throw new Error("Cannot write standard output: this is neither Deno, Bun nor Node; pass `input` and `output`");
}

async function writeAll(write: (bytes: Uint8Array) => Promise<number>, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await write(bytes.subarray(at));
}
