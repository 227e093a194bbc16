/**
 * Opens a channel to a server at a URL, in a child process, or in this process.
 */
import { globalFetch } from "./redirects.ts";
import { isRemoteError, quote } from "../core/protocol/errors.ts";
import { toMessage } from "../core/kit/error_state.ts";
import { hideCredentials } from "../core/kit/url_text.ts";
import { INTERNALS } from "../core/internals.ts";
import { checkOptions } from "../core/known_options.ts";
import type { Served } from "../server/transports/channel.ts";
import type { Channel, Trace } from "./channel.ts";
import { type ClientAuth, createSender } from "./client_auth.ts";
import { COMMAND, type CommandTarget, startChild } from "./child_process.ts";
import { withTimeLimit } from "./deadline.ts";
import { isModernRefusal } from "./detect_era.ts";
import { HttpChannel, type HttpChannelOptions } from "./http_channel.ts";
import { lineChannel, type OpenLineTransport } from "./line_channel.ts";
import { childTransport, memoryTransport } from "./line_transports.ts";
import type { Message } from "./message.ts";
import { sseTransport } from "./sse_transport.ts";

/**
 * The server to connect to: an http or https URL, a command that starts a server over stdio, or a server in this
 * process that `createServer` has returned.
 */
export type Target = string | URL | CommandTarget | Served;

/** Options of the connection. */
export interface TargetOptions {
  /** Replaces the global `fetch`. For example, pass a server's `fetch` to test without a port. */
  readonly fetch?: (request: Request) => Promise<Response>;
  /** Headers to add to every HTTP request, such as `authorization`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Supplies tokens for HTTP requests, instead of a fixed `authorization` header. */
  readonly auth?: ClientAuth;
  /**
   * Called with the text that the child process writes to standard error. By default, the child process inherits this
   * process's standard error.
   */
  readonly onStderr?: (text: string) => void;
  /** Path parameters for a server in this process, such as `{ tenant: "acme" }` for the path `/tenants/:tenant/mcp`. */
  readonly pathParams?: Readonly<Record<string, unknown>>;
  /** Aborts connecting. Has no effect after the client is connected. */
  readonly signal?: AbortSignal;
  /** Timeout of each request in milliseconds. A request can set its own `timeoutMs`. Defaults to 60,000. */
  readonly timeoutMs?: number;
  /** Callbacks that observe all messages and HTTP exchanges. */
  readonly trace?: Trace;
}

/** Opens a channel. `onMessage` receives messages outside of requests, and `onBroken` receives errors. */
export type Open = (hooks: {
  readonly onMessage: (message: Message) => void;
  readonly onBroken: (error: unknown) => void;
}) => Channel;

export const DEFAULT_TIMEOUT_MS = 60_000;

/** @throws {TypeError} if the target is invalid. */
export function checkTarget(target: Target): void {
  if (typeof target === "string" || target instanceof URL) return checkUrl(String(target));
  if (INTERNALS in Object(target)) return;
  const { command } = Object(target);
  if (typeof command !== "string" || !command) {
    throw new TypeError(
      "Cannot connect: the target is invalid; pass a URL, { command, args }, or a server from createServer",
    );
  }
  checkOptions("start the command", target, COMMAND);
}

function checkUrl(url: string): void {
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return;
  throw new TypeError(
    `Cannot connect to ${
      quote(hideCredentials(url))
    }: the target is not an http or https URL; to start a command, pass { command, args }`,
  );
}

export function openTarget(target: Target, options: TargetOptions): Open {
  const { trace } = options;
  if (typeof target === "string" || target instanceof URL) {
    const channel = toHttp(target, options);
    const toWarning = (error: unknown) => new Error(`The connection was lost, trying to resume: ${toMessage(error)}`);
    return ({ onBroken }) => new HttpChannel({ ...channel, onLost: (error) => onBroken(toWarning(error)) });
  }
  if (options.auth) {
    throw new TypeError("Cannot connect: auth requires a URL as the target; remove auth");
  }
  if (INTERNALS in target) return openLines(memoryTransport(target), trace);
  return (hooks) => openLines(openCommand(target, options, hooks.onBroken), trace)(hooks);
}

export interface Failed extends TargetOptions {
  readonly error: unknown;
  /** Whether the attempt used only legacy revisions. */
  readonly wasLegacy: boolean;
}

/**
 * Finds another transport or another process for a legacy server after an attempt to connect has failed. Returns
 * `undefined` if a further attempt would not help.
 */
export async function findOther(target: Target, { error, wasLegacy, ...options }: Failed): Promise<Open | undefined> {
  if (typeof target === "string" || target instanceof URL) {
    return hasNoEndpoint(error) ? await findStream(toHttp(target, options), options) : undefined;
  }
  // Start the command again, because some legacy servers exit when they receive an unknown request.
  const ended = error instanceof DOMException && error.name === "NetworkError";
  return "command" in target && ended && !wasLegacy ? openTarget(target, options) : undefined;
}

function hasNoEndpoint(error: unknown): boolean {
  return isRemoteError(error) && [400, 404, 405].includes(error.status ?? 0) && !isModernRefusal(error);
}

// Opens the transport of revision 2024-11-05. Returns `undefined` if the server does not support this transport.
async function findStream(
  channel: HttpChannelOptions,
  { signal, timeoutMs = DEFAULT_TIMEOUT_MS, trace }: TargetOptions,
): Promise<Open | undefined> {
  const state = "Cannot get the URL for messages: the server did not send the URL within the timeout (timeoutMs)";
  const limit = { ms: timeoutMs, signal, state };
  const open = await withTimeLimit(limit, (signal) => sseTransport({ ...channel, signal }));
  return open && openLines(open, trace);
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
  const { fetch = globalFetch, headers, trace, auth } = options;
  if (auth && new Headers(headers).has("authorization")) {
    throw new TypeError(
      "Cannot connect: both auth and headers set the Authorization header; remove auth, or authorization from headers",
    );
  }
  const url = String(target);
  return { url, sender: createSender(url, fetch, auth), headers, trace };
}
