// Whoever answers a question of a call needs the rights that the call's handler asks for: in a session, a token of the
// same principal that may not call the handler cannot answer for the token that may.
import { assert, assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { type Context, createServer, type Handler, prompt, resource, tool } from "../../mod.ts";
import type { RefusedEvent } from "../../src/server/call/observer.ts";
import { FIXED_LIMITS } from "../../src/server/capacity/fixed_limits.ts";
import { gate, until } from "../support/behaviour.ts";
import { serveOld } from "../hostile/sse.ts";
import { FULL, GUEST, type Headers, NARROW, PLACES, Reading, request, type Site, withSite } from "./session_site.ts";
import { toReply } from "../support/requests.ts";
import { toHello } from "../support/sessions.ts";

const FORM = { type: "object", properties: {} } as const;
const INSUFFICIENT_SCOPE = -31_403;

/** Handlers that ask for a confirmation, and the answers that they have received. */
function makeAsking() {
  const answers: string[] = [];
  const ask = async (ctx: Context) => {
    const { action } = await ctx.elicit("sure", { message: "Sure?", schema: FORM });
    answers.push(action);
    return `it was ${action}`;
  };
  const makeHandlers = (): Handler[] => [
    tool({ name: "wire", scopes: ["pay"], run: (_, ctx) => ask(ctx) }),
    tool({ name: "secret", allow: ({ principal }) => principal?.staff === true, run: (_, ctx) => ask(ctx) }),
    prompt({ name: "letter", scopes: ["pay"], run: (_, ctx) => ask(ctx) }),
    resource({ uri: "safe://{id}", name: "safe", scopes: ["pay"], read: (_, ctx) => ask(ctx) }),
  ];
  return { answers, makeHandlers };
}

const wire = request(2, "tools/call", { name: "wire", arguments: {} });

/** Sends a request, and returns its stream and the id of the question on the stream. */
async function beginAsking(site: Site, message: object): Promise<{ stream: Reading; id: string }> {
  const stream = new Reading(await site.send(message, FULL));
  await stream.until("elicitation/create");
  // The last instance takes part in the session from its first request.
  await (await site.sendLast(request(90, "ping", {}), FULL)).text();
  return { stream, id: /"id":"([^"]+)","method":"elicitation/.exec(stream.text)?.[1] ?? "" };
}

const accept = (id: unknown) => ({ jsonrpc: "2.0", id, result: { action: "accept", content: {} } });

/** The status, the challenge and the error of a response. */
async function read(response: Response) {
  const text = await response.text();
  const error = text ? Object([JSON.parse(toReply(text))].flat()[0]).error : undefined;
  return { status: response.status, challenge: response.headers.get("www-authenticate"), error };
}

for (const { version, instances, place } of PLACES) {
  Deno.test(`a token without the scopes of a handler cannot answer the handler's questions (${place})`, async () => {
    const refused: unknown[] = [];
    const observer = {
      refused: ({ status, reason, code }: RefusedEvent) => void refused.push([status, reason, code]),
    };
    const { answers, makeHandlers } = makeAsking();
    await withSite({ version, instances, observer }, makeHandlers, async (site) => {
      const messages = [
        wire,
        request(3, "prompts/get", { name: "letter" }),
        request(4, "resources/read", { uri: "safe://7" }),
      ];
      for (const [index, message] of messages.entries()) {
        const { stream, id } = await beginAsking(site, message);
        const called = await read(await site.sendLast({ ...message, id: 50 }, NARROW));
        assertEquals(called.status, 403);
        refused.length = 0;
        const failure = { jsonrpc: "2.0", id, error: { code: -1, message: "no" } };
        for (const answer of [accept(id), failure]) {
          const { status, challenge, error } = await read(await site.sendLast(answer, NARROW));
          assertEquals({ status, challenge, error }, called);
        }
        assertEquals(refused, Array(2).fill([403, "scope", INSUFFICIENT_SCOPE]));
        assertEquals(answers.length, index);
        assertEquals((await read(await site.sendLast(accept(id), FULL))).status, 202);
        await stream.until("it was accept");
      }
    });
  });

  Deno.test(`for a caller from whom a tool is hidden, its question does not exist (${place})`, async () => {
    const refused: unknown[] = [];
    const observer = {
      refused: ({ status, reason, method }: RefusedEvent) => refused.push([status, reason, method]),
    };
    const { answers, makeHandlers } = makeAsking();
    await withSite({ version, instances, observer }, makeHandlers, async (site) => {
      const secret = request(2, "tools/call", { name: "secret", arguments: {} });
      const { stream, id } = await beginAsking(site, secret);
      const unknown = await read(await site.sendLast(accept("ask-1"), GUEST));
      assertEquals(refused, []);
      assertEquals(await read(await site.sendLast(accept(id), GUEST)), unknown);
      assertEquals(unknown.status, 202);
      assertEquals(refused, [[202, "params", "tools/call"]]);
      await read(await site.sendLast(accept(id), FULL));
      await stream.until("it was accept");
      assertEquals(answers, ["accept"]);
    });
  });

  Deno.test(`while a tool is disabled, nobody answers its questions (${place})`, async () => {
    const { answers, makeHandlers } = makeAsking();
    await withSite({ version, instances }, makeHandlers, async (site) => {
      const { stream, id } = await beginAsking(site, wire);
      const { handlers } = site.last;
      handlers.disable({ tool: "wire" });
      assertEquals((await read(await site.sendLast(accept(id), FULL))).status, 202);
      handlers.enable({ tool: "wire" });
      // A second refusal would mean that the first response was remembered as forwarded.
      await read(await site.sendLast(accept(id), FULL));
      await stream.until("it was accept");
      assertEquals(answers, ["accept"]);
    });
  });
}

Deno.test("an answer in a batch needs the rights too", async () => {
  for (const instances of [1, 2]) {
    const { answers, makeHandlers } = makeAsking();
    await withSite({ version: "2025-03-26", instances }, makeHandlers, async (site) => {
      const { stream, id } = await beginAsking(site, wire);
      const { error } = await read(await site.sendLast([accept(id)], NARROW));
      assertEquals([Object(error).code, answers], [INSUFFICIENT_SCOPE, []]);
      await read(await site.sendLast([accept(id)], FULL));
      await stream.until("it was accept");
    });
  }
});

/** A tool that asks, and whose `allow` waits for `check` while `check.isSlow` is set. */
function makeSlowlyAllowed() {
  const check = { ...gate(), isSlow: false };
  const makeHandlers = () => [
    tool({
      name: "wire",
      allow: async () => (check.isSlow && await check.pass, true),
      run: async (_, ctx) => (await ctx.elicit("sure", { message: "Sure?", schema: FORM })).action,
    }),
  ];
  return { check, makeHandlers };
}

Deno.test("an answer whose sender is checked after the call has ended is ignored", async () => {
  const { check, makeHandlers } = makeSlowlyAllowed();
  await withSite({ version: "2025-11-25", instances: 1 }, makeHandlers, async (site) => {
    const { stream, id } = await beginAsking(site, wire);
    check.isSlow = true;
    const answering = site.send(accept(id), FULL);
    await (await site.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 2 } }, FULL))
      .text();
    await until(() => stream.isOver, "the call has ended");
    check.open();
    assertEquals((await answering).status, 202);
  });
});

Deno.test("only so many answers of a session are checked at a time, and the client can repeat the others", async () => {
  const { check, makeHandlers } = makeSlowlyAllowed();
  const refused: unknown[] = [];
  const observer = { refused: ({ status, reason, limit }: RefusedEvent) => void refused.push([status, reason, limit]) };
  await withSite({ version: "2025-11-25", instances: 1, observer }, makeHandlers, async (site) => {
    const { stream, id } = await beginAsking(site, wire);
    check.isSlow = true;
    const answering = Array.from({ length: 40 }, () => site.send(accept(id), FULL));
    const busy = await read(await Promise.race(answering));
    assertEquals(busy.status, 503);
    check.open();
    const statuses = new Set(await Promise.all(answering.map(async (each) => (await each).status)));
    assertEquals(statuses, new Set([202, 503]));
    assertEquals(refused, Array(40 - FIXED_LIMITS.calls.answersChecked).fill([503, "limit", "calls.answersChecked"]));
    await stream.until("accept");
  });
});

Deno.test("without room for the handler's name in the id, only the asking instance takes the answer", async () => {
  for (const instances of [1, 2]) {
    const { makeHandlers } = makeAsking();
    await withSite({ version: "2025-11-25", instances }, makeHandlers, async (site) => {
      const { stream, id } = await beginAsking(
        site,
        request(2, "resources/read", { uri: `safe://${"7".repeat(400)}` }),
      );
      assert(id.length <= 256);
      assertEquals((await read(await site.send(accept(id), NARROW))).status, 403);
      if (instances > 1) {
        for (const token of [NARROW, FULL]) {
          assertEquals((await read(await site.sendLast(accept(id), token))).status, 503);
        }
      }
      await read(await site.send(accept(id), FULL));
      await stream.until("it was accept");
    });
  }
});

Deno.test("the ids of questions cannot be guessed, and differ between sessions", async () => {
  const ids: string[] = [];
  for (let count = 0; count < 2; count++) {
    const { makeHandlers } = makeAsking();
    await withSite({ version: "2025-11-25", instances: 1 }, makeHandlers, async (site) => {
      for (const number of [2, 3]) {
        const { id } = await beginAsking(site, { ...wire, id: number });
        await read(await site.send(accept(id), FULL));
        ids.push(id);
      }
    });
  }
  for (const id of ids) assertMatch(id, /^ask-[\w-]{22,}$/);
  assertEquals(new Set(ids).size, 4);
});

Deno.test("over HTTP+SSE, the token of each message decides about the answer in the message", async () => {
  const { answers, makeHandlers } = makeAsking();
  await using server = createServer({
    name: "bank",
    version: "1.0.0",
    handlers: makeHandlers(),
    auth: ({ headers }) => ({
      id: "ada",
      scopes: (headers.get("x-scopes") ?? "").split(" ").filter(Boolean),
      staff: headers.has("x-staff"),
    }),
  });
  const { open, post } = serveOld(server);
  const by = (headers: Headers) => ({ headers });
  const { address, next, leave } = await open("/sse", by(FULL));
  await post(address, toHello({ version: "2024-11-05", capabilities: { elicitation: {} } }), by(FULL));
  await next();
  for (const [name, token, isHidden] of [["wire", NARROW, false], ["secret", GUEST, true]] as const) {
    const before = answers.length;
    await post(address, request(1, "tools/call", { name, arguments: {} }), by(FULL));
    const { id } = JSON.parse(await next() ?? "");
    await post(address, accept(id), by(token));
    if (!isHidden) {
      const { id: none, error } = JSON.parse(await next() ?? "");
      assertEquals([none ?? null, error.code], [null, INSUFFICIENT_SCOPE]);
    }
    assertEquals(answers.length, before);
    await post(address, accept(id), by(FULL));
    assertNotEquals(JSON.parse(await next() ?? "").result, undefined);
    assertEquals(answers.length, before + 1);
  }
  await leave();
});
