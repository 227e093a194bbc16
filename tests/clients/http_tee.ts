// A proxy in front of an HTTP server, which records the messages of both sides.
import { openHttpServer } from "../../src/testing/http_server.ts";
import { HEADERS, toMessages, type WireEntry } from "./wire.ts";

/** A running tee. Disposing stops the tee. */
export interface HttpTee extends AsyncDisposable {
  readonly origin: string;
  readonly entries: WireEntry[];
}

/** Starts a tee in front of the server that `toTarget` returns, such as `http://127.0.0.1:3000`. */
export async function startHttpTee(toTarget: () => string): Promise<HttpTee> {
  const entries: WireEntry[] = [];
  const { origin, stop } = await openHttpServer((request) => forward(request, toTarget(), entries));
  return { origin, entries, [Symbol.asyncDispose]: stop };
}

async function forward(request: Request, target: string, entries: WireEntry[]): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  const text = await request.text();
  const headers = Object.fromEntries(HEADERS.flatMap((name) => {
    const value = request.headers.get(name);
    return value === null ? [] : [[name, value]];
  }));
  const [message] = toMessages(text);
  entries.push({ from: "client", http: request.method, headers, ...message !== undefined && { message } });
  const sent = new Headers(request.headers);
  for (const name of ["host", "connection", "content-length"]) sent.delete(name);
  try {
    const response = await fetch(target + pathname + search, {
      method: request.method,
      headers: sent,
      body: text || undefined,
      redirect: "manual",
    });
    const body = response.body?.pipeThrough(record(entries));
    const received = new Headers(response.headers);
    received.delete("content-encoding");
    received.delete("content-length");
    return new Response(body, { status: response.status, headers: received });
  } catch {
    return new Response("the server is not reachable", { status: 502 });
  }
}

/** Returns a stream that passes all bytes on, and records complete lines. */
function record(entries: WireEntry[]): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  let rest = "";
  const add = (text: string) => {
    for (const message of toMessages(text)) entries.push({ from: "server", message });
  };
  return new TransformStream({
    transform(bytes, controller) {
      controller.enqueue(bytes);
      rest += decoder.decode(bytes, { stream: true });
      const end = rest.lastIndexOf("\n") + 1;
      add(rest.slice(0, end));
      rest = rest.slice(end);
    },
    flush: () => add(rest),
  });
}
