// Three instances are restarted one after another with another secret, without a failed request.
import { assert, assertEquals, assertMatch } from "@std/assert";
import { resource, type Server, tool } from "../../mod.ts";
import { idempotent } from "../../src/layers/layers.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { quota } from "../../src/layers/layers.ts";
import { customStore, memoryStore, type Store } from "../../src/stores/stores.ts";
import { until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { call } from "../support/requests.ts";
import { openServer } from "../support/servers.ts";

const OLD = "the old secret of at least thirty-two characters";
const NEW = "the new secret of at least thirty-two characters";
const TEXT = "line\n".repeat(2000);
const yes = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] } as const;

/** Instances that share a store. Each instance can be restarted with another secret. */
class Fleet {
  runs = 0;
  servers: Server[];
  readonly #shared: Store = memoryStore();

  constructor(secret: readonly string[]) {
    this.servers = Array.from({ length: 3 }, () => this.#start(secret));
  }

  #start(secret: readonly string[]): Server {
    const pay = tool({ name: "pay", use: [idempotent(() => "key")], run: () => ({ run: ++this.runs }) });
    const ask = tool({
      name: "ask",
      run: async (_input, ctx) => (await ctx.elicit("sure", { message: "Sure?", schema: yes })).action,
    });
    const all = tool({ name: "all", use: [quota({ resultBytes: 2000, onLarge: "link" })], run: () => TEXT });
    const note = resource({ uri: "note://1", name: "note", read: () => "text" });
    return openServer({
      handlers: [pay, ask, all, note],
      secret,
      store: customStore(this.#shared[INTERNALS].connect, { pollMs: 50 }),
      limits: testLimits({ calls: { pageItems: 1 } }),
    });
  }

  async restart(index: number, secret: readonly string[]): Promise<void> {
    await this.servers[index].close();
    this.servers[index] = this.#start(secret);
  }

  async send(index: number, message: object | undefined, session?: string, method = "POST"): Promise<Response> {
    const headers = {
      "content-type": "application/json",
      accept: message ? "application/json, text/event-stream" : "text/event-stream",
      ...session && { "mcp-session-id": session },
    };
    const body = message && JSON.stringify({ jsonrpc: "2.0", id: 1, ...message });
    return await this.servers[index].fetch(new Request("http://localhost/mcp", { method, headers, body }));
  }

  async text(index: number, method: string, params: object = {}, session?: string): Promise<string> {
    return await (await this.send(index, { method, params }, session)).text();
  }

  async open(index: number): Promise<string> {
    const capabilities = { elicitation: {} };
    const params = { protocolVersion: "2025-11-25", capabilities, clientInfo: { name: "c", version: "1" } };
    const response = await this.send(index, { method: "initialize", params });
    await response.text();
    return response.headers.get("mcp-session-id") ?? "";
  }

  async status(index: number, session: string): Promise<number> {
    const response = await this.send(index, { method: "ping" }, session);
    await response.text();
    return response.status;
  }

  async close(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.close()));
  }
}

const asking = { "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } };

/** Starts a 2026-07-28 call that asks a question. Returns the request state for the answer. */
async function asks(fleet: Fleet, index: number): Promise<string> {
  const { resultType, requestState } = await call(fleet.servers[index], "tools/call", { name: "ask", _meta: asking });
  assertEquals(resultType, "input_required");
  return requestState;
}

/** Answers a question of a 2026-07-28 call on an instance. */
async function answers(fleet: Fleet, index: number, requestState: string): Promise<string> {
  const inputResponses = { sure: { action: "accept", content: { ok: true } } };
  const params = { name: "ask", _meta: asking, requestState, inputResponses };
  return JSON.stringify(await call(fleet.servers[index], "tools/call", params));
}

/**
 * Asks a question in a session on one instance, and answers it on another instance. Returns the end of the call's
 * stream.
 */
async function asksInSession(fleet: Fleet, index: number, other: number, session: string): Promise<string> {
  const message = { method: "tools/call", params: { name: "ask" } };
  const { body } = await fleet.send(index, message, session);
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (true) {
    const { value, done } = await reader?.read() ?? { done: true };
    if (done) return text;
    text += value;
    const id = /"id":"(ask-[^"]+)"/.exec(text)?.[1];
    if (!id) continue;
    text = "";
    const answer = { id, result: { action: "accept", content: { ok: true } } };
    assertEquals((await fleet.send(other, answer, session)).status, 202);
  }
}

/** Asserts that a session's subscription applies on an instance, whichever instance announces the change. */
async function hears(fleet: Fleet, index: number, session: string): Promise<void> {
  const { body } = await fleet.send(index, undefined, session, "GET");
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  const reading = (async () => {
    for (;;) {
      const { value, done } = await reader?.read() ?? { done: true };
      if (done) return;
      text += value;
    }
  })();
  fleet.servers[(index + 1) % 3].resourceUpdated("note://1");
  await until(() => text.includes("resources/updated"), `instance ${index} is notified of the change`);
  await reader?.cancel();
  await reading;
}

Deno.test("a secret can be rotated in three rolling restarts, and all sessions, questions and links stay valid", async () => {
  const fleet = new Fleet([OLD]);
  const session = await fleet.open(0);
  const ended = await fleet.open(0);
  await fleet.text(0, "resources/subscribe", { uri: "note://1" }, session);
  assertMatch(await fleet.text(0, "tools/call", { name: "pay" }, session), /"run":1/);
  const cursor = /"nextCursor":"([^"]+)"/.exec(await fleet.text(0, "tools/list", {}, session))?.[1];
  assert(cursor);
  assertEquals((await fleet.send(0, undefined, ended, "DELETE")).status, 204);
  const link = /result:[/\w-]+/.exec(await fleet.text(0, "tools/call", { name: "all" }, session))?.[0];
  const question = await asks(fleet, 0);
  for (const secret of [[OLD, NEW], [NEW, OLD]]) {
    for (const restarted of [0, 1, 2]) {
      await fleet.restart(restarted, secret);
      const fresh = await fleet.open(restarted);
      for (const index of [0, 1, 2]) {
        const at = `instance ${index} after the restart of ${restarted} with ${secret}`;
        assertEquals(await fleet.status(index, session), 200, at);
        assertEquals(await fleet.status(index, fresh), 200, at);
        assertEquals(await fleet.status(index, ended), 404, at);
        assertMatch(await fleet.text(index, "tools/call", { name: "pay" }, session), /"run":1/, at);
        assertMatch(await fleet.text(index, "tools/list", { cursor }, session), /"name":"ask"/, at);
        assertMatch(await fleet.text(index, "resources/read", { uri: link }, session), /"text":"line/, at);
        assertMatch(await answers(fleet, index, question), /"accept"/, at);
        assertMatch(await answers(fleet, index, await asks(fleet, restarted)), /"accept"/, at);
        assertMatch(await asksInSession(fleet, index, restarted, session), /"text":"accept"/, at);
        assertMatch(await asksInSession(fleet, restarted, index, session), /"text":"accept"/, at);
        await hears(fleet, index, session);
      }
      // This instance seals changes of session state with its first secret.
      await fleet.text(restarted, "logging/setLevel", { level: "debug" }, session);
    }
  }
  // Ending a session seals the list of ended sessions with the new secret. An instance that cannot read this list
  // refuses every session of its clients, until the list expires.
  assertEquals((await fleet.send(0, undefined, await fleet.open(0), "DELETE")).status, 204);
  const last = await fleet.open(0);
  for (const restarted of [0, 1, 2]) {
    await fleet.restart(restarted, [NEW]);
    for (const index of [0, 1, 2]) assertEquals(await fleet.status(index, last), 200);
    // Values that are sealed with the old secret are now refused.
    assertEquals(await fleet.status(restarted, session), 404);
  }
  assertEquals(fleet.runs, 1);
  await fleet.close();
});

Deno.test("an instance refuses values that were sealed with an unknown secret", async () => {
  const fleet = new Fleet([OLD]);
  const session = await fleet.open(1);
  await fleet.restart(0, [NEW, OLD]);
  const fresh = await fleet.open(0);
  assertEquals([await fleet.status(0, session), await fleet.status(1, fresh)], [200, 404]);
  await fleet.close();
});
