/**
 * Sends HTTP requests, with limits on time and size. Unless a host is allowed, the requests cannot reach this machine
 * or its network.
 */
import { fetchOnce } from "../core/fetch_once.ts";
import { ToolError } from "../library.ts";
import { deadline } from "../core/kit/deadline.ts";
import { hasErrorCode } from "../core/kit/error_code.ts";
import { startResponseTimer } from "../core/kit/timer.ts";
import { checkOptions, type KnownOptions, show } from "../core/known_options.ts";
import { bun, deno, type DenoHttpClient } from "../core/runtime.ts";
import { systemClock } from "../core/timers.ts";
import { lookUp } from "./look_up.ts";
import { isIpAddress, isPrivateAddress } from "./private_addresses.ts";

/** The limits of a request that {@linkcode sendRequest} sends. All are optional. */
export interface RequestLimits {
  /** Timeout of the request with its redirects and the body of the response, in milliseconds. Defaults to 30,000. */
  readonly timeoutMs?: number;
  /** Maximum bytes of the body of the response, after decompression. Defaults to 1,048,576. */
  readonly maxBytes?: number;
  /**
   * Hosts on this machine or on a private network that the request may reach, such as `localhost:8080`. A redirect can
   * lead to such a host only from another host of the list. By default, requests can reach only public hosts.
   */
  readonly allowPrivate?: readonly string[];
  /**
   * Responds to the requests in this process, such as the `fetch` of a web app. Redirects to another origin are then
   * refused. By default, requests are sent over the network.
   */
  readonly fetch?: (request: Request) => Response | Promise<Response>;
}

export const POSITIVE = {
  findProblem: (value: unknown) =>
    typeof value === "number" && value > 0 && value < Infinity
      ? undefined
      : `is ${show(value)}; it must be a finite number above 0`,
};

const LIMITS: KnownOptions<keyof RequestLimits> = {
  names: { timeoutMs: POSITIVE, maxBytes: POSITIVE, allowPrivate: "texts", fetch: "function" },
};

const MAX_REDIRECTS = 5;
const REDIRECTS = [301, 302, 303, 307, 308];
/** Statuses of responses that cannot have a body. */
const EMPTY = [204, 205, 304];

/**
 * Sends a request, and follows at most five redirects. The request and its redirects can reach only public hosts, unless
 * `allowPrivate` lists the host. A redirect to another origin gets neither the headers nor the body of the request.
 * Aborts when the signal of the request aborts.
 *
 * The host name is looked up before each connection. For `http:` URLs, Deno and Bun then connect to the address that was
 * checked; Deno needs the network permission for this address, and otherwise connects by name. For `https:` URLs, the
 * certificate proves the host.
 *
 * ```ts ignore This address does not exist.
 * import { sendRequest } from "@x/mcp/handlers";
 *
 * const response = await sendRequest(new Request("https://api.example.com/today"), { maxBytes: 65_536 });
 * console.log(response.status, await response.text());
 * ```
 *
 * The body of the response fails with a `ToolError` if it is larger than `maxBytes`, or does not end in time.
 *
 * @throws {ToolError} if the target is not allowed, or does not respond.
 * @throws {TypeError} if a limit is unknown or invalid.
 */
export async function sendRequest(request: Request, limits: RequestLimits = {}): Promise<Response> {
  checkOptions("send a request", limits, LIMITS);
  const { url, method, signal } = request;
  // Copy the headers first, because Bun forgets the boundary of a form when its body is read.
  const headers = new Headers(request.headers);
  const body = request.body ? request.arrayBuffer() : undefined;
  return await sendGuarded({ url: new URL(url), method, headers, body, signal }, limits);
}

/** A request to send. A redirect may need its body once more, so the body is not a stream. */
export interface Outgoing {
  readonly url: URL;
  readonly method: string;
  readonly headers: Headers;
  readonly body?: Body | Promise<Body>;
  /** Aborts the request and its response. */
  readonly signal: AbortSignal;
}

type Body = string | Blob | ArrayBuffer;

/**
 * Sends a request for {@linkcode sendRequest} and for handlers, whose options have been checked. Takes the parts of a
 * request, because a `Request` would have to be taken apart again.
 */
export async function sendGuarded(outgoing: Outgoing, limits: RequestLimits): Promise<Response> {
  const { timeoutMs = 30_000, maxBytes = 1_048_576 } = limits;
  // Nothing but the timer keeps the process alive while an app in this process responds.
  const exchange = new Exchange(outgoing.signal, timeoutMs, !limits.fetch);
  const toError = (error: unknown): unknown => {
    // An error of an app in this process is not for the client.
    if (error instanceof ToolError || limits.fetch && !exchange.signal.aborted) return error;
    // Errors contain only the origin of the URL, because the path and query may contain secrets.
    const { protocol, host } = outgoing.url;
    const state = exchange.isTooLate ? `it did not respond within ${timeoutMs} ms (timeoutMs)` : describeCause(error);
    return new ToolError(`Cannot reach ${protocol}//${host}: ${state}`);
  };
  try {
    const response = await deadline(sendFollowing(outgoing, limits, exchange.signal), { signal: exchange.signal });
    return limitResponse(response, { maxBytes, exchange, toError });
  } catch (error) {
    exchange.end();
    throw toError(error);
  }
}

/**
 * The time that a request and the body of its response take. `AbortSignal.timeout` and `AbortSignal.any` would take more
 * time than a small request, and would keep their memory until the timeout.
 */
class Exchange {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal;
  readonly #isBackground: boolean;
  readonly #due: number;
  readonly #onAbort: () => void;
  #stopTimer: () => void;
  /** Whether the timeout has ended the exchange. */
  isTooLate = false;

  /** `isBackground` is whether the process can exit before the response begins. */
  constructor(outer: AbortSignal, timeoutMs: number, isBackground: boolean) {
    this.#outer = outer;
    this.#isBackground = isBackground;
    this.#due = systemClock.now() + timeoutMs;
    this.#onAbort = () => this.#controller.abort(outer.reason);
    this.#stopTimer = this.#startTimer(timeoutMs, isBackground);
    outer.addEventListener("abort", this.#onAbort);
    if (outer.aborted) this.#onAbort();
  }

  /** Aborts at the timeout, or with the signal of the request. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Lets the process exit although the body was not read, because the caller may not need the body. */
  toBackground(): void {
    if (this.#isBackground) return;
    this.#stopTimer();
    this.#stopTimer = this.#startTimer(Math.max(0, this.#due - systemClock.now()), true);
  }

  #startTimer(ms: number, background: boolean): () => void {
    return startResponseTimer(ms, () => {
      this.isTooLate = true;
      this.#controller.abort(new DOMException("The request took too long", "TimeoutError"));
    }, { clock: systemClock, background });
  }

  end(): void {
    this.#stopTimer();
    this.#outer.removeEventListener("abort", this.#onAbort);
  }
}

/** The parts of a request that a redirect can change. */
interface Hop {
  readonly url: URL;
  /** Whether the request may reach private hosts that are allowed. Not after a public host has answered. */
  readonly isTrusted: boolean;
  readonly method: string;
  readonly headers: Headers;
  readonly body?: Body;
}

async function sendFollowing(
  { url: first, method, headers, body }: Outgoing,
  limits: RequestLimits,
  signal: AbortSignal,
): Promise<Response> {
  let hop: Hop = { url: first, isTrusted: true, method, headers, body: body && await body };
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const response = await sendOnce(hop, limits, signal);
    const location = response.headers.get("location");
    if (location === null || !REDIRECTS.includes(response.status)) return response;
    await response.body?.cancel();
    const isTrusted = hop.isTrusted && isAllowed(hop.url, limits);
    hop = { ...redirect(hop, response.status, location), isTrusted };
    if (limits.fetch && hop.url.origin !== first.origin) {
      throw new ToolError(
        `Cannot follow the redirect from ${first.origin} to ${hop.url.origin}: the app responds only in this process`,
      );
    }
  }
  throw new ToolError(
    `Cannot reach ${first.host}: there were more than ${MAX_REDIRECTS} redirects; use the URL of the final target`,
  );
}

async function sendOnce(
  { url, isTrusted, ...init }: Hop,
  limits: RequestLimits,
  signal: AbortSignal,
): Promise<Response> {
  if (limits.fetch) return await limits.fetch(new Request(url, { ...init, signal, redirect: "manual" }));
  const address = await checkTarget(url, isAllowed(url, limits), isTrusted);
  const pinned = address === undefined ? undefined : pin(url, init.headers, address);
  return await fetchOnce(pinned?.url ?? url, { ...init, ...pinned?.init, signal, redirect: "manual" });
}

/** Headers and body are never sent to another origin, because they may contain secrets. */
function redirect({ url, method, headers, body }: Hop, status: number, location: string): Omit<Hop, "isTrusted"> {
  if (!URL.canParse(location, url.href)) {
    // The location may repeat a secret of the request.
    throw new ToolError(`Cannot follow the redirect from ${url.host}: its location is not a URL`);
  }
  const target = new URL(location, url.href);
  const isCrossOrigin = target.origin !== url.origin;
  headers = new Headers(isCrossOrigin ? [] : headers);
  if (status === 303 || (status < 303 && method === "POST")) {
    method = method === "HEAD" ? "HEAD" : "GET";
    body = undefined;
    headers.delete("content-type");
  }
  if (isCrossOrigin && (body !== undefined || method !== "GET" && method !== "HEAD")) {
    throw new ToolError(
      `Cannot follow the redirect from ${url.origin} to ${target.origin}: only GET and HEAD requests can be redirected to another origin; ` +
        `if you trust ${target.origin}, use its URL`,
    );
  }
  return { url: target, method, headers, body };
}

/**
 * Rejects URLs that are not http or https, and private hosts that are not allowed. Host names are resolved, because a
 * host name may resolve to a private address. Returns an address of the host name, or `undefined` if the host is an
 * address, or is allowed. `isListed` is whether the list of allowed hosts has the host.
 */
async function checkTarget(url: URL, isListed: boolean, isTrusted: boolean): Promise<string | undefined> {
  const { protocol, host, hostname } = url;
  if (protocol !== "http:" && protocol !== "https:") {
    throw new ToolError(`Cannot reach a ${protocol} URL: its scheme is not allowed; use http or https`);
  }
  if (url.username || url.password) {
    throw new ToolError(
      `Cannot reach ${host}: the URL contains credentials; send them in the Authorization header instead`,
    );
  }
  if (isListed && isTrusted) return;
  const isAddress = isIpAddress(hostname);
  const addresses = isAddress ? [hostname.replace(/[[\]]/g, "")] : await lookUpAddresses(url);
  const address = addresses.find(isPrivateAddress);
  if (address !== undefined) {
    const remedy = isListed
      ? "a public host has redirected to it; if you trust this host, send the request to it"
      : `to allow this host, set allowPrivate: [${JSON.stringify(host)}]`;
    throw new ToolError(
      `Cannot reach ${host}: ${
        address === hostname ? "it" : address
      } is an address of this machine or its network; ${remedy}`,
    );
  }
  // Prefer IPv4, because many networks do not route IPv6.
  return isAddress ? undefined : addresses.find((each) => !each.includes(":")) ?? addresses[0];
}

function isAllowed({ host, hostname }: URL, { allowPrivate = [] }: RequestLimits): boolean {
  return allowPrivate.includes(host) || allowPrivate.includes(hostname);
}

async function lookUpAddresses(url: URL): Promise<readonly string[]> {
  const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  try {
    return await lookUp(url.hostname, port);
  } catch (error) {
    if (!hasErrorCode(error) || error.code !== "EPERM") throw error;
    throw new ToolError(
      `Cannot reach ${url.hostname}: looking up its address is not permitted; run with ` +
        `--allow-net=${url.hostname}:${port}`,
    );
  }
}

/** The URL and the options with which `fetch` connects to an address instead of a host name. */
interface Pinned {
  readonly url: URL;
  readonly init: { readonly headers: Headers; readonly client?: DenoHttpClient };
}

/** The client with which Deno sends the `Host` header of a request. Created when it is first needed. */
let client: DenoHttpClient | undefined;

/**
 * Returns a request that connects to a checked address, because the host name may have another address at the next
 * lookup. Returns `undefined` if the runtime cannot send the `Host` header, or for https, where the certificate proves
 * the host.
 */
function pin(url: URL, given: Headers, address: string): Pinned | undefined {
  if (url.protocol !== "http:") return;
  const host = address.includes(":") ? `[${address}]` : address;
  if (deno) {
    const name = `${host}:${url.port || 80}`;
    if (!deno.createHttpClient || deno.permissions?.querySync({ name: "net", host: name }).state !== "granted") return;
    client ??= deno.createHttpClient({ allowHost: true });
  } else if (!bun) return;
  const headers = new Headers(given);
  headers.set("host", url.host);
  const target = new URL(url);
  target.hostname = host;
  return { url: target, init: { headers, client } };
}

interface BodyLimits {
  readonly maxBytes: number;
  readonly exchange: Exchange;
  readonly toError: (error: unknown) => unknown;
}

/** Returns a response whose body fails if it is too large, or does not end in time. */
function limitResponse(response: Response, limits: BodyLimits): Response {
  const { status, statusText } = response;
  const headers = new Headers(response.headers);
  // The body has been decompressed.
  headers.delete("content-encoding");
  headers.delete("content-length");
  const body = response.body && !EMPTY.includes(status) ? limitBody(response.body, limits) : null;
  if (body) limits.exchange.toBackground();
  else limits.exchange.end();
  return new Response(body, { status, statusText, headers });
}

function limitBody(
  body: ReadableStream<Uint8Array>,
  { maxBytes, exchange, toError }: BodyLimits,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const { signal } = exchange;
  let left = maxBytes;
  let isOver = false;
  const end = () => {
    isOver = true;
    exchange.end();
  };
  return new ReadableStream<Uint8Array>({
    start(controller) {
      signal.addEventListener("abort", () => {
        if (isOver) return;
        end();
        controller.error(toError(signal.reason));
        void reader.cancel(signal.reason).catch(() => {});
      });
    },
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (isOver) return;
        if (done) {
          end();
          return controller.close();
        }
        // The reader of the body gets all bytes up to the limit.
        if (left > 0) controller.enqueue(value.subarray(0, left));
        left -= value.length;
        if (left >= 0) return;
        throw new ToolError(`Cannot read the response: it is larger than ${maxBytes} bytes (maxBytes)`);
      } catch (error) {
        if (isOver) return;
        end();
        controller.error(toError(error));
        void reader.cancel(error).catch(() => {});
      }
    },
    cancel(reason) {
      end();
      return reader.cancel(reason);
    },
  }, { highWaterMark: 0 });
}

function describeCause(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  const text = cause instanceof Error && !message.includes(cause.message) ? `${message}: ${cause.message}` : message;
  // Deno's errors contain the whole URL.
  return text.replace(/\b(https?:\/\/[^/?#\s()]+)[^\s()]*/g, "$1");
}
