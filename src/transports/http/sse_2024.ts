/**
 * The first transport over HTTP, for clients that know no other: one stream for all that the server says, and a second
 * address for what the client says.
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
import { INTERNALS } from "../../core/internals.ts";
import { LATER } from "../../core/link.ts";
import type { Account } from "../../core/account.ts";
import type { Principal } from "../../core/context.ts";
import { isJsonType } from "./accept.ts";
import { type ConnectionInfo, readPath, readPrincipal } from "./access.ts";
import type { Receiver, Unread } from "./request_body.ts";
import type { HttpParts } from "./upgrades.ts";
import type { OpenPipe, Pipe, PipeServer } from "../channel.ts";

export type { PipeServer };

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** What can be served: a server made by `createServer`. */
export interface SseServer extends PipeServer {
  /** Answers what is at neither address. */
  fetch(request: Request, info?: ConnectionInfo): Promise<Response>;
  /**
   * Checks callers and makes streams.
   *
   * @ignore
   */
  readonly [INTERNALS]: { readonly openPipe: OpenPipe; readonly http: HttpParts };
}

/** The two addresses. */
export interface HttpSseOptions {
  /** Where the stream is opened; `/sse` if nothing is said. */
  readonly path?: string;
  /** Where messages are posted; `/messages` if nothing is said. */
  readonly messages?: string;
}

/** Serves the two addresses beside the server's own endpoint, with the same checks of Host and Origin. */
export function httpSse(
  server: SseServer,
  options: HttpSseOptions = {},
): { readonly fetch: (request: Request, info?: ConnectionInfo) => Promise<Response> } {
  const { path = "/sse", messages = "/messages" } = options;
  for (const each of [path, messages]) readPath(each);
  // A pipe is found by an id that nobody can guess, and lives as long as its stream.
  const pipes = new Map<string, { readonly pipe: Pipe; readonly owner?: string }>();

  async function fetch(request: Request, info?: ConnectionInfo): Promise<Response> {
    const refusal = server[INTERNALS].http.check(request, info);
    if (refusal) return await refusal;
    const { pathname, searchParams } = new URL(request.url);
    if (request.method === "GET" && pathname === path) {
      const principal = readPrincipal(info);
      return open(principal, server[INTERNALS].http.account(request, info, principal));
    }
    if (request.method === "POST" && pathname === messages) {
      return await take(request, searchParams.get("sessionId") ?? "", readPrincipal(info));
    }
    return await server.fetch(request, info);
  }

  function open(principal: Principal | undefined, account: Account): Response {
    const { streams } = server[INTERNALS].http;
    if (!account.openStream()) {
      const reason = "Cannot open the stream: too many are open (streams.open, streams.openPerClient)";
      return new Response(reason, { status: 503, headers: LATER });
    }
    const id = crypto.randomUUID();
    const onLost = () => {
      account.closeStream();
      pipes.get(id)?.pipe.close();
      pipes.delete(id);
    };
    const stream = streams.create({ account: () => account, onLost });
    stream.write(`${messages}?sessionId=${id}`, { event: "endpoint" });
    pipes.set(id, {
      pipe: server[INTERNALS].openPipe((text) => stream.write(text), principal, account),
      owner: principal?.id,
    });
    return new Response(stream.toBody(), {
      headers: {
        "content-type": "text/event-stream",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
      },
    });
  }

  async function take(request: Request, id: string, principal?: Principal): Promise<Response> {
    const open = pipes.get(id);
    if (!open || open.owner !== principal?.id) {
      return new Response("Cannot take the message: this stream is not open", { status: 404 });
    }
    if (!isJsonType(request.headers.get("content-type"))) {
      return new Response("Cannot take the message: Content-Type must be application/json", { status: 415 });
    }
    let text;
    try {
      const body = await read(request, open.pipe);
      if ("status" in body) return new Response(body.message, body);
      text = utf8.decode(body);
    } catch {
      return new Response("Cannot take the message: it broke off, or is not UTF-8", { status: 400 });
    }
    // The next message is taken when this one has found room: that is how this client is made to wait.
    await open.pipe.receive(text);
    return new Response("Accepted", { status: 202 });
  }

  function read(request: Request, pipe: Pipe): Promise<ArrayBuffer | Unread> {
    const { bodies } = server[INTERNALS].http;
    const { promise, resolve } = Promise.withResolvers<Unread>();
    const receiver: Receiver = {
      get account() {
        return pipe.account;
      },
      giveUp: resolve,
    };
    const body = bodies.read(request, receiver).finally(() => bodies.end(receiver));
    return Promise.race([body, promise]);
  }

  return { fetch };
}
