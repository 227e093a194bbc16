/**
 * Streamable HTTP: web-standard requests in, responses out.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http
 * @module
 */
import { INVALID_REQUEST, PARSE_ERROR } from "../../protocol/errors.ts";
import { type Incoming, parseMessage, toFailure } from "../../protocol/jsonrpc.ts";
import { type EventFields, type Journal, LATER, type Link, type Reply, Scope } from "../../core/call.ts";
import type { Principal } from "../../core/context.ts";
import type { Core, Era } from "../../core/core.ts";
import { Bodies, SMALL, tooSlow, type Unread } from "./request_body.ts";
import { type EventStream, EventStreams } from "./event_stream.ts";
import {
  type Accepts,
  type CallerOptions,
  checkCaller,
  type ConnectionInfo,
  type GateOptions,
  isJsonType,
  isKnownHost,
  readAccept,
  readPrincipal,
} from "./access.ts";

/** What the HTTP transport needs to know. */
export interface HttpOptions extends GateOptions {
  /** The path of the endpoint, such as `/mcp`. */
  readonly path: string;
}

/** Answers web-standard requests. The second parameter is what Deno, Bun or a router passes; it may be left out. */
export type Fetch = (request: Request, info?: ConnectionInfo) => Promise<Response>;

const JSON_HEADERS = { "content-type": "application/json" };
const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};
const BOTH: Accepts = { json: true, stream: true };
const lenient = new TextDecoder("utf-8", { ignoreBOM: true });
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** What other transports over HTTP share with the endpoint. */
export interface HttpParts {
  /** The path of the endpoint. */
  readonly path: string;
  /** Refuses a caller that may not talk to this server, and everybody when it is closing. */
  check(request: Request, info?: ConnectionInfo, options?: CallerOptions): Promise<Response> | undefined;
  /** Reads bodies within the server's limits. */
  readonly bodies: Bodies;
  readonly streams: EventStreams;
  /** Settles when the server has ended. */
  readonly ended: Promise<void>;
}

/** Where a server keeps its {@linkcode HttpParts}. */
export const HTTP: unique symbol = Symbol.for("mcp.http");

/** Makes the handler of the endpoint. */
export function createFetch(
  core: Core,
  era: Era,
  options: HttpOptions,
): { fetch: Fetch; parts: Omit<HttpParts, "ended"> } {
  const { limits, ticker } = core;
  const { path } = options;
  const streams = new EventStreams(limits, ticker);
  const bodies = new Bodies(limits, ticker);
  const small = Math.min(SMALL, limits.bodyBytes);
  const allow = era.attach ? "GET, POST, DELETE" : "POST";
  // Exchanges of this and of the last grace, so that no time is read for each; then those whose body is slow to come.
  // Those that are over leave at once: what is held for a few milliseconds here doubles the work of garbage collection.
  let young = new Set<Exchange>();
  let older = new Set<Exchange>();
  let slow: Exchange[] = [];
  let isWatching = false;
  // What the last good caller named: most requests repeat it. Only hosts that are good for every caller.
  let goodHost = "";
  let goodTarget = "";
  let goodAccept: string | null = null;

  function fetch(request: Request, info?: ConnectionInfo): Promise<Response> {
    const { headers, method } = request;
    // With has() Deno reads all headers at once, as it does in the end anyway, and finds the others sooner; these three
    // by names that are not in lower case.
    if (headers.has("origin") || headers.get("Host") !== goodHost || !isTarget(request.url, goodTarget)) {
      const refusal = checkFirst(request, info);
      if (refusal) return refusal;
    }
    if (core.closing) return refuse(503, CLOSING, LATER);
    const accept = headers.get("Accept");
    const accepts = accept === goodAccept ? BOTH : readAccept(accept);
    if (accepts.json && accepts.stream) goodAccept = accept;
    const reason = method === "POST" ? checkPost(headers, accepts) : checkVisit(method, headers, accepts);
    if (reason) return refuse(...reason);
    return new Promise((resolve) => {
      const principal = info?.principal === undefined ? undefined : readPrincipal(info);
      serve(new Exchange(request, headers, principal, accepts, streams, resolve), method);
    });
  }

  function checkFirst(request: Request, info?: ConnectionInfo): Promise<Response> | undefined {
    const refusal = check(request, info);
    if (refusal) return refusal;
    if (!isPath(request.url, path)) return refuse(404, `the endpoint is ${path}`);
    const host = request.headers.get("host");
    if (host === null || !isKnownHost(host, options)) return;
    goodHost = host;
    goodTarget = host + path;
  }

  function check(request: Request, info?: ConnectionInfo, caller?: CallerOptions): Promise<Response> | undefined {
    const refusal = checkCaller(request, info, options, caller);
    return refusal && refuse(refusal.status, refusal.reason);
  }

  function checkPost(headers: Headers, accepts: Accepts): [status: number, reason: string] | undefined {
    const type = headers.get("Content-Type");
    if (type !== "application/json" && !isJsonType(type)) {
      return [415, "Content-Type must be application/json in UTF-8"];
    }
    const encoding = headers.get("content-encoding");
    if (encoding !== null && encoding !== "identity") {
      return [415, "Content-Encoding is not supported; send the body as it is"];
    }
    if (!accepts.json && !accepts.stream) {
      return [406, "Accept must list application/json and text/event-stream"];
    }
  }

  // GET and DELETE: whether there is something to open or to end is the era's business.
  function checkVisit(
    method: string,
    headers: Headers,
    accepts: Accepts,
  ): [number, string, Record<string, string>?] | undefined {
    if (!era.attach || (method !== "GET" && method !== "DELETE")) {
      return [405, `for ${method.slice(0, 20)} use ${allow}`, { allow }];
    }
    if (method === "GET" && !(accepts.stream && /text\/event-stream/i.test(headers.get("accept") ?? ""))) {
      return [406, "Accept must list text/event-stream"];
    }
  }

  async function serve(exchange: Exchange, method: string): Promise<void> {
    try {
      if (method !== "POST") {
        const open = method === "GET" ? era.attach : era.detach;
        return exchange.finish(await open?.(exchange) ?? {});
      }
      const { http, headers } = exchange;
      const length = headers.get("content-length");
      // A small body is left to the runtime, which holds the client to its length but not to a time.
      const isSmall = length !== null && Number(length) <= small;
      if (isSmall) watch(exchange);
      const body = isSmall ? await http.arrayBuffer() : await bodies.read(http);
      if ("status" in body) return exchange.finish(toRefusal(body));
      exchange.isCall = true;
      if (!isSmall || exchange.slowSince) watch(exchange);
      const reply = era.accept(toIncoming(body), exchange);
      exchange.finish(reply instanceof Promise ? await reply : reply);
      if (!young.delete(exchange)) older.delete(exchange);
    } catch (error) {
      const isRead = exchange.isCall || method !== "POST";
      exchange.finish(
        isRead
          ? { text: toFailure(undefined, core.report(error)), status: 200 }
          : toRefusal({ status: 400, message: "Cannot read the body: it broke off" }),
      );
    }
  }

  function toIncoming(body: ArrayBuffer): Incoming {
    let text;
    try {
      // The lenient decoder is the faster one. What it could not read is U+FFFD, and so is U+FFFD itself.
      text = lenient.decode(body);
      if (text.includes("\ufffd")) text = strict.decode(body);
    } catch {
      return { kind: "broken", code: PARSE_ERROR, message: "Cannot read the message: it is not UTF-8" };
    }
    return parseMessage(text, limits);
  }

  function watch(exchange: Exchange): void {
    young.add(exchange);
    if (isWatching) return;
    isWatching = true;
    // Awaited: where nothing else keeps the process alive, the caller's response depends on this sweep.
    ticker.wake(sweepYoung, limits.graceMs, AWAITED);
  }

  // A call that is not over within the grace becomes a stream: only on a stream is a lost client noticed.
  function sweepYoung(now: number): number | undefined {
    for (const exchange of older) {
      if (exchange.quick) young.add(exchange);
      else if (exchange.isCall) exchange.open();
      else {
        exchange.slowSince = now;
        if (slow.push(exchange) === 1) ticker.wake(sweepSlow, 1000, AWAITED);
      }
    }
    older = young;
    young = new Set();
    isWatching = older.size > 0;
    return isWatching ? limits.graceMs : undefined;
  }

  function sweepSlow(now: number): number | undefined {
    slow = slow.filter((exchange) => !exchange.isOver && !exchange.isCall);
    for (const exchange of slow) {
      if (now - exchange.slowSince < limits.bodyMs) continue;
      exchange.finish(toRefusal(tooSlow(limits.bodyMs)));
    }
    return slow.length ? 1000 : undefined;
  }

  // For transports that open what would outlast the server.
  const checkOpen: HttpParts["check"] = (request, info, caller) =>
    check(request, info, caller) ?? (core.closing ? refuse(503, CLOSING, LATER) : undefined);

  return { fetch, parts: { path: options.path, check: checkOpen, bodies, streams } };
}

const AWAITED = { isAwaited: true };
const CLOSING = "the server is closing";

/** One HTTP request and its response: the link of the messages it carries. */
class Exchange implements Link {
  readonly http: Request;
  readonly headers: Headers;
  readonly principal?: Principal;
  readonly scope: Scope = new Scope();
  quick?: boolean;
  journal?: Journal;
  onClose?: () => void;
  /** Whether the body has been read. */
  isCall = false;
  /** When the body was found to be slow, if it was. */
  slowSince = 0;
  /** Whether the response has been given, or has become a stream. */
  isOver = false;
  readonly #accepts: Accepts;
  readonly #streams: EventStreams;
  readonly #resolve: (response: Response) => void;
  #stream?: EventStream;
  #version?: string | null;

  constructor(
    http: Request,
    headers: Headers,
    principal: Principal | undefined,
    accepts: Accepts,
    streams: EventStreams,
    resolve: (response: Response) => void,
  ) {
    this.http = http;
    this.headers = headers;
    this.principal = principal;
    this.#accepts = accepts;
    this.#streams = streams;
    this.#resolve = resolve;
  }

  get streams(): boolean {
    return this.#accepts.stream;
  }

  // Kept, because both eras ask for it, and a header is found by a search.
  get version(): string | null {
    if (this.#version === undefined) this.#version = this.headers.get("mcp-protocol-version");
    return this.#version;
  }

  send(text: string, event?: EventFields): Promise<void> | undefined {
    if (!this.streams) return;
    // What a handler says without waiting for anything outside of itself is written, with its result, after some turns.
    this.open(64);
    return this.journal && !event ? this.journal.write(text) : this.#stream?.write(text, event);
  }

  // For a client that takes no events, what keeps the stream alive is white space before the JSON.
  open(turns = 0): void {
    if (this.isOver) return;
    this.isOver = true;
    const { streams } = this;
    const onLost = () => {
      this.scope.cancelAll();
      this.onClose?.();
    };
    const stream = this.#stream = this.#streams.create(onLost, streams ? undefined : "\n");
    const first = streams && this.journal?.open(this);
    if (first) stream.write("", first);
    else stream.comment();
    this.#respond(stream, turns);
  }

  /** Gives the response after so many turns of the microtasks, or when all is written. */
  async #respond(stream: EventStream, turns: number): Promise<void> {
    while (turns-- && !stream.ended) await undefined;
    this.#resolve(new Response(stream.toBody(), { headers: this.streams ? STREAM_HEADERS : JSON_HEADERS }));
  }

  release(retryMs?: number): void {
    if (!this.journal || !this.streams) return;
    this.open();
    if (retryMs !== undefined) this.#stream?.write("", { retry: retryMs });
    this.#stream?.end();
  }

  /** Gives the reply: as the response, or as the last event of the stream. */
  finish({ text, status, headers }: Reply): void {
    if (!this.#accepts.json && text !== undefined && !status) this.open();
    if (this.#stream) {
      if (text !== undefined) this.streams ? this.send(text) : this.#stream.push(text);
      this.journal?.end();
      return this.#stream.end();
    }
    if (this.isOver) return;
    this.isOver = true;
    if (text === undefined) return this.#resolve(new Response(null, { status: status ?? 202, headers }));
    this.#resolve(new Response(text, { status, headers: headers ? { ...JSON_HEADERS, ...headers } : JSON_HEADERS }));
  }
}

function toRefusal({ status, message, headers }: Unread): Reply {
  return { text: toFailure(undefined, { code: INVALID_REQUEST, message }), status, headers };
}

function refuse(status: number, state: string, headers?: Record<string, string>): Promise<Response> {
  const { text } = toRefusal({ status, message: `Cannot serve the request: ${state}` });
  return Promise.resolve(new Response(text, { status, headers: { ...JSON_HEADERS, ...headers } }));
}

// Whether a URL is this host and path, and nothing more than a query. Compared, not parsed: it is nearly always so. An
// absolute-form target can name another host than the Host header does.
function isTarget(url: string, target: string): boolean {
  const at = url.indexOf("//") + 2;
  const after = at + target.length;
  return url.startsWith(target, at) && target !== "" && (after === url.length || url[after] === "?");
}

function isPath(url: string, path: string): boolean {
  return URL.canParse(url) && new URL(url).pathname === path;
}
