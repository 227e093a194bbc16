// A client for the HTTP+SSE transport that calls `fetch` directly, so that tests can send invalid requests.
import type { Server } from "../../mod.ts";
import { httpSse, type HttpSseOptions } from "../../src/server/transports/http/sse_2024.ts";
import { soon } from "./attack.ts";

type Info = { readonly principal?: object };

/** Headers and request info of a request. */
export interface Sent {
  readonly headers?: Readonly<Record<string, string>>;
  readonly info?: Info;
}

/** An HTTP+SSE stream, as `open` returns it. */
export interface OldStream {
  readonly response: Response;
  /** URL for messages to the server. Empty if the stream was refused. */
  readonly address: string;
  /** Resolves to the data of the next event, or to `undefined` if the stream has ended. */
  next(): Promise<string | undefined>;
  leave(): Promise<void>;
}

export const HELLO = {
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: "2024-11-05", capabilities: {}, clientInfo: { name: "hostile", version: "1" } },
};

/** Returns the message of a tool call without arguments. */
export function callOf(name: string, id = 1): object {
  return { jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: {} } };
}

/** Serves a server over HTTP+SSE. Returns functions that open streams and send messages. */
export function serveOld(server: Server, options?: HttpSseOptions) {
  const { fetch } = httpSse(server, options);

  async function open(path = "/sse", { headers, info }: Sent = {}): Promise<OldStream> {
    const response = await fetch(new Request(`http://localhost${path}`, { headers }), info);
    const next = readEvents(response.status === 200 ? response.body : null);
    const address = response.status === 200 ? await next() ?? "" : "";
    return { response, address, next, leave: async () => await next("leave").then(() => {}) };
  }

  async function post(address: string, message: object | BodyInit, { headers, info }: Sent = {}): Promise<Response> {
    const isBody = typeof message === "string" || message instanceof ReadableStream;
    const init = {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: isBody ? message : JSON.stringify(message),
      duplex: "half",
    };
    return await fetch(new Request(`http://localhost${address}`, init), info);
  }

  return { fetch, open, post };
}

function readEvents(body: Response["body"]): (wish?: "leave") => Promise<string | undefined> {
  const reader = (body ?? new Blob().stream()).pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  return async (wish) => {
    if (wish) {
      await reader.cancel();
      return;
    }
    for (;;) {
      const [event] = text.split("\n\n", 1);
      if (event.length < text.length) {
        text = text.slice(event.length + 2);
        const [, data] = /^data: (.*)$/m.exec(event) ?? [];
        if (data !== undefined) return data;
        continue;
      }
      const read = await soon(reader.read());
      if (!read) throw new Error("nothing more arrives, and the stream stays open");
      if (read.done) return;
      text += read.value;
    }
  };
}
