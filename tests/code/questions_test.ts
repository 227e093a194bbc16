// Programs whose tools ask questions: what has run before a question does not run again.
import { assert, assertEquals } from "@std/assert";
import { createServer, type ServerOptions, tool } from "../../mod.ts";
import { codeMode } from "../../src/ready/code/code.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { behaviour } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { ask } from "../support/requests.ts";
import { closeAtEnd } from "../support/running.ts";
import { run, valueOf } from "./programs.ts";

const schema = { type: "object", properties: { ok: { type: "boolean" } } } as const;
const yes = { action: "accept", content: { ok: true } } as const;
const secret = "s".repeat(32);

/** Tools that ask and have effects. `done` has the effects in their order. */
function createTools() {
  const done: string[] = [];
  const effect = tool({
    name: "effect",
    input: { type: "object", properties: { id: {}, size: {}, fails: {} } },
    run: async ({ id, size = 0, fails }) => {
      await new Promise((resolve) => setTimeout(resolve));
      done.push(`${id}`);
      if (fails) throw new Error("broken");
      return `${id} done${"x".repeat(Number(size))}`;
    },
  });
  const read = tool({
    name: "read",
    annotations: { readOnlyHint: true },
    input: { type: "object", properties: { size: {} } },
    run: ({ size = 1 }) => "r".repeat(Number(size)),
  });
  const confirm = tool({
    name: "ask",
    input: { type: "object", properties: { key: { type: "string" } } },
    run: async ({ key }, ctx) => {
      const answer = await ctx.elicit("ok", { message: `Sure of ${key}?`, schema });
      done.push(`asked ${key}`);
      return answer.action;
    },
  });
  return { done, handlers: [effect, read, confirm, codeMode()] };
}

const client = { onElicit: () => yes } as never;

behaviour("an effect before and after a question happens once", async (connect) => {
  const { done, handlers } = createTools();
  const { client: connection } = await connect({ handlers }, client);
  const code =
    "const out = [await tools.effect({ id: 1 }), await tools.ask({ key: 'a' }), await tools.effect({ id: 2 }), " +
    "await tools.ask({ key: 'b' }), await tools.effect({ id: 3 })]; return out";
  assertEquals(await valueOf(connection, code), ["1 done", "accept", "2 done", "accept", "3 done"]);
  assertEquals(done, ["1", "asked a", "2", "asked b", "3"]);
});

behaviour("calls at the same time keep their order when the program runs again", async (connect) => {
  const { done, handlers } = createTools();
  const { client: connection } = await connect({ handlers }, client);
  const code =
    "const order = []; const go = async (name, input) => order.push((await tools[name](input)).slice(0, 6)); " +
    "await Promise.all([go('effect', { id: 1 }), go('read'), go('effect', { id: 2 }), go('read', { size: 3 })]); " +
    "await Promise.all([go('ask', { key: 'a' }), go('effect', { id: 3 }), go('ask', { key: 'b' })]); " +
    "await tools.effect({ id: order.join() }); return order.length";
  assertEquals(await valueOf(connection, code), 7);
  assertEquals(done.filter((each) => /^\d$/.test(each)).sort(), ["1", "2", "3"]);
  assertEquals(done.filter((each) => each.includes(",")).length, 1);
});

behaviour("an effect that ends while a question is open does not run again", async (connect) => {
  const { done, handlers } = createTools();
  const { client: connection } = await connect({ handlers }, client);
  const code = "const all = ['a', 'b'].flatMap((key) => [tools.ask({ key }), tools.effect({ id: key })]); " +
    "return (await Promise.all(all)).length";
  assertEquals(await valueOf(connection, code), 4);
  assertEquals(done.filter((each) => each.length === 1).sort(), ["a", "b"]);
});

behaviour("the questions of many calls at the same time go out together", async (connect) => {
  const { done, handlers } = createTools();
  const { client: connection } = await connect({ handlers }, client);
  const code = "const all = Array.from({ length: 30 }, (_, key) => tools.ask({ key: `${key}` })); " +
    "return (await Promise.all(all)).length";
  // More rounds than `limits.calls.rounds` would end the call.
  assertEquals(await valueOf(connection, code), 30);
  assertEquals(done.length, 30);
});

behaviour("errors are recorded like results", async (connect) => {
  const { done, handlers } = createTools();
  const { client: connection, takeFaults } = await connect({ handlers }, client);
  const code = "let failed = 0; try { await tools.effect({ id: 1, fails: true }) } catch { failed++ } " +
    "try { await tools.unknown() } catch { failed++ } await tools.ask({ key: 'a' }); return failed";
  assertEquals(await valueOf(connection, code), 2);
  assertEquals(done, ["1", "asked a"]);
  assertEquals(takeFaults().length, 1);
});

behaviour("a program that catches the error of a question still asks", async (connect) => {
  const { done, handlers } = createTools();
  const { client: connection } = await connect({ handlers }, client);
  const code =
    "let answer; try { answer = await tools.ask({ key: 'a' }) } catch { await tools.effect({ id: 'never' }) } return [answer]";
  assertEquals(await valueOf(connection, code), ["accept"]);
  assertEquals(done, ["asked a"]);
});

behaviour("large results of tools that only read are read again, and effects are not repeated", async (connect) => {
  const { done, handlers } = createTools();
  const { client: connection } = await connect({ handlers }, client);
  const code = "const big = await tools.read({ size: 90_000 }); await tools.effect({ id: 1 }); " +
    "await tools.ask({ key: 'a' }); const more = await tools.read({ size: big.length }); await tools.ask({ key: 'b' }); " +
    "return more.length";
  assertEquals(await valueOf(connection, code), 90_000);
  assertEquals(done, ["1", "asked a", "asked b"]);
});

Deno.test("a large result of an effect ends with words instead of a second effect, or is kept in the store", async () => {
  for (const store of [undefined, memoryStore()]) {
    const { done, handlers } = createTools();
    const server = closeAtEnd(createServer({ name: "s", version: "1.0.0", handlers, secret, store }));
    await using connection = await connectTest(server, { era: "modern", ...client as object });
    const code =
      "let text; try { text = await tools.effect({ id: 1, size: 90_000 }) } catch ({ message }) { text = '!' } " +
      "await tools.ask({ key: 'a' }); return [text.length, await tools.effect({ id: 2 })]";
    const [text] = await run(connection, code);
    if (store) assertEquals(text, '[90006,"2 done"]');
    assertEquals(done.filter((each) => each === "1").length, 1, text);
  }
});

const capabilities = { _meta: { "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } } };

function send(
  server: ReturnType<typeof createServer>,
  code: string,
  requestState?: unknown,
  keys: readonly string[] = [],
) {
  const inputResponses = Object.fromEntries(keys.map((key) => [key, yes]));
  return ask(server, "tools/call", {
    name: "run_code_with_effects",
    arguments: { code },
    ...capabilities,
    ...requestState !== undefined && { requestState, inputResponses },
  });
}

function open(handlers: ServerOptions["handlers"], options: Partial<ServerOptions> = {}) {
  return closeAtEnd(createServer({ name: "s", version: "1.0.0", handlers, secret, ...options }));
}

const CODE =
  "const a = await tools.effect({ id: 1 }); await tools.ask({ key: 'a' }); return [a, await tools.effect({ id: 2 })]";

Deno.test("another instance goes on, without a store and with one", async () => {
  for (const store of [undefined, memoryStore()]) {
    const { done, handlers } = createTools();
    const [first, second] = [open(handlers, { store }), open(handlers, { store })];
    const { result } = await send(first, CODE);
    assertEquals(result.resultType, "input_required");
    const keys = Object.keys(result.inputRequests);
    const { result: last } = await send(second, CODE, result.requestState, keys);
    assertEquals(JSON.parse(last.content[0].text), ["1 done", "2 done"]);
    assertEquals(done, ["1", "asked a", "2"]);
  }
});

Deno.test("what is kept for the programs of one client has a limit, which another client does not reach", async () => {
  const big = tool({ name: "big", annotations: { readOnlyHint: true }, run: () => "b".repeat(300_000) });
  const server = createServer({
    name: "code",
    version: "1.0.0",
    secret,
    store: memoryStore(),
    handlers: [big, ...createTools().handlers],
  });
  const code = "for (let call = 0; call < 20; call++) await tools.big(); await tools.ask({ key: 'a' }); return 1";
  await using eve = await connectTest(server, { principal: { id: "eve" }, onElicit: () => yes });
  await using ada = await connectTest(server, { principal: { id: "ada" }, onElicit: () => yes });
  const error = await eve.callTool("run_code_with_effects", { code }).catch((error) => error);
  assertEquals(error.code, -31503, JSON.stringify(error));
  assertEquals(await valueOf(ada, "await tools.big(); await tools.ask({ key: 'a' }); return 1"), 1);
  await server.close();
});

Deno.test("the same answer twice repeats no effect, if there is a store", async () => {
  const { done, handlers } = createTools();
  const server = open(handlers, { store: memoryStore() });
  const { result } = await send(server, CODE);
  const keys = Object.keys(result.inputRequests);
  for (let time = 0; time < 2; time++) {
    const { result: last } = await send(server, CODE, result.requestState, keys);
    assertEquals(JSON.parse(last.content[0].text), ["1 done", "2 done"]);
  }
  assertEquals(done, ["1", "asked a", "2"]);
  // Two at once: each effect once, and what one of them cannot know, it says.
  const { result: again } = await send(server, CODE);
  const both = await Promise.all([1, 2].map(() => send(server, CODE, again.requestState, keys)));
  const texts = both.map(({ result }) => result.content[0].text);
  assert(texts.some((text) => text.includes("2 done")), texts.join());
  assertEquals(done.slice(3).filter((each) => each === "2").length, 1, done.join());
});

Deno.test("a program that then calls otherwise ends with words", async () => {
  let reads = 0;
  const change = tool({
    name: "change",
    annotations: { readOnlyHint: true },
    run: () => `${++reads}${"x".repeat(90_000)}`,
  });
  const { done, handlers } = createTools();
  const server = open([change, ...handlers]);
  const code =
    "const text = await tools.change(); await tools.effect({ id: text.slice(0, 1) }); await tools.ask({ key: 'a' }); return 1";
  const { result } = await send(server, code);
  const { result: last } = await send(server, code, result.requestState, Object.keys(result.inputRequests));
  assertEquals([last.isError, last.content[0].text], [true, sentence("call 2", "effect")]);
  assertEquals(done, ["1"]);
});

Deno.test("an answer does not fit another program", async () => {
  const { done, handlers } = createTools();
  const server = open(handlers);
  const { result } = await send(server, CODE);
  const { error } = await send(server, CODE.replace("id: 2", "id: 3"), result.requestState, ["x"]);
  assertEquals(error?.code, -32602);
  assertEquals(done, ["1"]);
});

Deno.test("an effect that has begun in a run which never ended may have run", async () => {
  const begun = Promise.withResolvers<void>();
  const { done, handlers } = createTools();
  let stalls = true;
  const stall = tool({
    name: "stall",
    run: () => {
      done.push("stalled");
      if (!stalls) return "went on";
      begun.resolve();
      return new Promise<string>(() => {});
    },
  });
  const safe = tool({ name: "safe", annotations: { idempotentHint: true }, run: () => `${done.push("safe")}` });
  const store = memoryStore();
  const code =
    "await tools.ask({ key: 'a' }); await tools.safe(); let text; try { text = await tools.stall() } catch ({ message }) { " +
    "text = message } return [text, await tools.effect({ id: 2 })]";
  const options = { store, limits: { calls: { closeMs: 10 } } };
  const [first, second] = [open([stall, safe, ...handlers], options), open([stall, safe, ...handlers], options)];
  const { result } = await send(first, code);
  const keys = Object.keys(result.inputRequests);
  const lost = send(first, code, result.requestState, keys);
  lost.catch(() => {});
  await begun.promise;
  stalls = false;
  const { result: last } = await send(second, code, result.requestState, keys);
  const [text, effect] = JSON.parse(last.content[0].text);
  assertEquals([text, effect], [sentence("stall", "may have run"), "2 done"]);
  assertEquals(done, ["asked a", "safe", "stalled", "2"]);
});
