// Fake servers whose responses a test defines, over HTTP and over a pipe.
import { Accounts } from "../../src/server/capacity/account.ts";
import { BOUNDS } from "../support/limits.ts";

import { INTERNALS } from "../../src/core/internals.ts";

/** A received message, with types that let tests read any field. */
export interface Message {
  readonly id?: number | string;
  readonly method?: string;
  // deno-lint-ignore no-explicit-any
  readonly params?: any;
  // deno-lint-ignore no-explicit-any
  readonly result?: any;
  readonly error?: { readonly code: number };
}

/** An HTTP request that the server received. A GET or DELETE request has no message. */
export interface Heard extends Message {
  readonly http: string;
  readonly headers: Headers;
}

/** A fake HTTP server, and the requests that it received. */
export interface FakeHttp {
  readonly fetch: (request: Request) => Promise<Response>;
  readonly heard: readonly Heard[];
}

export const url = "http://fake.test/mcp";

/**
 * Creates a server that responds to each request with the result of `answer`. If the result is `undefined`, the server
 * responds with 202 to a notification and refuses the HTTP method of any other request.
 */
export function fakeHttp(answer: (heard: Heard) => Response | Promise<Response> | undefined): FakeHttp {
  const heard: Heard[] = [];
  return {
    heard,
    async fetch(request) {
      const text = await request.text();
      const message: Heard = { http: request.method, headers: request.headers, ...text ? JSON.parse(text) : {} };
      heard.push(message);
      return await answer(message) ?? new Response(null, { status: message.method ? 202 : 405 });
    },
  };
}

/** Returns the methods of the received requests in order. For a GET or DELETE request, this is the HTTP method. */
export function methodsOf({ heard }: FakeHttp): string[] {
  return heard.map(({ http, method }) => method ?? http);
}

/** Creates a JSON response with a result. */
export function ok({ id }: Message, result: unknown = {}): Response {
  return Response.json({ jsonrpc: "2.0", id, result });
}

/** Creates a JSON response with an error. */
export function fault({ id }: Message, code: number, status: number, data?: unknown): Response {
  return Response.json({ jsonrpc: "2.0", id, error: { code, message: `error ${code}`, data } }, { status });
}

/** Creates the response of a modern server to `server/discover`. */
export function discovered(message: Message): Response {
  return ok(message, { resultType: "complete", supportedVersions: ["2026-07-28"], capabilities: { tools: {} } });
}

/** The result of `initialize`. */
export const agreed = {
  protocolVersion: "2025-11-25",
  capabilities: { tools: { listChanged: true }, resources: { subscribe: true }, logging: {} },
  serverInfo: { name: "fake", version: "1" },
};

/** Creates a response with a stream of events. After the events, the stream ends, stays open or fails. */
export function stream(events: readonly unknown[], end: "end" | "open" | "break" = "end"): Response {
  const encoder = new TextEncoder();
  let at = 0;
  const body = new ReadableStream({
    pull(controller) {
      if (at < events.length) {
        const event = events[at++];
        return controller.enqueue(
          encoder.encode(typeof event === "string" ? event : `data: ${JSON.stringify(event)}\n\n`),
        );
      }
      if (end === "end") controller.close();
      if (end === "break") controller.error(new TypeError("connection reset"));
    },
  }, { highWaterMark: 0 });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/**
 * Creates a pipe to a fake server. The server passes each received message to `receive`, which can send messages to the
 * client with `say`.
 */
export function fakePipe(
  receive: (message: Message, say: (message: object) => void) => void,
): { readonly [INTERNALS]: { readonly openPipe: typeof open }; readonly heard: readonly Message[] } {
  const heard: Message[] = [];
  function open({ write }: { readonly write: (text: string) => unknown }) {
    return {
      receive(text: string) {
        const message: Message = JSON.parse(text);
        heard.push(message);
        receive(message, (message) => void write(JSON.stringify({ jsonrpc: "2.0", ...message })));
        return undefined;
      },
      reject: () => undefined,
      watchCaller: () => () => {},
      lineBytes: Infinity,
      unanswered: 0,
      untilAnswered: () => Promise.resolve(),
      account: new Accounts({ limits: BOUNDS }).find(),
      idle: () => Promise.resolve(),
      close() {},
    };
  }
  return { [INTERNALS]: { openPipe: open }, heard };
}
