// Connects two callers to a server over each transport. Over HTTP, API keys authenticate the callers.
import process from "node:process";
import type { Authentication, Principal, Server } from "../../mod.ts";
import { apiKey } from "../../src/auth/auth.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import type { Pipe } from "../../src/server/transports/channel.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";
import { type Connection, connectTest, type ConnectTestOptions } from "../../src/testing/testing.ts";
import { serve } from "../peers/runtime.ts";

/** A transport by which a caller connects. */
export type WayIn = "memory" | "pipe" | "websocket" | "http-sse";

/** The names of the callers. */
export const CALLERS = ["ada", "bob"] as const;

/** Authenticates the callers by API key. Their principals have the ids `apikey:ada` and `apikey:bob`. */
export const byKey: Authentication = apiKey({ keys: Object.fromEntries(CALLERS.map((name) => [name, toKey(name)])) });

function toKey(name: string): string {
  return `the-key-of-${name}-0123456789`;
}

/** Returns a header with the API key of a caller. */
export function toSigned(name: typeof CALLERS[number]): { readonly authorization: string } {
  return { authorization: `Bearer ${toKey(name)}` };
}

/** Returns the principal of a caller, for transports without authentication. */
export function toPrincipal(name: typeof CALLERS[number]): Principal {
  return { id: `apikey:${name}` };
}

/** Returns the transports of an era. With QUICK=1, as in the fast tier, returns only one; with QUICK=0, only the others. */
export function listWaysIn(era: "modern" | "legacy"): readonly WayIn[] {
  const all: readonly WayIn[] = era === "modern"
    ? ["memory", "pipe", "websocket"]
    : ["memory", "pipe", "websocket", "http-sse"];
  const quick: WayIn = era === "modern" ? "websocket" : "memory";
  if (process.env.QUICK === "1") return [quick];
  return process.env.QUICK === "0" ? all.filter((way) => way !== quick) : all;
}

/** Connects a caller to a server that has the option `auth: byKey`. */
export async function enter(
  server: Server,
  name: typeof CALLERS[number],
  options: ConnectTestOptions & { readonly way: WayIn },
): Promise<Connection> {
  const { way, ...rest } = options;
  if (way === "pipe") return await connectTest(server, { ...rest, transport: "pipe", principal: toPrincipal(name) });
  if (way === "memory") return await connectTest(server, { ...rest, transport: "memory", headers: toSigned(name) });
  const open = way === "websocket" ? openSocket : openEvents;
  return await connectTest(
    { fetch: server.fetch, [INTERNALS]: { openPipe: ({ write }) => open(server, name, write) } },
    {
      ...rest,
      transport: "pipe",
      ...way === "http-sse" ? { revisions: ["2024-11-05"] } : {},
    },
  );
}

/** Returns the client's end of a connection, as a `Pipe`. */
function toPipe(receive: Pipe["receive"], close: () => void): Pipe {
  const idle = () => Promise.resolve();
  // The cast is safe, because the test kit uses no other members of a pipe.
  return { receive, close, idle, reject: () => undefined, lineBytes: Infinity, unanswered: 0 } as unknown as Pipe;
}

function openSocket(server: Server, name: typeof CALLERS[number], write: (text: string) => unknown): Pipe {
  const port = serve(webSocket(server));
  // The cast is safe. The types allow only a list of protocols, but both runtimes also accept headers.
  const socket = new WebSocket(`ws://${port.host}/ws`, { headers: toSigned(name) } as unknown as string[]);
  const opened = new Promise((resolve) => socket.addEventListener("open", resolve));
  socket.addEventListener("message", ({ data }) => write(data));
  const send = async (text: string) => {
    await opened;
    socket.send(text);
  };
  return toPipe(send, () => {
    socket.addEventListener("close", () => port[Symbol.asyncDispose]());
    socket.close();
  });
}

function openEvents(server: Server, name: typeof CALLERS[number], write: (text: string) => unknown): Pipe {
  const { fetch } = httpSse(server);
  const origin = "http://localhost";
  const { promise: address, resolve } = Promise.withResolvers<string>();
  const stop = new AbortController();
  const reading = read();

  async function read(): Promise<void> {
    const { body } = await fetch(new Request(`${origin}/sse`, { headers: toSigned(name) }));
    const reader = (body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()).getReader();
    stop.signal.addEventListener("abort", () => reader.cancel());
    let text = "";
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const events = (text + next.value).split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) {
        const data = /^data: (.*)$/m.exec(event)?.[1];
        if (event.startsWith("event: endpoint")) resolve(String(data));
        else if (data !== undefined) write(data);
      }
    }
  }

  const send = async (body: string) => {
    const headers = { ...toSigned(name), "content-type": "application/json" };
    const response = await fetch(new Request(origin + await address, { method: "POST", headers, body }));
    if (response.status !== 202) throw new Error(`${response.status} ${await response.text()}`);
  };
  return toPipe(send, () => {
    stop.abort();
    reading.catch(() => {});
  });
}
