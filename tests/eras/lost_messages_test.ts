// Instances that share a secret but no store warn once of an answer, a cancellation and a stream that reach the wrong
// instance. Ordinary late messages, and messages that a client makes up, cause no warning.
import { assert, assertEquals } from "@std/assert";
import { z } from "zod";
import { createServer, type Server, type ServerOptions, tool } from "../../mod.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { connectTest, type FakeClock, fakeClock } from "../../src/testing/testing.ts";
import { gate, plainTool, textOf, turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { readReply, toRequest, toStatus } from "../support/requests.ts";
import { closeAtEnd } from "../support/running.ts";
import { openSession, toHello, toSessionRequest } from "../support/sessions.ts";
import { collectWarnings } from "../support/warnings.ts";

const MINUTE = 60_000;
const form = z.object({ name: z.string() });
const answer = { action: "accept", content: { name: "Ada" } };

/** An instance of the server. */
type Instance = ReturnType<typeof start>;

function start(clock: FakeClock, options: Partial<ServerOptions> = {}) {
  const { pass } = gate();
  const ask = plainTool(
    "ask",
    async (ctx) => `${(await ctx.elicit("name", { message: "Name?", schema: form })).content?.name}`,
  );
  const hold = tool({ name: "hold", run: () => pass });
  const server = closeAtEnd(createServer({
    name: "lost",
    version: "1.0.0",
    handlers: [ask, hold],
    secret: "s".repeat(32),
    clock,
    ...options,
  }));
  const post = (session: string, message: object) =>
    server.fetch(toSessionRequest({ jsonrpc: "2.0", ...message }, { "mcp-session-id": session }));
  return {
    server,
    post,
    begin: () => openSession(server, toHello({ capabilities: { elicitation: {} } })),
    /** Calls the tool that asks a question. Returns the id of the question, and the result. */
    async ask(session: string) {
      const { body } = await post(session, { id: 7, method: "tools/call", params: { name: "ask", arguments: {} } });
      const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      const readTo = async (pattern: RegExp): Promise<string> => {
        for (;;) {
          const found = pattern.exec(text)?.[1];
          if (found !== undefined) return found;
          const { done, value } = await reader?.read() ?? { done: true };
          if (done) throw new Error(`the stream ended: ${text}`);
          text += value;
        }
      };
      const id = await readTo(/"id":"(ask-[^"]*)"/);
      return { id, result: readTo(/"id":7,(.*)\n/) };
    },
    /** Opens the stream of a session. */
    listen: (session: string) => server.fetch(toSessionRequest(undefined, { "mcp-session-id": session })),
  };
}

/** Starts two instances, runs a function, and returns the warnings. */
async function warningsOf(
  run: (a: Instance, b: Instance, clock: FakeClock) => Promise<void>,
  options: Partial<ServerOptions> = {},
): Promise<string[]> {
  const clock = fakeClock();
  const [a, b] = [start(clock, options), start(clock, options)];
  const warnings = await collectWarnings(() => run(a, b, clock));
  const closing = [a, b].map(({ server }) => server.close());
  await clock.advance(MINUTE);
  await Promise.all(closing);
  return warnings;
}

const cancel = { method: "notifications/cancelled", params: { requestId: 9 } };
const ping = { id: 1, method: "ping" };

Deno.test("an answer to a question of another instance causes one warning, and the asking instance still takes an answer", async () => {
  const warnings = await warningsOf(async (a, b) => {
    const session = await a.begin();
    for (let i = 0; i < 3; i++) {
      const { id, result } = await a.ask(session);
      assertEquals(await toStatus(b.post(session, { id, result: answer })), 202);
      assertEquals(await toStatus(a.post(session, { id, result: answer })), 202);
      assert((await result).includes("Ada"));
    }
  });
  assertEquals(warnings, [sentence("answer", "lost")]);
});

Deno.test("late answers, answers to an earlier process, and ids that a client makes up cause no warning", async () => {
  const warnings = await warningsOf(async (a, b, clock) => {
    const session = await a.begin();
    const { id, result } = await a.ask(session);
    await clock.advance(2000);
    assert((await result).includes("calls.answerMs"));
    assertEquals(await toStatus(a.post(session, { id, result: answer })), 202);
    const made = ["ask-1", "x", `ask-${crypto.randomUUID()}`, `ask-${"a".repeat(120)}`, `${id}x`, id.slice(0, -1), 5];
    for (const each of made) {
      for (const instance of [a, b]) {
        assertEquals(await toStatus(instance.post(session, { id: each, result: {} })), 202);
      }
    }
    const later = start(clock);
    assertEquals(await toStatus(later.post(session, { id, result: answer })), 202);
  }, { limits: { calls: { answerMs: 1000 } } });
  assertEquals(warnings, []);
});

Deno.test("a cancellation that is the first request of a session of another instance causes one warning", async () => {
  const warnings = await warningsOf(async (a, b, clock) => {
    await clock.advance(MINUTE);
    for (let i = 0; i < 3; i++) {
      const session = await a.begin();
      assertEquals(await toStatus(b.post(session, { method: "notifications/initialized" })), 202);
      assertEquals(await toStatus(b.post(session, cancel)), 202);
    }
  });
  assertEquals(warnings, [sentence("cancel", "lost")]);
});

Deno.test("ordinary late cancellations cause no warning", async () => {
  const warnings = await warningsOf(async (a, b, clock) => {
    const early = await a.begin();
    assertEquals(await toStatus(b.post(early, cancel)), 202);
    await clock.advance(MINUTE);
    const session = await a.begin();
    // The instance that has created the session.
    assertEquals(await toStatus(a.post(session, cancel)), 202);
    // A load balancer with sticky sessions sends everything after initialize to one instance.
    assertEquals(await toStatus(b.post(session, ping)), 200);
    assertEquals(await toStatus(b.post(session, cancel)), 202);
    // A cancellation of a running call.
    const other = await a.begin();
    const held = b.post(other, { id: 9, method: "tools/call", params: { name: "hold", arguments: {} } });
    await turn(5);
    assertEquals(await toStatus(b.post(other, cancel)), 202);
    await (await held).body?.cancel();
  });
  assertEquals(warnings, []);
});

Deno.test("a stream without other messages in a session of another instance causes one warning", async () => {
  const warnings = await warningsOf(async (a, b, clock) => {
    await clock.advance(MINUTE);
    const streams = [];
    for (let i = 0; i < 3; i++) {
      const session = await a.begin();
      assertEquals(await toStatus(a.post(session, { method: "notifications/initialized" })), 202);
      streams.push(await b.listen(session));
    }
    await clock.advance(6000);
    for (const { body } of streams) await body?.cancel();
  });
  assertEquals(warnings, [sentence("stream")]);
});

Deno.test("an instance that was created while the clock showed 0, as when a Worker starts, does not warn of earlier sessions", async () => {
  const warnings = await warningsOf(async (a, _b, clock) => {
    await clock.advance(MINUTE);
    const session = await a.begin();
    const { id, result } = await a.ask(session);
    let isStarting = true;
    const later = start({ ...clock, date: () => isStarting ? 0 : clock.date() });
    await clock.advance(1);
    isStarting = false;
    assertEquals(await toStatus(later.post(session, { id, result: answer })), 202);
    assertEquals(await toStatus(later.post(session, cancel)), 202);
    const stream = await later.listen(await a.begin());
    await clock.advance(6000);
    await stream.body?.cancel();
    assertEquals(await toStatus(a.post(session, { id, result: answer })), 202);
    await result;
  });
  assertEquals(warnings, []);
});

Deno.test("ordinary streams cause no warning", async () => {
  const warnings = await warningsOf(async (a, b, clock) => {
    const streams = [await b.listen(await a.begin())];
    await clock.advance(MINUTE);
    // A stream on the instance that has created the session.
    streams.push(await a.listen(await a.begin()));
    // Sticky sessions, also if the stream comes first.
    const [first, second, short] = [await a.begin(), await a.begin(), await a.begin()];
    await toStatus(b.post(first, { method: "notifications/initialized" }));
    streams.push(await b.listen(first), await b.listen(second));
    await toStatus(b.post(second, { method: "notifications/initialized" }));
    // A stream that ends soon.
    await (await b.listen(short)).body?.cancel();
    await clock.advance(MINUTE);
    for (const { body } of streams) await body?.cancel();
  });
  assertEquals(warnings, []);
});

Deno.test("the first messages of a session after its state was evicted cause no warning", async () => {
  const warnings = await warningsOf(async (a, b, clock) => {
    await clock.advance(MINUTE);
    const [first, second] = [await a.begin(), await a.begin()];
    for (const session of [first, second]) assertEquals(await toStatus(b.post(session, ping)), 200);
    assertEquals(await toStatus(b.post(first, cancel)), 202);
    const stream = await b.listen(second);
    await clock.advance(6000);
    await stream.body?.cancel();
  }, { limits: { connections: { sessions: 1 } } });
  assertEquals(warnings, []);
});

Deno.test("instances with a store pass messages on, and cause no warning", async () => {
  const warnings = await warningsOf(async (a, b, clock) => {
    await clock.advance(MINUTE);
    const session = await a.begin();
    const { id, result } = await a.ask(session);
    const stream = await b.listen(session);
    assertEquals(await toStatus(b.post(session, cancel)), 202);
    assertEquals(await toStatus(b.post(session, { id, result: answer })), 202);
    await until(async () => {
      await clock.advance(100);
      return await Promise.race([result.then(() => true), turn().then(() => false)]);
    }, "the answer arrives");
    await clock.advance(6000);
    await stream.body?.cancel();
  }, { store: memoryStore() });
  assertEquals(warnings, []);
});

Deno.test("clients of 2026-07-28, and clients over stdio, cause no warning", async () => {
  const warnings = await warningsOf(async (a, b) => {
    for (const { server } of [a, b]) {
      for (const [era, transport] of [["modern", "memory"], ["modern", "pipe"], ["legacy", "pipe"]] as const) {
        await using client = await connectTest(server, { era, transport, onElicit: () => answer as never });
        assertEquals(textOf(await client.callTool("ask")), "Ada");
        await client.notify("notifications/cancelled", { requestId: 99 });
        await client.callTool("ask");
      }
    }
  });
  assertEquals(warnings, []);
});

// A process warns once if a client sends a session id or a requestState that another process has created with another
// secret.

const schema = z.object({ ok: z.boolean() });
const ask = plainTool("ask", async (ctx) => (await ctx.elicit("sure", { message: "?", schema })).action);
const SECRETS = [
  "a first secret of at least thirty-two characters",
  "a second secret of at least thirty-two characters",
];

function startPair(secret?: string): Server {
  return createServer({ name: "pair", version: "1.0.0", handlers: [ask], secret });
}

/** Uses a session. Returns the HTTP status. */
async function useSession(server: Server, id: string): Promise<number> {
  const headers = { "mcp-session-id": id, "mcp-protocol-version": "2025-11-25" };
  const response = await server.fetch(toSessionRequest({ jsonrpc: "2.0", id: 2, method: "ping" }, headers));
  await response.text();
  return response.status;
}

const capabilities = { "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } };

async function call(server: Server, requestState?: string): Promise<{ requestState?: string; code?: number }> {
  const params = { name: "ask", arguments: {}, requestState, _meta: capabilities };
  const response = await server.fetch(toRequest("tools/call", params));
  const { result, error } = await readReply(response);
  return { requestState: result?.requestState, code: error?.code };
}

for (const [name, secrets] of [["different secrets", SECRETS], ["no secret", [undefined, undefined]]] as const) {
  Deno.test(`a process that gets the session of a process with ${name} warns once`, async () => {
    const [one, two] = secrets.map((secret) => startPair(secret));
    const id = await openSession(one);
    const warnings = await collectWarnings(async () => {
      assertEquals(await useSession(one, id), 200);
      for (let i = 0; i < 2; i++) assertEquals(await useSession(two, id), 404);
    });
    assertEquals(warnings, [sentence("session id", "pair", "secret")]);
    await Promise.all([one.close(), two.close()]);
  });

  Deno.test(`a process that gets the requestState of a process with ${name} warns once`, async () => {
    const [one, two] = secrets.map((secret) => startPair(secret));
    const { requestState } = await call(one);
    const warnings = await collectWarnings(async () => {
      for (let i = 0; i < 2; i++) assertEquals((await call(two, requestState)).code, -32602);
    });
    assertEquals(warnings, [sentence("requestState", "pair", "secret")]);
    await Promise.all([one.close(), two.close()]);
  });
}

Deno.test("processes with the same secret do not warn, and short texts that clients make up cause no warning", async () => {
  const [one, two] = [startPair(SECRETS[0]), startPair(SECRETS[0])];
  const id = await openSession(one);
  const warnings = await collectWarnings(async () => {
    assertEquals(await useSession(two, id), 200);
    assertEquals(await useSession(two, "made-up"), 404);
    assertEquals((await call(two, "made-up")).code, -32602);
  });
  assertEquals(warnings, []);
  await Promise.all([one.close(), two.close()]);
});
