/**
 * The Streamable HTTP transport, as a web-standard `fetch` function.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http
 * @module
 */
import { type Incoming, NOT_UTF8, parseMessage } from "../../protocol/jsonrpc.ts";
import type { Account } from "../../core/account.ts";
import type { Principal } from "../../core/context.ts";
import type { Engine, Era } from "../../core/era.ts";
import type { Reply } from "../../core/link.ts";
import { Aging } from "../../core/aging.ts";
import { type Accepts, isJsonType, readAccept } from "./accept.ts";
import {
  type AccessOptions,
  type CallerOptions,
  checkCaller,
  type ConnectionInfo,
  isKnownHost,
  readPeer,
} from "./access.ts";
import type { Authenticator, EnterOptions, LoadAuthenticator } from "./authenticator.ts";
import { EventStreams } from "./event_stream.ts";
import { Exchange, type ExchangeParts } from "./exchange.ts";
import type { ReadFront } from "./front_principal.ts";
import { RequestBodies } from "./request_body.ts";
import { CLOSING, INCOMPLETE, type Refusal, refuse, toFault, toFaultReply, toMessage } from "./refusals.ts";
import { HEAVY } from "./turns.ts";
import type { HttpParts } from "./upgrades.ts";

/** Options of the HTTP transport. */
export interface HttpOptions extends AccessOptions {
  /** Path of the endpoint, such as `/mcp`. */
  readonly path: string;
  /** Whether a router has checked the path already. */
  readonly isRouted?: boolean;
  /** Addresses of trusted proxies. */
  readonly proxies: readonly string[];
  /** Authenticates callers, if the server has `auth`. */
  readonly loadAuth?: LoadAuthenticator;
  /** Reads the bodies of several endpoints, whose limits apply to all of them together. */
  readonly bodies?: RequestBodies;
}

/** Handles web-standard requests. The optional second argument comes from Deno, Bun or a router. */
export type Fetch = (request: Request, info?: ConnectionInfo) => Promise<Response>;

const HTTP: EnterOptions = { transport: "http" };
const BOTH: Accepts = { json: true, stream: true };
const lenient = new TextDecoder("utf-8", { ignoreBOM: true });
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The HTTP endpoint of a server. */
export class Endpoint {
  readonly #engine: Engine;
  readonly #era: Era;
  readonly #options: HttpOptions;
  readonly #allow: string;
  readonly #streams: EventStreams;
  readonly #bodies: RequestBodies;
  readonly #exchanges: ExchangeParts;
  // Host and URL of the latest accepted request, because most requests repeat them. The host is allowed for every
  // caller.
  #lastHost = "";
  #lastTarget = "";
  #lastAccept: string | null = null;
  #isClosing = false;
  #authenticator?: Authenticator;
  /** Loaded with the first principal of code in front. */
  #readFront?: ReadFront;

  /** Creates an endpoint that serves an era. */
  constructor(engine: Engine, era: Era, options: HttpOptions) {
    const { limits, ticker } = engine.core;
    this.#engine = engine;
    this.#era = era;
    this.#options = options;
    this.#allow = era.attach ? "GET, POST, DELETE" : "POST";
    this.#streams = new EventStreams(engine.core);
    this.#bodies = options.bodies ?? new RequestBodies(engine.core);
    // A call that takes longer becomes a stream, because a disconnected client is only noticed on a stream.
    const waiting = new Aging<Exchange>(ticker, limits.streams.openAfterMs, (exchange) => exchange.open());
    const account = (request: Request, info: unknown, principal?: Principal) =>
      this.#findAccount(request, info, principal);
    this.#exchanges = { core: engine.core, streams: this.#streams, waiting, account };
  }

  /** Parts that other HTTP transports share with the endpoint. */
  get parts(): HttpParts {
    const engine = this.#engine;
    return {
      check: (request, info, caller) =>
        this.#check(request, info, caller) ?? (this.#isClosing ? refuse(engine.core, CLOSING) : undefined),
      account: this.#exchanges.account,
      bodies: this.#bodies,
      streams: this.#streams,
    };
  }

  /** Refuses a request for another path. */
  refusePath(): Response {
    const message = toMessage(`the endpoint is ${this.#options.path}`);
    return refuse(this.#engine.core, { status: 404, message, reason: "path" });
  }

  /** Stops accepting requests, and refuses those whose caller or body is not known yet. */
  close(): void {
    this.#isClosing = true;
    this.#bodies.close(CLOSING);
    this.#options.loadAuth?.().then((authenticator) => authenticator.close(), () => {});
  }

  /** Handles a request. */
  readonly fetch: Fetch = (request, info) => {
    const { prepare } = this.#engine.core;
    if (prepare) return this.#fetchPrepared(prepare, request, info);
    const { headers, method } = request;
    const { loadAuth } = this.#options;
    const authenticator = this.#authenticator;
    if (loadAuth && !authenticator) return this.#fetchLater(loadAuth, request, info);
    // A request that waited for its authentication arrives here a second time.
    let admitted = authenticator?.findAdmitted(info);
    // has() makes Deno read all headers at once, which speeds up later access. The names of these three headers are
    // read fastest if they are not in lower case.
    if (
      !admitted &&
      (headers.has("origin") || headers.get("Host") !== this.#lastHost || !isTarget(request.url, this.#lastTarget))
    ) {
      const refusal = this.#checkFirst(request, info);
      if (refusal) return authenticator?.respond(request) ?? Promise.resolve(refusal);
    }
    if (this.#isClosing) return Promise.resolve(refuse(this.#engine.core, CLOSING));
    if (authenticator && !admitted && method !== "OPTIONS") {
      const entered = authenticator.enter(request, info, HTTP);
      admitted = authenticator.findAdmitted(entered);
      if (!admitted) return authenticator.settle(entered, (admitted) => this.fetch(request, admitted));
    }
    const accept = headers.get("Accept");
    const accepts = accept === this.#lastAccept ? BOTH : readAccept(accept);
    if (accepts.json && accepts.stream) this.#lastAccept = accept;
    const refusal = method === "POST" ? checkPost(headers, accepts) : this.#checkGetOrDelete(method, headers, accepts);
    if (refusal) return Promise.resolve(refuse(this.#engine.core, refusal));
    let principal = admitted?.principal;
    if (!admitted && typeof info === "object" && info && "principal" in info) {
      const readFront = this.#readFront;
      if (!readFront) return this.#fetchWithFront(request, info);
      const front = readFront(this.#engine.core, { info, transport: "http" });
      if (front instanceof Response) return Promise.resolve(front);
      principal = front;
    }
    const seen = admitted?.seen;
    return new Promise((respond) => {
      const exchange = new Exchange({ request, headers, info, principal, seen, accepts, respond }, this.#exchanges);
      method === "POST" ? this.#post(exchange, request) : this.#serveGetOrDelete(exchange, method);
    });
  };

  async #fetchPrepared(prepare: () => Promise<void>, request: Request, info?: ConnectionInfo): Promise<Response> {
    try {
      await prepare();
    } catch (error) {
      return toFault(this.#engine.core, error);
    }
    return await this.fetch(request, info);
  }

  async #fetchLater(
    loadAuth: LoadAuthenticator,
    request: Request,
    info: ConnectionInfo | undefined,
  ): Promise<Response> {
    try {
      this.#authenticator = await loadAuth();
    } catch (error) {
      // The server has an authentication that cannot be used. Without one, it serves nobody.
      return toFault(this.#engine.core, error);
    }
    return await this.fetch(request, info);
  }

  async #fetchWithFront(request: Request, info: ConnectionInfo): Promise<Response> {
    try {
      this.#readFront ??= (await import("./front_principal.ts")).readFront;
    } catch (error) {
      return toFault(this.#engine.core, error);
    }
    return await this.fetch(request, info);
  }

  async #post(exchange: Exchange, request: Request): Promise<void> {
    let body: ArrayBuffer | Refusal | undefined;
    try {
      body = await this.#bodies.read(request, exchange);
    } catch {
      body = INCOMPLETE;
    }
    this.#bodies.end(exchange);
    if (exchange.hasResponded) return;
    if ("status" in body) return exchange.abort(body);
    try {
      const reply = this.#accept(body, exchange);
      body = undefined; // Otherwise this function would keep it while it waits.
      exchange.finish(reply instanceof Promise ? await reply : reply);
    } catch (error) {
      exchange.finish(toFaultReply(this.#engine.core, error));
    }
  }

  async #serveGetOrDelete(exchange: Exchange, method: string): Promise<void> {
    try {
      const reply = method === "GET" ? this.#era.attach?.(exchange) : this.#era.detach?.(exchange);
      exchange.finish(await reply ?? {});
    } catch (error) {
      exchange.finish(toFaultReply(this.#engine.core, error));
    }
  }

  // Not in `#post`, which would keep the message while it waits.
  #accept(body: ArrayBuffer, exchange: Exchange): Reply | Promise<Reply> {
    const { limits, observing } = this.#engine.core;
    let text;
    try {
      // The lenient decoder is faster. Invalid bytes become U+FFFD, which may also occur in valid text.
      text = lenient.decode(body);
      if (text.includes("\ufffd")) text = strict.decode(body);
    } catch {
      return this.#era.accept(NOT_UTF8, exchange);
    }
    observing?.message("in", exchange, text);
    const message = parseMessage(text, limits.request);
    return body.byteLength > HEAVY ? this.#acceptLater(message, exchange) : this.#era.accept(message, exchange);
  }

  // Parsing and running a large message may each take long, so the event loop serves small requests between them.
  async #acceptLater(message: Incoming, exchange: Exchange): Promise<Reply> {
    const { turns } = this.#bodies;
    await turns.pause();
    try {
      return this.#era.accept(message, exchange);
    } finally {
      turns.end();
    }
  }

  #checkFirst(request: Request, info?: ConnectionInfo): Response | undefined {
    const { path, isRouted } = this.#options;
    const refusal = this.#check(request, info);
    if (refusal) return refusal;
    if (!isRouted && !isPath(request.url, path)) return this.refusePath();
    const host = request.headers.get("host");
    if (host === null || !isKnownHost(host, this.#options)) return;
    this.#lastHost = host;
    this.#lastTarget = host + path;
  }

  #check(request: Request, info?: ConnectionInfo, caller?: CallerOptions): Response | undefined {
    const refusal = checkCaller(request, info, this.#options, caller);
    return refusal && refuse(this.#engine.core, { ...refusal, message: toMessage(refusal.state) });
  }

  // GET and DELETE requests. The era decides what they open or end.
  #checkGetOrDelete(method: string, headers: Headers, accepts: Accepts): Refusal | undefined {
    if (!this.#era.attach || (method !== "GET" && method !== "DELETE")) {
      const message = toMessage(`for ${method.slice(0, 20)} use ${this.#allow}`);
      return { status: 405, message, headers: { allow: this.#allow }, reason: "verb" };
    }
    if (method === "GET" && !(accepts.stream && /text\/event-stream/i.test(headers.get("accept") ?? ""))) {
      return { status: 406, message: toMessage("Accept must list text/event-stream"), reason: "accept" };
    }
  }

  #findAccount(request: Request, info: unknown, principal: Principal | undefined): Account {
    const { accounts, tenant } = this.#engine;
    if (principal) return accounts.find(`principal ${principal.id}`, tenant);
    const peer = readPeer(request, info, this.#options.proxies);
    return accounts.find(peer === undefined ? undefined : `peer ${peer}`, tenant);
  }
}

function checkPost(headers: Headers, accepts: Accepts): Refusal | undefined {
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
    const message = toMessage("Content-Encoding is not supported; send the body as it is");
    return { status: 415, message, reason: "content_encoding" };
  }
  if (!accepts.json && !accepts.stream) {
    const message = toMessage("Accept must list application/json and text/event-stream");
    return { status: 406, message, reason: "accept" };
  }
}

// Tests whether a URL has this host and path, with at most a query. Comparing is faster than parsing. An absolute-form
// target may name another host than the Host header.
function isTarget(url: string, target: string): boolean {
  const at = url.indexOf("//") + 2;
  const after = at + target.length;
  return url.startsWith(target, at) && target !== "" && (after === url.length || url[after] === "?");
}

function isPath(url: string, path: string): boolean {
  return URL.canParse(url) && new URL(url).pathname === path;
}
