// Event streams: their content, resumption, and keep-alives while a stream is idle.
import { assert, assertEquals, assertLessOrEqual } from "@std/assert";
import { tool } from "../../mod.ts";
import { startHttpServer } from "../../src/testing/http_server.ts";
import { turn, until } from "../support/behaviour.ts";
import { cases, LEGACY, META } from "./http.ts";
import { openUnread, readData, startSession, toCall, toWire } from "./unread.ts";
import { testLimits } from "../support/limits.ts";
import { openServer } from "../support/servers.ts";
import { random } from "../support/random.ts";

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
  const server = openServer({ handlers: [say] });
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
  const server = openServer({ handlers: [count], limits: testLimits({ replay: { events: 5 } }) });
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
  const server = openServer({ handlers: [hold] });
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
  const server = openServer();
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

// Clients that disconnect during a call. A disconnect cancels a call without a session, but not a call in a session.

/** Starts an HTTP server with a tool that waits until the call is aborted or the test releases it. */
function startHolding() {
  const started = new Set<unknown>();
  const aborted = new Set<unknown>();
  const said: unknown[] = [];
  const open = Promise.withResolvers<void>();
  const hold = tool({
    name: "hold",
    input: any,
    async run({ n, speaks }: { readonly n?: unknown; readonly speaks?: unknown }, ctx) {
      started.add(n);
      if (speaks) await ctx.progress(1);
      const gone = new Promise<void>((resolve) =>
        ctx.signal.addEventListener("abort", () => {
          aborted.add(n);
          resolve();
        })
      );
      await Promise.race([open.promise, gone]);
      await ctx.progress(2);
      await ctx.log.error("late");
      said.push(n);
      return `held ${n}`;
    },
  });
  const server = openServer({ handlers: [hold] });
  const host = startHttpServer(server.fetch);
  const port = Number(new URL(host.origin).port);
  return {
    ...{ started, aborted, said, server, port, url: `${host.origin}/mcp`, open: open.resolve },
    async [Symbol.asyncDispose]() {
      open.resolve();
      await server.close();
      await host.stop();
    },
  };
}

const both = "application/json, text/event-stream";
for (
  const { what, padding, speaks, accept = both } of [
    { what: "small, before the first byte", padding: 0, speaks: false },
    { what: "small, after the first byte", padding: 0, speaks: true },
    { what: "of 100 KB, before the first byte", padding: 100_000, speaks: false },
    { what: "of 100 KB, after the first byte", padding: 100_000, speaks: true },
    {
      what: "of 100 KB, from a client that accepts no events",
      padding: 100_000,
      speaks: true,
      accept: "application/json",
    },
  ]
) {
  Deno.test(`a call is aborted when its client disconnects, for each of 100 clients (${what})`, async () => {
    await using fixture = startHolding();
    const { started, aborted, said, port } = fixture;
    // Open the connections in four waves, so that the test needs fewer sockets at once.
    for (let wave = 0; wave < 4; wave++) {
      await Promise.all(Array.from({ length: 25 }, async (_, i) => {
        const n = wave * 25 + i;
        const args = { n, speaks, padding: "x".repeat(padding) };
        const client = await openUnread(
          port,
          toWire(port, toCall("hold", { args, accept, meta: { progressToken: 1 } })),
        );
        if (speaks) await client.read((text) => text.includes("\r\n\r\n"));
        else await until(() => started.has(n), `call ${n} begins`);
        client.close();
        await until(() => aborted.has(n), `call ${n} is aborted`);
      }));
    }
    assertEquals(aborted.size, 100);
    await until(() => said.length === 100, "all handlers end");
  });
}

Deno.test("a call in a session continues after its client has disconnected, and the client can read the response later", async () => {
  await using fixture = startHolding();
  const { started, aborted, port, url, open } = fixture;
  const places = await Promise.all(Array.from({ length: 20 }, async (_, n) => {
    const session = await startSession(url, fetch);
    const padding = "x".repeat(n % 2 ? 100_000 : 0);
    const call = toCall("hold", { session, args: { n, padding }, meta: { progressToken: n } });
    const client = await openUnread(port, toWire(port, call));
    // The first event has only an event id, with which the client can resume the stream.
    const text = await client.read((text) => /^id: .+$/m.test(text));
    client.close();
    return { session, place: /^id: (\S+)\r?$/m.exec(text)?.[1] ?? "" };
  }));
  assertEquals(started.size, 20);
  // When this later request has a response, the server has detected the end of the first connection.
  await (await fetch(url, toCall("hold", { session: "none" }))).body?.cancel();
  assertEquals(aborted.size, 0);
  open();
  for (const [n, { session, place }] of places.entries()) {
    const headers = { accept: "text/event-stream", "mcp-session-id": session, "last-event-id": place };
    const messages = readData(await (await fetch(url, { headers })).text());
    const results = messages.flatMap((message) => Object(message).result ?? []);
    assertEquals(results, [{ content: [{ type: "text", text: `held ${n}` }] }]);
  }
});

/** Creates a tool that reports progress up to `to`, and waits for `pause` before each step. */
function counting(pause: () => Promise<unknown>) {
  return tool({
    name: "count",
    input: any,
    async run({ to }: { readonly to?: unknown }, ctx) {
      for (let i = 1; i <= Number(to); i++) {
        await ctx.progress(i, { message: "é\u2028".repeat(i % 7) });
        await pause();
      }
      return "counted";
    },
  });
}

Deno.test("if a connection breaks at any byte, a resumed stream delivers every message once, in order, and the response last", async () => {
  const { below } = random(101);
  const count = counting(() => turn(below(4)));
  const server = openServer({ handlers: [count] });
  const host = startHttpServer(server.fetch);
  const port = Number(new URL(host.origin).port);
  const url = `${host.origin}/mcp`;
  const steps = 20;
  let cuts = 0;

  async function follow(): Promise<void> {
    const session = await startSession(url, fetch);
    const got: unknown[] = [];
    let place = "";
    let wire = toWire(port, toCall("count", { session, args: { to: steps }, meta: { progressToken: "t" } }));
    while (true) {
      const client = await openUnread(port, wire);
      const enough = 200 + below(1500);
      const text = await client.read((text) => text.length >= enough || text.includes('"counted"'));
      client.close();
      cuts++;
      // Remove the chunk headers. An incomplete event at the end does not count.
      const body = text.slice(text.indexOf("\r\n\r\n") + 4).replace(/\r\n[0-9a-f]*\r\n|^[0-9a-f]+\r\n/g, "");
      for (const [, event] of body.matchAll(/((?:[^\n]+\n)+)\n/g)) {
        place = /^id: (\S+)$/m.exec(event)?.[1] ?? place;
        got.push(...readData(event));
      }
      if (got.some((message) => Object(message).result)) break;
      assert(place, text);
      wire = `GET /mcp HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\naccept: text/event-stream\r\n` +
        `mcp-session-id: ${session}\r\nlast-event-id: ${place}\r\n\r\n`;
    }
    assertEquals(
      got.map((message) => Object(message).params?.progress ?? Object(message).result?.content[0].text),
      [...Array.from({ length: steps }, (_, i) => i + 1), "counted"],
    );
  }

  for (let wave = 0; cuts < 100 && wave < 10; wave++) await Promise.all(Array.from({ length: 10 }, follow));
  assert(cuts >= 100, `${cuts} cuts`);
  await server.close();
  await host.stop();
});

Deno.test("resuming a stream closes the old connection, and no message is sent over both connections", async () => {
  const steps: (() => void)[] = [];
  const count = counting(() => new Promise<void>((resolve) => steps.push(resolve)));
  const server = openServer({ handlers: [count] });
  const url = "http://localhost/mcp";
  const session = await startSession(url, server.fetch);
  const call = toCall("count", { session, args: { to: 6 }, meta: { progressToken: "t" } });
  const step = async () => {
    await until(() => steps.length > 0, "a step");
    steps.shift()?.();
  };
  const texts: Promise<string>[] = [];
  const first = await server.fetch(new Request(url, call));
  const [ours, theirs] = first.body?.tee() ?? [];
  assert(ours && theirs);
  texts.push(new Response(ours).text());
  const opening = new TextDecoder().decode((await theirs.getReader().read()).value);
  const name = /^id: (\S+)_\d+$/m.exec(opening)?.[1];
  for (const place of [3, 5]) {
    await step();
    await step();
    const headers = { accept: "text/event-stream", "mcp-session-id": session, "last-event-id": `${name}_${place}` };
    // The client resumes after the last message, so a message that arrives again was sent twice.
    await until(() => steps.length > 0, "the next step");
    const again = await server.fetch(new Request(url, { headers }));
    assertEquals(again.status, 200);
    texts.push(again.text());
  }
  await step();
  await step();
  const seen = (await Promise.all(texts)).map((text) =>
    readData(text).map((message) => Object(message).params?.progress ?? "answer")
  );
  assertEquals(seen, [[1, 2, 3], [4, 5], [6, "answer"]]);
});
