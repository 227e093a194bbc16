/**
 * Where a server can be, and how messages get there.
 *
 * @module
 */
import { INTERNALS } from "../core/internals.ts";
import type { PipeServer } from "../transports/channel.ts";
import type { Channel, Trace } from "./channel.ts";
import { type CommandTarget, startChild } from "./child_process.ts";
import { isModernRefusal } from "./detect_era.ts";
import { httpChannel, type HttpChannelOptions } from "./http_channel.ts";
import { lineChannel, type OpenLineTransport } from "./line_channel.ts";
import { childTransport, memoryTransport } from "./line_transports.ts";
import type { Message } from "./message.ts";
import { startTimer } from "./delay.ts";
import { RpcError } from "./rpc_error.ts";
import { sseTransport } from "./sse_transport.ts";

/**
 * Where the server is: an http or https URL, a command that starts it and speaks over its standard streams, or a
 * server in this process, as `createServer` makes it.
 */
export type Target = string | URL | CommandTarget | PipeServer;

/** How to get to the server. */
export interface TargetOptions {
  /** Fetches; a server's own `fetch` will do, for tests without a port. */
  readonly fetch?: (request: Request) => Promise<Response>;
  /** Headers of every HTTP request, such as `authorization`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Given what a child process writes to standard error, which goes to that of this process if nothing is said. */
  readonly onStderr?: (text: string) => void;
  /** Gives up connecting, with the reason. */
  readonly signal?: AbortSignal;
  /** Milliseconds that a request may take if it does not say; 60,000 if nothing is said. */
  readonly timeoutMs?: number;
  /** Sees everything that goes over the wire. */
  readonly trace?: Trace;
}

/** Opens a channel to a server. */
export type Open = (hooks: {
  readonly onMessage: (message: Message) => void;
  readonly onBroken: (error: unknown) => void;
}) => Channel;

/** Milliseconds that a request may take if nothing is said. */
export const USUAL_MS = 60_000;

/** How to open a channel to a server. @throws {TypeError} if that is none. */
export function openTarget(target: Target, options: TargetOptions): Open {
  const { trace } = options;
  if (typeof target === "string" || target instanceof URL) {
    const channel = toHttp(target, options);
    return () => httpChannel(channel);
  }
  if (INTERNALS in target) return openLines(memoryTransport(target), trace);
  if (typeof target.command !== "string") {
    throw new TypeError("Cannot connect: give a URL, { command, args }, or a server made by createServer");
  }
  return (hooks) => openLines(openCommand(target, options, hooks.onBroken), trace)(hooks);
}

/** What a first attempt came to. */
export interface Failed extends TargetOptions {
  readonly error: unknown;
  /** Whether only a handshake was tried. */
  readonly wasOld: boolean;
}

/** Another way to shake hands with a server after the usual one has failed; nothing if there is none. */
export async function findOther(target: Target, { error, wasOld, ...options }: Failed): Promise<Open | undefined> {
  if (typeof target === "string" || target instanceof URL) {
    return hasNoEndpoint(error) ? await findStream(toHttp(target, options), options) : undefined;
  }
  // Some old servers end at the first word they do not know.
  const ended = error instanceof DOMException && error.name === "NetworkError";
  return "command" in target && ended && !wasOld ? openTarget(target, options) : undefined;
}

function hasNoEndpoint(error: unknown): boolean {
  return error instanceof RpcError && [400, 404, 405].includes(error.status ?? 0) && !isModernRefusal(error);
}

// The first revision had one address for the stream and another for messages.
async function findStream(
  channel: HttpChannelOptions,
  { signal, timeoutMs, trace }: TargetOptions,
): Promise<Open | undefined> {
  const late = new AbortController();
  const state = "Cannot get the address for messages: the stream names none";
  const stopTimer = startTimer(timeoutMs ?? USUAL_MS, () => late.abort(new DOMException(state, "TimeoutError")));
  try {
    const open = await sseTransport({
      ...channel,
      signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal,
    });
    return open && openLines(open, trace);
  } finally {
    stopTimer();
  }
}

function openLines(open: OpenLineTransport, trace: Trace | undefined): Open {
  return (hooks) => lineChannel({ open, trace, ...hooks });
}

function openCommand(
  target: CommandTarget,
  { onStderr }: TargetOptions,
  onBroken: (error: unknown) => void,
): OpenLineTransport {
  const child = startChild(target, { readsErrors: onStderr !== undefined });
  if (child.errors && onStderr) readErrors(child.errors, onStderr).catch(onBroken);
  return childTransport(child, { onBroken, exitMs: target.exitMs ?? 2000 });
}

async function readErrors(errors: ReadableStream<Uint8Array>, onText: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  for await (const bytes of errors) onText(decoder.decode(bytes, { stream: true }));
}

function toHttp(target: string | URL, options: TargetOptions): HttpChannelOptions {
  const { fetch = (request: Request) => globalThis.fetch(request), headers, trace } = options;
  const url = String(target);
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new TypeError(`Cannot connect to ${url}: give an http or https URL; for a command, { command, args }`);
  }
  return { url, fetch, headers, trace };
}
