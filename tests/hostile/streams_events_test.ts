// Event streams: their content, resumption, and keep-alives while a stream is idle.
import { assert, assertEquals, assertLessOrEqual } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { startHttpServer } from "../../src/testing/http_server.ts";
import { until } from "../support/behaviour.ts";
import { cases, LEGACY, META } from "./http.ts";
import { openUnread, readData, startSession, toCall, toWire } from "./unread.ts";
import { testLimits } from "../support/limits.ts";

const any = { type: "object" } as const;
const STREAM = { accept: "text/event-stream" };

Deno.test("text that looks like an event arrives unchanged, and each message is on one line", async () => {
  const odd = [
    "a\n\nb",
    "a\r\rb\r\n\r\nc",
    "\u2028\u2029\u0085",
    "data: x\nevent: y\nid: 5\nretry: 1\n\n",
    ": comment",
    "\ud800 alone \udc00",
    "\0\u0001\u001b[0m\ufeff",
    "x".repeat(3_000_000),
    "\n".repeat(10_000),
  ];
  const say = tool({
    name: "say",
    input: any,
    async run({ n }: { readonly n?: unknown }, ctx) {
      const text = odd[Number(n)];
      await ctx.progress(1, { message: text });
      await ctx.log.info({ [text.slice(0, 50)]: text });
      return text;
    },
  });
  const server = createServer({ name: "odd", version: "1.0.0", handlers: [say] });
  const host = startHttpServer(server.fetch);
  const url = `${host.origin}/mcp`;
  for (const session of [undefined, await startSession(url, fetch)]) {
    for (const [n, text] of odd.entries()) {
      const meta = { progressToken: 1, [`${META}logLevel`]: "info" };
      const got = await (await fetch(url, toCall("say", { session, args: { n }, meta, accept: STREAM.accept }))).text();
      // The stream contains only event fields and comments, and each line ends with a line feed.
      for (const line of got.split("\n")) assert(/^(data: \{.*\}|id: \S+|retry: \d+|data: ?|:.*|)$/s.test(line), line);
      assertEquals(got.includes("\r"), false);
      const [progress, log, result] = readData(got).map((message) => Object(message));
      assertEquals(progress.params.message, text);
      assertEquals(log.params.data, { [text.slice(0, 50)]: text });
      assertEquals(result.result.content[0].text, text);
      assertEquals(readData(got).length, 3);
    }
  }
  await server.close();
  await host.stop();
});

cases("an event id that belongs to no stream is refused", { version: LEGACY }, () => [
  ...[
    "garbage",
    "0",
    "-1",
    "1000000000000000000000000000000",
    "__proto__",
    "00000000-0000_1",
    "00000000-0000_1e9",
    "00000000-0000_999999999999999999999",
    "00000000-0000_-1",
    "%0A%0A",
    "a\tb",
    "x".repeat(8000),
  ].map((place) => ({
    name: `Last-Event-ID ${JSON.stringify(place.slice(0, 40))}`,
    method: "GET",
    headers: { ...STREAM, "last-event-id": place },
    status: 400,
    code: -32600,
  })),
  {
    name: "two Last-Event-ID headers",
    method: "GET",
    headers: { ...STREAM, "last-event-id": ["00000000-0000_1", "00000000-0000_2"] },
    status: 400,
    code: -32600,
  },
]);

Deno.test("a stream is resumed only if the server still has all events after the event id", async () => {
  const count = tool({
    name: "count",
    async run(_input, ctx) {
      for (let i = 1; i <= 20; i++) await ctx.progress(i);
      return "counted";
    },
  });
  const server = createServer({
    name: "c",
    version: "1.0.0",
    handlers: [count],
    limits: testLimits({ replay: { events: 5 } }),
  });
  const url = "http://localhost/mcp";
  const session = await startSession(url, server.fetch);
  const stranger = await startSession(url, server.fetch);
  const call = toCall("count", { session, meta: { progressToken: 1 }, accept: STREAM.accept });
  const text = await (await server.fetch(new Request(url, call))).text();
  const ids = [...text.matchAll(/^id: (.+)$/gm)].map(([, id]) => id);
  assertEquals(ids.length, 22);
  const take = async (place: string, session: string) => {
    const headers = { ...STREAM, "mcp-session-id": session, "last-event-id": place };
    const response = await server.fetch(new Request(url, { headers }));
    return { status: response.status, messages: readData(await response.text()).length };
  };
  // The server keeps five events: the response and the four events before the response.
  assertEquals(await take(ids[17], session), { status: 200, messages: 4 });
  assertEquals(await take(ids[16], session), { status: 200, messages: 5 });
  for (const place of [ids[0], ids[1], ids[15]]) assertEquals((await take(place, session)).status, 400, place);
  // After the last event of a stream there are no more events. A position after the end is invalid.
  assertEquals(await take(ids[21], session), { status: 200, messages: 0 });
  assertEquals((await take(ids[21].replace(/\d+$/, "22"), session)).status, 400);
  // An event id from one session is invalid in another session.
  assertEquals((await take(ids[17], stranger)).status, 400);
  await server.close();
});

Deno.test("a cancelled call in a session gets no response, and the stream of the call ends", async () => {
  const log: string[] = [];
  const hold = tool({
    name: "hold",
    async run(_input, ctx) {
      await ctx.progress(1);
      await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
      log.push("aborted");
      // This message is dropped, because the call has been cancelled.
      await ctx.progress(2);
      return "too late";
    },
  });
  const server = createServer({ name: "hold", version: "1.0.0", handlers: [hold] });
  const host = startHttpServer(server.fetch);
  const url = `${host.origin}/mcp`;
  const port = Number(new URL(url).port);
  const session = await startSession(url, fetch);
  for (const id of [0, "0", 7, "", "é"]) {
    log.length = 0;
    const call = toCall("hold", { id, session, meta: { progressToken: 1 } });
    const body = new TextEncoder().encode(call.body);
    const wire = toWire(port, call).replace(`content-length: ${call.body.length}`, `content-length: ${body.length}`);
    const client = await openUnread(port, wire);
    await client.read((text) => text.includes('"progress":1'));
    const cancel = (requestId: unknown) =>
      fetch(url, {
        method: "POST",
        headers: call.headers,
        body: JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } }),
      });
    // An id with the same text but another JSON type is a different id.
    const other = typeof id === "string" ? Number(id) : String(id);
    for (const wrong of [other, `${id}x`, {}, null, undefined]) assertEquals((await cancel(wrong)).status, 202);
    assertEquals(log, []);
    assertEquals((await cancel(id)).status, 202);
    const text = await client.read((text) => text.endsWith("0\r\n\r\n"));
    assertEquals(readData(text).length, 1, text);
    assertEquals(log, ["aborted"]);
    client.close();
  }
  await server.close();
  await host.stop();
});

Deno.test("700 idle streams share one timer", async () => {
  const server = createServer({ name: "idle", version: "1.0.0" });
  const url = "http://localhost/mcp";
  const real = { set: globalThis.setTimeout, every: globalThis.setInterval, clear: globalThis.clearTimeout };
  const timers = new Set<unknown>();
  let most = 0;
  Object.assign(globalThis, {
    setTimeout(run: () => void, ms: number) {
      const timer: unknown = real.set(() => {
        timers.delete(timer);
        run();
      }, ms);
      timers.add(timer);
      most = Math.max(most, timers.size);
      return timer;
    },
    setInterval() {
      throw new Error("an interval was set");
    },
    clearTimeout(timer: Parameters<typeof clearTimeout>[0]) {
      timers.delete(timer);
      real.clear(timer);
    },
  });
  try {
    const responses = await Promise.all(Array.from({ length: 700 }, async () => {
      const headers = { ...STREAM, "mcp-session-id": await startSession(url, server.fetch) };
      return await server.fetch(new Request(url, { headers }));
    }));
    assertEquals(responses.every(({ status }) => status === 200), true);
    assertLessOrEqual(most, 2);
    await server.close();
    await Promise.all(responses.map((response) => response.text()));
  } finally {
    Object.assign(globalThis, { setTimeout: real.set, setInterval: real.every, clearTimeout: real.clear });
  }
  await until(() => timers.size === 0, "no timer is left");
});
