/**
 * The Streamable HTTP transport, as a web-standard `fetch` function.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http
 */
import type { Incoming } from "../../../core/protocol/jsonrpc.ts";
import { NOT_UTF8, parseMessage } from "../../../core/protocol/message_parser.ts";
import type { Account } from "../../capacity/account.ts";
import { Aging } from "../../../core/aging.ts";
import type { Core } from "../../engine/core.ts";
import type { Engine, Era } from "../../engine/era.ts";
import type { Reply } from "../../call/link.ts";
import { type Accepts, isJsonType, readAccept } from "./accept.ts";
import { type ConnectionInfo, readPeer } from "./access.ts";
import { Caller } from "./caller.ts";
import { Callers, type CallersOptions, type Identified, type WayIn } from "./callers.ts";
import { withCors } from "./cors_headers.ts";
import { EventStreams } from "./event_stream.ts";
import { Exchange, type ExchangeParts } from "./exchange.ts";
import { CLOSING, type Refusal, refuse, toFault, toFaultReply, toMessage } from "./refusals.ts";
import { HEAVY } from "./large_body.ts";
import { RequestBodies } from "./request_body.ts";
import { type Outlet, respondTo } from "./responses.ts";

export interface HttpOptions extends CallersOptions {
  /** The endpoint's path, such as `/mcp`, which can have parameters. */
  readonly path: string;
  /** Addresses of trusted proxies. */
  readonly proxies: readonly string[];
  /** Further request headers that pages of other origins may send. `undefined` if responses get no CORS headers. */
  readonly corsHeaders?: readonly string[];
  /** The reader of request bodies. Endpoints that share a reader share its limits. Defaults to a separate reader. */
  readonly bodies?: RequestBodies;
}

/**
 * Handles a web-standard request. Deno, Bun or a router passes the optional second argument. Workers pass their
 * environment as the second argument, and the context of the request as the third argument.
 */
export type Fetch = (
  request: Request,
  info?: ConnectionInfo,
  context?: { waitUntil(work: Promise<unknown>): void },
) => Promise<Response>;

const BOTH: Accepts = { json: true, stream: true };
const lenient = new TextDecoder("utf-8", { ignoreBOM: true });
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export class Endpoint {
  readonly #engine: Engine;
  readonly #era: Era;
  readonly #options: HttpOptions;
  readonly #allow: string;
  readonly #way: WayIn;
  /** The parts that exchanges and other HTTP transports share with this endpoint. */
  readonly parts: ExchangeParts;
  #lastAccept: string | null = null;
  readonly fetch: Fetch;

  constructor(engine: Engine, era: Era, options: HttpOptions) {
    const { limits, ticker } = engine.core;
    const { path, bodies = new RequestBodies(engine.core) } = options;
    this.#engine = engine;
    this.#era = era;
    this.#options = options;
    this.#allow = !era.attach ? "POST" : engine.core.streams ? "GET, POST, DELETE" : "POST, DELETE";
    this.#way = { transport: "http", path, refusePath: () => this.refusePath() };
    // Open a stream if a call takes longer than `streams.openAfterMs`, because the server can detect a disconnected
    // client only on a stream.
    const waiting = new Aging<Exchange>(ticker, limits.streams.openAfterMs, (exchange) => exchange.open());
    const account = (caller: Caller) => this.#findAccount(caller);
    const peer = ({ request, info }: Caller) => readPeer(request, info, options.proxies);
    const callers = new Callers(engine.core, options);
    this.parts = { core: engine.core, callers, bodies, streams: new EventStreams(engine.core), waiting, account, peer };
    this.fetch = this.withCors(this.#fetch);
  }

  refusePath(): Response {
    const { path } = this.#options;
    const message = toMessage(`the endpoint is ${path}`);
    return refuse(this.#engine.core, { status: 404, message, reason: "path", data: { endpoint: path } });
  }

  /** Rejects requests whose caller or body is not known yet. */
  close(): void {
    this.parts.callers.close();
    this.parts.bodies.close(CLOSING);
  }

  /** If the server has `cors`, wraps `fetch` to add CORS headers. Otherwise returns `fetch` unchanged. */
  withCors(fetch: Fetch): Fetch {
    const { corsHeaders: headers, allows: rule } = this.#options;
    return headers ? withCors({ rule, headers }, fetch) : fetch;
  }

  readonly #fetch: Fetch = (request, info) => {
    const caller = this.parts.callers.identify(request, info, this.#way);
    if (caller instanceof Caller) return this.serve(caller);
    return caller instanceof Response ? Promise.resolve(caller) : this.#serveLater(caller);
  };

  async #serveLater(identified: Promise<Identified>): Promise<Response> {
    const caller = await identified;
    return caller instanceof Caller ? await this.serve(caller) : caller;
  }

  /** Serves the request of an identified caller. For concrete paths, the router has identified the caller. */
  serve(caller: Caller): Promise<Response> {
    // Check again, because the server may have started to close while the caller was being identified.
    const late = this.parts.callers.refuseIfUnavailable(this.#way);
    if (late) return Promise.resolve(late);
    const { headers, request: { method } } = caller;
    const accept = headers.get("Accept");
    let accepts = accept === this.#lastAccept ? BOTH : readAccept(accept);
    if (accepts.json && accepts.stream) this.#lastAccept = accept;
    if (!this.#engine.core.streams) accepts = { ...accepts, stream: false };
    const refusal = method === "POST"
      ? checkPost(headers, accepts, this.#engine.core)
      : this.#checkGetOrDelete(method, headers, accepts);
    if (refusal) return Promise.resolve(refuse(this.#engine.core, refusal));
    const forward = caller.info?.forward;
    if (typeof forward === "function") return this.#forward(caller, forward);
    const exchange = new Exchange(caller, accepts, this.parts);
    return new Promise((respond) => {
      const outlet = { parts: this.parts, respond };
      if (method !== "POST") return this.#attachOrDetach(exchange, method, outlet);
      this.parts.bodies.read(caller.request, exchange, (body) => this.#answer(exchange, body, outlet));
    });
  }

  async #forward({ request, principal }: Caller, forward: NonNullable<ConnectionInfo["forward"]>): Promise<Response> {
    try {
      const response: unknown = await forward(request, { principal });
      // Copy the response, because the headers of a response from `fetch` or from a Durable Object are immutable.
      if (response instanceof Response) return new Response(response.body, response);
      throw new TypeError("Cannot forward the request: forward() did not return a Response; return a Response");
    } catch (error) {
      return toFault(this.#engine.core, error);
    }
  }

  #answer(exchange: Exchange, body: ArrayBuffer | Refusal, outlet: Outlet): void {
    if ("status" in body) return outlet.respond(refuse(this.#engine.core, body, exchange));
    let reply;
    try {
      reply = this.#accept(body, exchange);
    } catch (error) {
      reply = toFaultReply(this.#engine.core, error);
    }
    respondTo(exchange, reply, outlet);
  }

  #attachOrDetach(exchange: Exchange, method: string, outlet: Outlet): void {
    let reply;
    try {
      reply = method === "GET" ? this.#era.attach?.(exchange) : this.#era.detach?.(exchange);
    } catch (error) {
      reply = toFaultReply(this.#engine.core, error);
    }
    respondTo(exchange, reply ?? {}, outlet);
  }

  #accept(body: ArrayBuffer, exchange: Exchange): Reply | Promise<Reply> {
    const { limits, observing } = this.#engine.core;
    let text;
    try {
      // Use the lenient decoder first, because it is faster. If the text contains U+FFFD, which replaces invalid bytes
      // but may also occur in valid text, decode again with the strict decoder.
      text = lenient.decode(body);
      if (text.includes("\ufffd")) text = strict.decode(body);
    } catch {
      return this.#era.accept(NOT_UTF8, exchange);
    }
    observing?.message("in", exchange, text);
    const message = parseMessage(text, limits.request);
    return body.byteLength > HEAVY ? this.#acceptLater(message, exchange) : this.#era.accept(message, exchange);
  }

  // Yield to the event loop between parsing and running a large message, because each of these two steps may take
  // several milliseconds, and small requests must be served between the steps.
  async #acceptLater(message: Incoming, exchange: Exchange): Promise<Reply> {
    const { turns } = this.parts.bodies;
    await turns.pause();
    try {
      return this.#era.accept(message, exchange);
    } finally {
      turns.end();
    }
  }

  // Checks a request whose method is not POST. Returns a refusal unless the era serves this method.
  #checkGetOrDelete(method: string, headers: Headers, accepts: Accepts): Refusal | undefined {
    const { streams } = this.#engine.core;
    if (!this.#era.attach || !(method === "GET" && streams || method === "DELETE")) {
      const why = streams || method !== "GET" ? "" : ", because this server sends no event streams (streams: false)";
      const message = toMessage(`method ${method.slice(0, 20)} is not allowed${why}; use ${this.#allow}`);
      return { status: 405, message, headers: { allow: this.#allow }, reason: "verb" };
    }
    if (method === "GET" && !(accepts.stream && headers.get("accept")?.trim())) {
      return { status: 406, message: toMessage("the Accept header must list text/event-stream"), reason: "accept" };
    }
  }

  #findAccount({ request, info, principal }: Caller): Account {
    const { accounts, tenant } = this.#engine;
    if (principal) return accounts.find(`principal ${principal.id}`, tenant);
    const peer = readPeer(request, info, this.#options.proxies);
    return accounts.find(peer === undefined ? undefined : `peer ${peer}`, tenant);
  }
}

function checkPost(headers: Headers, accepts: Accepts, { streams }: Pick<Core, "streams">): Refusal | undefined {
  const type = headers.get("Content-Type");
  if (type !== "application/json" && !isJsonType(type)) {
    return {
      status: 415,
      message: toMessage("Content-Type must be application/json in UTF-8"),
      reason: "content_type",
    };
  }
  const encoding = headers.get("content-encoding");
  if (encoding !== null && encoding !== "identity") {
    const message = toMessage("Content-Encoding is not supported; send the body uncompressed");
    return { status: 415, message, reason: "content_encoding" };
  }
  if (!accepts.json && !accepts.stream) {
    const types = streams ? "application/json and text/event-stream" : "application/json (streams: false)";
    const message = toMessage(`the Accept header must list ${types}`);
    return { status: 406, message, reason: "accept" };
  }
}
