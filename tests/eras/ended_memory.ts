// The memory of a process whose client opens and ends sessions.
import { createServer } from "../../mod.ts";
import type { ReadHeap } from "../support/heap.ts";
import { toHello } from "../support/sessions.ts";

const HEADERS = {
  host: "localhost",
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};

const PEER = { remoteAddr: { hostname: "192.0.2.1" } };

/** Opens and ends many sessions of one client. Resolves to the heap's growth per session, in bytes. */
export async function measure(readHeap: ReadHeap): Promise<number> {
  const server = createServer({ name: "ended", version: "1.0.0", handlers: [] });
  const send = async (method: string, init: { readonly body?: string; readonly session?: string }) => {
    const { body, session } = init;
    const headers = { ...HEADERS, ...session === undefined ? {} : { "mcp-session-id": session } };
    const response = await server.fetch(new Request("http://localhost/mcp", { method, headers, body }), PEER);
    await response.body?.cancel();
    return response;
  };
  const hello = JSON.stringify(toHello());
  const flood = async (count: number) => {
    for (let i = 0; i < count; i++) {
      const session = (await send("POST", { body: hello })).headers.get("mcp-session-id") ?? "";
      const { status } = await send("DELETE", { session });
      if (status !== 204) throw new Error(`status ${status}`);
    }
  };
  await flood(1000);
  const before = await readHeap();
  await flood(COUNT);
  const bytes = (await readHeap() - before) / COUNT;
  await server.close();
  return bytes;
}

const COUNT = 3000;
