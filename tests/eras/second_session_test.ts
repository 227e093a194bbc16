// A client that initializes again on a pipe, as behind a gateway that connects all its clients to one process: nothing
// of the first session reaches the second client.
import { assertEquals } from "@std/assert";
import { createServer, resource, type ServerOptions, tool } from "../../mod.ts";
import { idempotent } from "../../src/layers/layers.ts";
import { openPipe, type Pipe } from "../../src/server/transports/channel.ts";
import { gate, plainTool, turn, until } from "../support/behaviour.ts";

// deno-lint-ignore no-explicit-any
type Json = any; // The tests read parsed messages.

const CAPABILITIES = { elicitation: {}, roots: {}, sampling: {} };

function toInitialize(id: unknown, name: string): Json {
  const params = { protocolVersion: "2025-11-25", capabilities: CAPABILITIES, clientInfo: { name, version: "1.0.0" } };
  return { jsonrpc: "2.0", id, method: "initialize", params };
}

function toCall(id: unknown, name: string, args?: Json): Json {
  return {
    jsonrpc: "2.0",
    id,
    method: "tools/call",
    params: { name, arguments: args, _meta: { progressToken: `token ${id}` } },
  };
}

/** A pipe to a server, with all messages that the server has written. */
interface Talk extends AsyncDisposable {
  readonly server: ReturnType<typeof createServer>;
  readonly pipe: Pipe;
  readonly written: Json[];
  send(message: Json): void;
  /** Returns the response to a request. */
  answer(id: unknown): Promise<Json>;
  /** Initializes, and forgets all messages up to the response. */
  open(id: unknown, name: string): Promise<void>;
}

function talk(options: Partial<ServerOptions>): Talk {
  const server = createServer({ name: "t", version: "1.0.0", ...options });
  const written: Json[] = [];
  const pipe = openPipe(server, { write: (text) => void written.push(JSON.parse(text)) });
  const send = (message: Json) => void pipe.receive(JSON.stringify(message));
  const find = (id: unknown) => written.find((each) => each.id === id && !each.method);
  const answer = async (id: unknown) => {
    await until(() => find(id), `the response to ${id}`);
    return find(id);
  };
  return {
    server,
    pipe,
    written,
    send,
    answer,
    async open(id, name) {
      send(toInitialize(id, name));
      await answer(id);
      written.length = 0;
    },
    async [Symbol.asyncDispose]() {
      pipe.close();
      await server.close();
    },
  };
}

Deno.test("the running calls of the first session are cancelled, and write nothing more", async () => {
  const why: unknown[] = [];
  const { pass, open } = gate();
  const done: string[] = [];
  let begun = false;
  const work = plainTool("work", async (ctx) => {
    begun = true;
    ctx.signal.addEventListener("abort", () => void why.push(ctx.signal.reason.why));
    await pass;
    await ctx.progress(1);
    await ctx.log.error("late");
    done.push("work");
    return "late";
  });
  const ask = plainTool("ask", async (ctx) => {
    await ctx.elicit("sure", { message: "Sure?", schema: { type: "object", properties: {} } }).catch((error) => {
      why.push(Object(error).code);
    });
    await ctx.roots().catch(() => {});
    done.push("ask");
    return "asked";
  });
  await using client = talk({ handlers: [work, ask] });
  await client.open(1, "first");
  client.send(toCall(2, "work"));
  client.send(toCall(3, "ask"));
  await until(() => begun && client.written.some(({ method }) => method === "elicitation/create"), "the question");
  client.written.length = 0;
  client.send(toInitialize(1, "second"));
  await client.answer(1);
  assertEquals(client.written.length, 1, "the question is not cancelled, because the second client does not know it");
  client.written.length = 0;
  assertEquals(why.includes("session"), true);
  open();
  await until(() => done.length === 2, "both handlers have ended");
  // The ids of the first session's calls are free.
  client.send(toCall(2, "work"));
  await client.answer(2);
  await turn(3);
  assertEquals(client.written.map(({ id, method }) => [id, method]), [
    [undefined, "notifications/progress"],
    [undefined, "notifications/message"],
    [2, undefined],
  ]);
});

Deno.test("a call of the first session that waits for `allow` or `admit` gets no response after the second handshake", async () => {
  const { pass, open } = gate();
  let asked = 0;
  const slow = tool({ name: "slow", allow: async () => (asked++, await pass, true), run: () => "slow" });
  const hidden = tool({ name: "hidden", allow: async () => (asked++, await pass, false), run: () => "hidden" });
  await using client = talk({ handlers: [slow, hidden] });
  await client.open(1, "first");
  client.send(toCall(2, "slow"));
  client.send(toCall(3, "hidden"));
  await until(() => asked === 2, "both lookups have begun");
  await client.open(4, "second");
  open();
  client.send({ jsonrpc: "2.0", id: 5, method: "ping" });
  await client.answer(5);
  await turn(3);
  assertEquals(client.written.map(({ id }) => id), [5]);
});

Deno.test("the subscriptions and notifications of the first session do not reach the second client", async () => {
  const file = resource({ uri: "x://1", name: "x", read: () => "" });
  const seen = gate();
  await using client = talk({ handlers: [file] });
  await client.open(1, "first");
  client.send({ jsonrpc: "2.0", id: 2, method: "resources/subscribe", params: { uri: "x://1" } });
  await client.answer(2);
  // The server decides asynchronously whether the first client is notified.
  client.server.listChanged("resources", { to: () => seen.pass.then(() => true) });
  client.server.resourceUpdated("x://1");
  await until(() => client.written.some(({ method }) => method === "notifications/resources/updated"), "the update");
  await client.open(3, "second");
  seen.open();
  client.server.resourceUpdated("x://1");
  client.server.log.error("to all");
  await until(() => client.written.length, "the log message");
  await turn(5);
  assertEquals(client.written.map(({ method }) => method), ["notifications/message"]);
});

Deno.test("an answer that the first client sends late is not an answer to the second session's question", async () => {
  const ask = plainTool("ask", async (ctx) => {
    const { action } = await ctx.elicit("sure", { message: "Sure?", schema: { type: "object", properties: {} } });
    return action;
  });
  await using client = talk({ handlers: [ask] });
  const question = async (id: number) => {
    client.send(toCall(id, "ask"));
    await until(() => client.written.some(({ method }) => method === "elicitation/create"), "the question");
    return client.written.find(({ method }) => method === "elicitation/create").id;
  };
  await client.open(1, "first");
  const first = await question(2);
  await client.open(3, "second");
  const second = await question(4);
  client.send({ jsonrpc: "2.0", id: first, result: { action: "accept", content: {} } });
  client.send({ jsonrpc: "2.0", id: second, result: { action: "decline" } });
  assertEquals((await client.answer(4)).result.content[0].text, "decline");
});

Deno.test("a call of 2026-07-28 on the same pipe continues, and can be cancelled with or without the metadata of its revision", async () => {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const why: unknown[] = [];
  let begun = 0;
  const work = plainTool("work", (ctx) =>
    new Promise<string>((resolve) => {
      begun++;
      ctx.signal.addEventListener("abort", () => {
        why.push(ctx.signal.reason.why);
        resolve("cancelled");
      });
    }));
  await using client = talk({ handlers: [work] });
  const start = (id: number) => client.send({ ...toCall(id, "work"), params: { name: "work", _meta: meta } });
  const cancel = (requestId: number, _meta?: Json) =>
    client.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId, _meta } });
  await client.open(1, "first");
  start(2);
  start(3);
  client.send(toCall(3, "work"));
  await until(() => begun === 3, "the calls have begun");
  await client.open(4, "second");
  assertEquals(why, ["session"]);
  cancel(2);
  cancel(3, meta);
  await until(() => why.length === 3, "both calls are cancelled");
  assertEquals(why.slice(1), ["client", "client"]);
});

Deno.test("messages after the second handshake never run in the first session", async () => {
  const names: unknown[] = [];
  const look = tool({ name: "look", run: (_input, ctx) => void names.push(ctx.client.info?.name) });
  const { pass, open } = gate();
  let count = 0;
  const admit = async () => {
    if (count++) await pass;
    return true as const;
  };
  await using client = talk({ handlers: [look], admit });
  await client.open(1, "first");
  client.send(toInitialize(2, "second"));
  for (let id = 3; id < 23; id++) client.send(toCall(id, "look"));
  await turn(3);
  open();
  await until(() => client.written.length === 21, "all responses");
  assertEquals(new Set(names), new Set(["second"]));
});

Deno.test("an idempotency key belongs to one session of a pipe", async () => {
  let count = 0;
  const add = tool({
    name: "add",
    use: [idempotent(() => "same")],
    run: () => `${++count}`,
  });
  await using client = talk({ handlers: [add] });
  const run = async (id: number) => {
    client.send(toCall(id, "add"));
    return (await client.answer(id)).result.content[0].text;
  };
  await client.open(1, "first");
  assertEquals([await run(2), await run(3)], ["1", "1"]);
  await client.open(4, "second");
  assertEquals([await run(5), await run(6)], ["2", "2"]);
});

Deno.test("a client that initializes again and again has one session", async () => {
  const ended: unknown[] = [];
  await using client = talk({ observer: { session: ({ state, why }) => void (state === "ended" && ended.push(why)) } });
  for (let id = 0; id < 50; id++) await client.open(id, `${id}`);
  const { bytes } = client.server.stats();
  assertEquals([ended.length, bytes], [49, 0]);
  client.pipe.close();
  assertEquals(ended.at(-1), "disconnected");
  assertEquals(ended.length, 50);
});
