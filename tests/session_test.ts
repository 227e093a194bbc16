// Sessions as the server that keeps them sees them: what ends them, what outlives a process, and what is never lent.
import { assert, assertEquals, assertNotEquals, assertStringIncludes } from "@std/assert";
import { createServer, type Server, type ServerOptions, tool } from "../mod.ts";
import { fakeClock } from "../src/testing/testing.ts";
import { until } from "./behaviour.ts";

type Json = { readonly [key: string]: unknown };
type Headers = Readonly<Record<string, string>>;

const SECRET = "a secret of at least thirty-two characters";

interface Held {
  readonly server: Server;
  /** What the tools did. */
  readonly log: string[];
}

function start(options: Partial<ServerOptions> = {}): Held {
  const log: string[] = [];
  const hold = tool({
    name: "hold",
    run: (_input, { signal }) =>
      new Promise<string>((resolve) => {
        log.push("hold");
        signal.addEventListener("abort", () => {
          log.push(`aborted: ${signal.reason.message}`);
          resolve("");
        });
      }),
  });
  const who = tool({ name: "who", run: (_input, { client }) => ({ ...client.info, sampling: client.capabilities.sampling }) });
  return { log, server: createServer({ name: "kept", version: "1.0.0", secret: SECRET, handlers: [hold, who], ...options }) };
}

function send({ server }: Held, id: string | undefined, message: Json | undefined, more: Headers = {}, principal?: unknown) {
  const method = message ? "POST" : more.method ?? "GET";
  const headers: Record<string, string> = {
    "content-type": "application/json",
    accept: more.accept ?? (message ? "application/json, text/event-stream" : "text/event-stream"),
    ...id === undefined ? {} : { "mcp-session-id": id },
  };
  const body = message && JSON.stringify({ jsonrpc: "2.0", ...message });
  const request = new Request("http://localhost/mcp", { method, headers, body });
  return server.fetch(request, principal === undefined ? undefined : { principal });
}

async function shake(held: Held, params: Json = {}, principal?: unknown): Promise<string> {
  const all = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" }, ...params };
  const response = await send(held, undefined, { id: 0, method: "initialize", params: all }, {}, principal);
  await response.text();
  return response.headers.get("mcp-session-id") ?? "";
}

const ping = { id: 1, method: "ping" };
const call = (name: string, id: unknown = 1) => ({ id, method: "tools/call", params: { name } });

async function isGood(held: Held, id: string, principal?: unknown): Promise<boolean> {
  const { status, body } = await send(held, id, ping, {}, principal);
  await body?.cancel();
  assert(status === 200 || status === 404, `status ${status}`);
  return status === 200;
}

async function end(held: Held, id: string): Promise<number> {
  return (await send(held, id, undefined, { method: "DELETE" })).status;
}

/** Runs with every unsealing but the first `quick` ones taking `ms` longer. */
async function withSlowSeals(ms: number, quick: number, run: () => Promise<void>): Promise<void> {
  const { decrypt } = crypto.subtle;
  let seen = 0;
  const value = async (...args: Parameters<typeof decrypt>) => {
    if (++seen > quick) await new Promise((resolve) => setTimeout(resolve, ms));
    return await decrypt.apply(crypto.subtle, args);
  };
  Object.defineProperty(crypto.subtle, "decrypt", { configurable: true, value });
  try {
    await run();
  } finally {
    Reflect.deleteProperty(crypto.subtle, "decrypt");
  }
}

Deno.test("an unknown session is 404 however long it takes to find that out", () =>
  withSlowSeals(60, 0, async () => {
    const held = start({ limits: { graceMs: 1 } });
    const id = await shake(held);
    const unknown = await send(held, id.toUpperCase(), ping);
    assertEquals([unknown.status, (await unknown.json()).error.code], [404, -32600]);
    // A good one is not held back: its call becomes a stream, on which a lost client is noticed.
    const running = await send(held, id, call("hold"));
    assertEquals(running.headers.get("content-type"), "text/event-stream");
    await end(held, id);
    await running.text();
    await held.server.close();
  }));

Deno.test("a session that is ended while another request opens it stays ended", () =>
  withSlowSeals(60, 1, async () => {
    const before = start();
    const id = await shake(before);
    // Another instance, which has not heard of the session.
    const held = start();
    const [ended, late] = await Promise.all([end(held, id), send(held, id, ping)]);
    await late.body?.cancel();
    assertEquals([ended, late.status], [204, 404]);
    assertEquals(await isGood(held, id), false);
    await before.server.close();
    await held.server.close();
  }));
