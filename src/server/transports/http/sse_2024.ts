/**
 * The HTTP+SSE transport of the first protocol revision, for older clients. The server sends messages over an event
 * stream, and the client posts messages to a second path.
 *
 * ```ts ignore
 * import { httpSse } from "@x/mcp/http-sse";
 * import server from "./server.ts";
 *
 * Deno.serve(httpSse(server).fetch);
 * ```
 *
 * @see specification/2024-11-05/basic/transports (HTTP with SSE)
 * @module
 */
import { REQUEST_BYTES } from "../../capacity/account.ts";
import { INTERNALS } from "../../../core/internals.ts";
import { checkOptions, type KnownOptions } from "../../../core/known_options.ts";
import type { Principal } from "../../call/context.ts";
import { isJsonType } from "./accept.ts";
import { type ConnectionInfo, findSignal } from "./access.ts";
import { readPath } from "./access_options.ts";
import type { Caller } from "./caller.ts";
import { type Entrant, Entry, type EntryServer, toEntryServer } from "./entry_admission.ts";
import { STREAM_HEADERS } from "./event_stream.ts";
import { checkTemplate, PathTemplate } from "./path_template.ts";
import type { Refusal } from "./refusals.ts";
import type { HttpParts, Spot } from "./upgrades.ts";
import { openPipe, type Pipe, type Served } from "../channel.ts";

export type { Served } from "../channel.ts";

interface OpenStream {
  readonly pipe: Pipe;
  readonly close: () => void;
  /** The id of the caller that opened the stream. */
  readonly owner?: string;
  /** The concrete path of the endpoint, if the server's path has parameters. */
  readonly place?: string;
}

interface Posted {
  readonly id: string;
  readonly open: OpenStream;
  readonly principal?: Principal;
}

const NOT_FOUND: Refusal = {
  status: 404,
  message: "Cannot serve the request: there is no endpoint at this path",
  reason: "path",
};
const NOT_OPEN: Refusal = {
  status: 404,
  message: "Cannot accept the message: its stream is not open; open a new stream",
  reason: "session",
};
const NOT_JSON: Refusal = {
  status: 415,
  message: "Cannot accept the message: Content-Type must be application/json",
  reason: "content_type",
};
const NOT_UTF8: Refusal = {
  status: 400,
  message: "Cannot read the message: it is not UTF-8",
  reason: "body",
};
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * The paths of the HTTP+SSE transport. If the server's path has parameters, both paths must have the same parameters,
 * such as `/tenants/:tenant/sse` and `/tenants/:tenant/messages`.
 *
 * @deprecated by the protocol. Clients use Streamable HTTP, which each server serves at its path, instead.
 */
export interface HttpSseOptions {
  /** Path of the event stream. Defaults to `/sse`. */
  readonly path?: string;
  /** Path to which clients post messages, in the folder of `path` or below it. Defaults to `/messages`. */
  readonly messages?: string;
}

const OPTIONS: KnownOptions<keyof HttpSseOptions> = { names: { path: true, messages: true } };

/**
 * Serves the HTTP+SSE transport next to the server's MCP endpoint. Both endpoints check Host and Origin according to
 * the server's options.
 *
 * @deprecated by the protocol. Clients use Streamable HTTP, which each server serves at its path, instead.
 * @see specification/2026-07-28/deprecated
 */
export function httpSse(
  server: Served & {
    /** Handles requests for all other paths. */
    fetch(request: Request, info?: ConnectionInfo): Promise<Response>;
  },
  options: HttpSseOptions = {},
): { readonly fetch: (request: Request, info?: ConnectionInfo) => Promise<Response> } {
  checkOptions("serve HTTP+SSE", options, OPTIONS);
  const { path = "/sse", messages = "/messages" } = options;
  const entry = toEntryServer(server);
  const { find, http } = entry[INTERNALS];
  if (!http.core.streams) {
    throw new TypeError("Cannot serve HTTP+SSE: the server has streams: false; omit this option, or omit httpSse");
  }
  for (const each of [path, messages]) find ? checkTemplate(each, http.path) : readPath(each);
  const streams = new SseStreams(entry, { path, messages });
  http.ended.then(() => streams.close());
  return { fetch: (request, info) => streams.fetch(request, info) };
}

class SseStreams {
  readonly #server: EntryServer;
  readonly #opening: Entry;
  readonly #posting: Entry;
  readonly #path: string;
  readonly #messages: string;
  /** The open streams, by their unguessable ids. */
  // Bound: `connections.streams`.
  readonly #open = new Map<string, OpenStream>();

  constructor(server: EntryServer, { path, messages }: Required<HttpSseOptions>) {
    const options = { transport: "http-sse", missing: NOT_FOUND } as const;
    this.#server = server;
    this.#path = path;
    this.#messages = messages;
    this.#opening = new Entry(server, { ...options, path });
    this.#posting = new Entry(server, { ...options, path: messages });
  }

  /** Passes requests for other paths on to the server. */
  async fetch(request: Request, info?: ConnectionInfo): Promise<Response> {
    const pathname = URL.parse(request.url)?.pathname;
    if (request.method === "GET" && this.#isAt(this.#path, pathname)) {
      if (isForeign(request.headers)) return this.#opening.refuse(FOREIGN);
      return await this.#opening.fetch(
        request,
        info,
        (caller, parts) => this.#opening.admit(caller, parts, (entrant) => this.#start(caller, parts, entrant)),
      );
    }
    if (request.method === "POST" && this.#isAt(this.#messages, pathname)) {
      return await this.#posting.fetch(request, info, (caller, parts) => this.#receiveMessage(caller, parts));
    }
    return await this.#server.fetch(request, info);
  }

  close(): void {
    this.#open.forEach(({ close }) => close());
  }

  #isAt(template: string, pathname: string | undefined): boolean {
    if (pathname === undefined) return false;
    return this.#server[INTERNALS].find
      ? new PathTemplate(template).match(pathname) !== undefined
      : pathname === template;
  }

  #start({ request, info, place: spot }: Caller<Spot>, parts: HttpParts, entrant: Entrant): Response {
    const { principal, account, peer, checks, served, place } = entrant;
    entrant.drop = () => {
      if (pipe.unanswered) return false;
      end();
      return true;
    };
    const id = crypto.randomUUID();
    const close = () => {
      if (!this.#open.delete(id)) return;
      stopExpiry();
      place.end();
      pipe.close();
    };
    const signal = findSignal(request, info);
    const stream = parts.streams.create({ account: () => account, onLost: close, signal });
    const address = spot ? new PathTemplate(this.#messages).build(spot.values) : this.#messages;
    stream.write(`${address}?sessionId=${id}`, { event: "endpoint" });
    const pipe = openPipe(served, {
      write: (text) => stream.write(text),
      principal,
      account,
      peer,
      transport: "http-sse",
    });
    const end = () => {
      close();
      stream.end();
    };
    const stopExpiry = pipe.watchCaller(checks, end);
    this.#open.set(id, { pipe, close, owner: principal?.id, place: spot?.path });
    if (signal?.aborted) close();
    return new Response(stream.toBody(), { headers: STREAM_HEADERS });
  }

  async #receiveMessage({ request, info, principal, place }: Caller<Spot>, parts: HttpParts): Promise<Response> {
    const id = URL.parse(request.url)?.searchParams.get("sessionId") ?? "";
    const open = this.#open.get(id);
    if (!open || open.owner !== principal?.id || open.place !== place?.path) {
      return this.#posting.refuse(NOT_OPEN, principal);
    }
    if (!isJsonType(request.headers.get("content-type"))) return this.#posting.refuse(NOT_JSON, principal);
    const sender = { account: open.pipe.account, signal: findSignal(request, info) };
    const refusal = await new Promise<Refusal | void>((settle) => {
      parts.bodies.read(request, sender, (body) => settle(this.#accept(body, { id, open, principal })));
    });
    return refusal ? this.#posting.refuse(refusal, principal) : new Response("Accepted", { status: 202 });
  }

  /**
   * For backpressure, returns a promise that settles when the server can accept another message. If the client's memory
   * limit allows no further waiting request, the response does not wait.
   *
   * This method must not be asynchronous, because it would then keep the body in memory during the wait.
   */
  #accept(body: ArrayBuffer | Refusal, { id, open, principal }: Posted): Refusal | Promise<void> | undefined {
    if ("status" in body) return body;
    let text;
    try {
      text = utf8.decode(body);
    } catch {
      return NOT_UTF8;
    }
    // Look up the stream again, because it may have ended while the server was reading the body.
    if (this.#open.get(id) !== open) return NOT_OPEN;
    const { account } = open.pipe;
    const wait = open.pipe.receive(text, principal);
    const charge = wait && account.memory.keep(account, REQUEST_BYTES);
    return charge && wait.finally(() => charge.end());
  }
}

/**
 * Tests whether a web page from another site may have caused the request. A page can make a browser open a stream with
 * the user's cookies or stored password and without an Origin header, for example as the source of an image.
 */
function isForeign(headers: Headers): boolean {
  const site = headers.get("sec-fetch-site");
  // Accept a request with an Origin header, because the header was checked together with the Host header. Browsers omit
  // Origin only for requests from the same origin, and for images and similar elements.
  if (headers.has("origin") || site === "same-origin") return false;
  // Reject cookies even without `Sec-Fetch-Site`, because old browsers do not send this header. Clients that are not
  // browsers send no cookies by default.
  return headers.has("cookie") || site !== null && site !== "none";
}

const FOREIGN: Refusal = {
  status: 403,
  message:
    "Cannot open the stream: the request has no Origin header, but has cookies or comes from another site; send an Origin header",
  reason: "origin",
};
