// Clients of one server never receive each other's data, even if all clients use the same request ids.
import { assert, assertEquals } from "@std/assert";
import { tool } from "../../mod.ts";
import type { Principal } from "../../src/library.ts";
import { startHttpServer } from "../../src/testing/http_server.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { behaviour, gate, started, textOf, turn, until } from "../support/behaviour.ts";
import { random } from "../support/random.ts";
import { LEGACY, MODERN } from "./http.ts";
import { readData, startSession, toCall } from "./unread.ts";
import { readReply } from "../support/requests.ts";
import { openServer } from "../support/servers.ts";

const any = { type: "object" } as const;

/** Creates a tool that reports a word as progress, waits for a random number of turns, and returns the word. */
function echoing(seed: number) {
  const { below } = random(seed);
  return tool({
    name: "echo",
    input: any,
    async run({ word, speaks }: { readonly word?: unknown; readonly speaks?: unknown }, ctx) {
      if (speaks) await ctx.progress(1, { message: String(word) });
      for (let turns = below(8); turns > 0; turns--) await undefined;
      if (below(20) === 0) await turn();
      if (speaks) await ctx.progress(2, { message: String(word) });
      return String(word);
    },
  });
}

/** Returns the words in a response: first the words in progress notifications, then the word in the result. */
async function readWords(response: Response): Promise<unknown[]> {
  const text = await response.text();
  const messages = text.startsWith("{") ? [JSON.parse(text)] : readData(text);
  return messages.map((message) => {
    assertEquals(message.id ?? 1, 1);
    return message.params?.message ?? message.result?.content[0].text;
  });
}

Deno.test("each of 20,000 requests with the id 1 gets its own response", async () => {
  const server = openServer({ handlers: [echoing(154)] });
  const url = "http://localhost/mcp";
  const { below } = random(1154);
  const sessions = await Promise.all(Array.from({ length: 20 }, () => startSession(url, server.fetch)));
  let sent = 0;
  let wrong = 0;
  await Promise.all(Array.from({ length: 64 }, async () => {
    while (sent < 20_000) {
      const word = `word ${sent++}`;
      const session = sent % 3 ? sessions[below(sessions.length)] : undefined;
      const speaks = sent % 10 === 0;
      const call = toCall("echo", { session, args: { word, speaks }, meta: speaks ? { progressToken: 1 } : {} });
      const words = await readWords(await server.fetch(new Request(url, call)));
      if (words.length !== (speaks ? 3 : 1) || words.some((each) => each !== word)) wrong++;
    }
  }));
  assertEquals(wrong, 0);
});

Deno.test("each of 1,000 requests with the id 1 over TCP connections gets its own response", async () => {
  const server = openServer({ handlers: [echoing(155)] });
  const host = startHttpServer(server.fetch);
  const url = `${host.origin}/mcp`;
  const sessions = await Promise.all(Array.from({ length: 5 }, () => startSession(url, fetch)));
  let sent = 0;
  await Promise.all(Array.from({ length: 32 }, async (_, i) => {
    while (sent < 1000) {
      const word = `word ${sent++}`;
      const session = [undefined, ...sessions][i % 6];
      const call = toCall("echo", { session, args: { word, speaks: true }, meta: { progressToken: "same" } });
      assertEquals(await readWords(await fetch(url, call)), [word, word, word]);
    }
  }));
  await server.close();
  await host.stop();
});

behaviour(
  "two calls with the same id and progress token on one connection each get their own response",
  async (connect, way) => {
    const pairs = 300;
    const { client } = await connect({ handlers: [echoing(156)] });
    for (let i = 0; i < pairs; i++) {
      const results = await Promise.all(["a", "b"].map(async (which) => {
        const word = `${which}${i}`;
        const received: unknown[] = [];
        const result = await client.callTool("echo", { word, speaks: true }, {
          id: 1,
          meta: { progressToken: 1 },
          onNotification: ({ params }) => received.push(params.message),
        });
        return { word, received, text: textOf(result) };
      }));
      // Over a pipe, responses with the same id cannot be assigned to a call, so check them without their order.
      if (way.transport === "pipe") assertEquals(results.map(({ text }) => text).sort(), [`a${i}`, `b${i}`]);
      else for (const { word, received, text } of results) assertEquals([...received, text], [word, word, word]);
    }
  },
);

behaviour("a cancellation ends only the call of the same client", async (connect) => {
  const { pass, open } = gate();
  const log: string[] = [];
  const hold = tool({
    name: "hold",
    input: any,
    async run({ who }: { readonly who?: unknown }, { signal }) {
      log.push(`start ${who}`);
      await Promise.race([pass, new Promise((resolve) => signal.addEventListener("abort", resolve))]);
      log.push(`${signal.aborted ? "cancel" : "end"} ${who}`);
      return String(who);
    },
  });
  const { client, join } = await connect({ handlers: [hold] });
  const others = [
    await join(),
    await join({ era: "legacy", revisions: [LEGACY] }),
    await join({ era: "modern", revisions: [MODERN] }),
  ];
  const calls = others.map((other, i) => started(other.callTool("hold", { who: `other ${i}` }, { id: 1 })));
  await until(() => log.length === 3, "the other calls run");
  const stop = new AbortController();
  const mine = started(client.callTool("hold", { who: "mine" }, { id: 1, signal: stop.signal }).catch(() => "gave up"));
  await until(() => log.length === 4, "my call runs");
  stop.abort();
  assertEquals(await mine, "gave up");
  await until(() => log.includes("cancel mine"), "my call is cancelled");
  open();
  assertEquals((await Promise.all(calls)).map(textOf), ["other 0", "other 1", "other 2"]);
});

Deno.test("a handler always receives its own caller's client info and principal", async () => {
  const facts = tool({
    name: "facts",
    async run(_input, ctx) {
      const before = [ctx.principal?.id, ctx.client.info?.name, ctx.client.logLevel, ctx.meta.mark];
      await turn(Math.floor(Math.random() * 4));
      const after = [ctx.principal?.id, ctx.client.info?.name, ctx.client.logLevel, ctx.meta.mark];
      return JSON.stringify([before, after]);
    },
  });
  const server = openServer({ handlers: [facts] });
  const clients = await Promise.all(Array.from({ length: 20 }, async (_, i) => {
    const principal: Principal | undefined = i % 3 ? { id: `user ${i}` } : undefined;
    const logLevel = i % 2 ? "error" as const : "debug" as const;
    const era = i % 4 < 2 ? "modern" as const : "legacy" as const;
    const client = await connectTest(server, {
      era,
      principal,
      logLevel,
      info: { name: `client ${i}`, version: "1" },
    });
    return { client, expected: [principal?.id ?? null, `client ${i}`, logLevel] };
  }));
  await Promise.all(clients.flatMap(({ client, expected }) =>
    Array.from({ length: 20 }, async (_, mark) => {
      const seen = JSON.parse(textOf(await client.callTool("facts", {}, { id: 1, meta: { mark } })));
      assertEquals(seen, [[...expected, mark], [...expected, mark]]);
    })
  ));
  for (const { client } of clients) await client.close();
});

behaviour("a handler's changes to its input or result do not affect other calls", async (connect) => {
  const shared = { type: "text" as const, text: "shared" };
  const change = tool({
    name: "change",
    input: any,
    run(input: Record<string, unknown>, ctx) {
      const seen = JSON.stringify([input, ctx.params.arguments, Object.keys(ctx.meta).length > 0]);
      Object.assign(input, { added: true });
      Object.assign(ctx.params, { name: "other" });
      Object.assign(ctx.meta, { added: true });
      return { content: [{ type: "text" as const, text: seen }, shared] };
    },
  });
  const { client } = await connect({ handlers: [change] });
  const first = await client.callTool("change", { a: 1 });
  const [tools] = [await client.listTools()];
  Object.assign(tools[0].inputSchema, { changed: true });
  assertEquals(await client.callTool("change", { a: 1 }), first);
  assertEquals((await client.listTools())[0].inputSchema, { type: "object" });
});

Deno.test("sessions see complete lists of allowed handlers while handlers are added and removed", async () => {
  const server = openServer({ handlers: [echoing(157)] });
  const url = "http://localhost/mcp";
  const sessions = await Promise.all(Array.from({ length: 100 }, () => startSession(url, server.fetch)));
  const streams = await Promise.all(
    sessions.map((session) =>
      server.fetch(new Request(url, { headers: { accept: "text/event-stream", "mcp-session-id": session } }))
    ),
  );
  const reading = streams.map((stream) => stream.text());
  const extra = Array.from(
    { length: 50 },
    (_, i) => tool({ name: `extra${String(i).padStart(2, "0")}`, run: () => "" }),
  );
  for (const each of extra) {
    server.handlers.add(each);
    const { body, headers } = toCall("", { session: sessions[0] });
    const message = { ...JSON.parse(body), method: "tools/list", params: {} };
    const request = new Request(url, { method: "POST", headers, body: JSON.stringify(message) });
    const { result } = await readReply(await server.fetch(request));
    const names = result.tools.map(({ name }: { readonly name: string }) => name);
    assertEquals(names, [...names].sort());
  }
  await server.close();
  for (const text of await Promise.all(reading)) {
    const methods = readData(text).map((message) => Object(message).method);
    assert(methods.length >= 1 && methods.length <= 50, `${methods.length} changes were sent`);
    assertEquals(new Set(methods), new Set(["notifications/tools/list_changed"]));
  }
});
