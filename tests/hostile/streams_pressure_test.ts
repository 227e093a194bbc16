// Clients that do not read: the handler waits, the size of the buffer is limited, and the connection is closed after a
// timeout.
import { assert, assertEquals } from "@std/assert";
import { type LimitOptions, resource, tool } from "../../mod.ts";
import { startHttpServer } from "../../src/testing/http_server.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { behaviour, textOf, turn, until } from "../support/behaviour.ts";
import { META } from "./http.ts";
import { openUnread, readData, startSession, toCall, toWire } from "./unread.ts";
import { testLimits } from "../support/limits.ts";
import { readReply } from "../support/requests.ts";
import { openServer } from "../support/servers.ts";

const any = { type: "object" } as const;
const MB = 1_000_000;
const eras = ["modern", "legacy"] as const;

/**
 * Creates a tool that sends thousands of messages of 4 KB. `taken` counts the messages that the server has accepted.
 */
function flooding() {
  const taken = new Map<unknown, number>();
  const aborted = new Set<unknown>();
  const ended = new Set<unknown>();
  const flood = tool({
    name: "flood",
    input: any,
    async run({ n, messages, by }: { readonly n?: unknown; readonly messages?: unknown; readonly by?: unknown }, ctx) {
      const text = "x".repeat(4000);
      ctx.signal.addEventListener("abort", () => aborted.add(n));
      for (let i = 1; i <= Number(messages) && !ctx.signal.aborted; i++) {
        if (by === "progress") await ctx.progress(i, { message: text });
        else await ctx.log.info({ i, text });
        taken.set(n, i);
      }
      ended.add(n);
      return "flooded";
    },
  });
  return { taken, aborted, ended, handlers: [flood, tool({ name: "quick", run: () => "quick" })] };
}

function start(limits: LimitOptions = {}) {
  const { taken, aborted, ended, handlers } = flooding();
  const server = openServer({ handlers, limits });
  const host = startHttpServer(server.fetch);
  const port = Number(new URL(host.origin).port);
  const url = `${host.origin}/mcp`;
  return {
    ...{ taken, aborted, ended, server, port, url },
    async open(era: typeof eras[number], n: number, args: Readonly<Record<string, unknown>> = {}) {
      const session = era === "legacy" ? await startSession(url, fetch) : undefined;
      const meta = { [`${META}logLevel`]: "info", progressToken: n };
      return await openUnread(port, toWire(port, toCall("flood", { session, args: { n, ...args }, meta })));
    },
    /** Waits until the server accepts no more messages. Returns the number of accepted bytes per client. */
    async settle(clients: number): Promise<readonly number[]> {
      let last = -1;
      const sum = () => taken.values().reduce((all, each) => all + each, 0);
      await until(() => taken.size === clients, "all handlers begin");
      while (sum() !== last) {
        last = sum();
        // Fixed wait: the kernel does not report when its buffers are full.
        await new Promise((resolve) => setTimeout(resolve, 150));
      }
      return [...taken.values()].map((count) => count * 4000);
    },
    async [Symbol.asyncDispose]() {
      await server.close();
      await host.stop();
    },
  };
}

for (const era of eras) {
  for (const by of ["log", "progress"]) {
    Deno.test(`the handler waits while a client does not read, and the client then gets every message (${by}, ${era})`, async () => {
      await using fixture = start();
      const messages = 2500;
      const clients = await Promise.all([0, 1, 2, 3, 4].map((n) => fixture.open(era, n, { messages, by })));
      const taken = await fixture.settle(clients.length);
      // About 4 MB of the 10 MB are in kernel buffers. The handler has not produced the rest.
      for (const bytes of taken) assert(bytes < 7 * MB, `${taken}`);
      assertEquals([fixture.ended.size, fixture.aborted.size], [0, 0]);
      const quick = await readReply(await fetch(fixture.url, toCall("quick")));
      assertEquals(quick.result.content[0].text, "quick");
      const text = await clients[0].read((text) => text.endsWith("0\r\n\r\n"));
      const got = text.split("\n").filter((line) => line.startsWith("data: {")).map((line) =>
        /"(?:i|progress)":(\d+)/.exec(line)?.[1] ?? "answer"
      );
      assertEquals(got.length, messages + 1);
      assert(got.every((each, i) => each === (i < messages ? `${i + 1}` : "answer")), "in order, each message once");
      for (const client of clients) client.close();
    });
  }
}

for (const era of eras) {
  Deno.test(`a stream ends if its client does not read until the timeout, and ${era === "modern" ? "the call is aborted" : "the call of the session continues"}`, async () => {
    await using fixture = start(testLimits({ streams: { writeMs: 3000 } }));
    const messages = 3000;
    const still = await fixture.open(era, 1, { messages });
    const reading = await fixture.open(era, 2, { messages });
    const whole = reading.read((text) => text.endsWith("0\r\n\r\n"));
    await until(() => fixture.ended.has(1), "the handler continues");
    // A legacy call continues, because the client can resume the stream. A modern call is aborted.
    assertEquals(fixture.aborted.has(1), era === "modern");
    assertEquals(fixture.taken.get(1) === messages, era === "legacy");
    const text = await still.read((text) => text.endsWith("0\r\n\r\n"));
    assert(!text.includes('"result"') && text.length < 8 * MB, "the stream ends without a response");
    assert(text.endsWith("\n\n\r\n0\r\n\r\n"), "and after a whole event");
    assert((await whole).includes('"result"'), "another client is not disturbed");
    still.close();
    reading.close();
  });
}

Deno.test("the server closes a response that the client never reads completely", async () => {
  const big = tool({ name: "big", run: () => "x".repeat(12 * MB) });
  const clock = fakeClock();
  const server = openServer({ handlers: [big], clock });
  const response = await server.fetch(
    new Request("http://localhost/mcp", { ...toCall("big", { accept: "text/event-stream" }) }),
  );
  const reader = response.body?.getReader();
  await reader?.read();
  await clock.advance(60_000);
  await reader?.read();
  const last = await reader?.read();
  assertEquals(last?.done, true);
  await clock.advance(60_000);
  assertEquals(clock.waiting, 0, "no timer is left");
});

Deno.test("the handler also waits if a client resumes a stream without reading", async () => {
  const { taken, ended, handlers } = flooding();
  const server = openServer({ handlers });
  const url = "http://localhost/mcp";
  const session = await startSession(url, server.fetch);
  const call = toCall("flood", { session, args: { n: 1, messages: 5000 } });
  const first = (await server.fetch(new Request(url, call))).body?.getReader();
  const opening = new TextDecoder().decode((await first?.read())?.value);
  const place = /^id: (\S+)$/m.exec(opening)?.[1] ?? "";
  const headers = { accept: "text/event-stream", "mcp-session-id": session, "last-event-id": place };
  const second = await server.fetch(new Request(url, { headers }));
  assertEquals(second.status, 200);
  await until(() => taken.has(1), "the handler sends a message");
  await turn(10);
  const count = taken.get(1) ?? 0;
  assert(count < 100, `${count} messages were accepted`);
  const data = readData(await second.text());
  assert(ended.has(1));
  assertEquals(data.length, 5001);
});

Deno.test("the handler continues after the client has cancelled a full stream", async () => {
  const { taken, ended, aborted, handlers } = flooding();
  const server = openServer({ handlers });
  const call = toCall("flood", { args: { n: 1, messages: 5000 }, meta: { [`${META}logLevel`]: "info" } });
  const response = await server.fetch(new Request("http://localhost/mcp", call));
  await until(() => taken.has(1), "the handler sends a message");
  await turn(10);
  await response.body?.cancel();
  await until(() => ended.has(1), "the handler ends");
  assert(aborted.has(1));
});

for (const era of eras) {
  Deno.test(`notifications are coalesced while a client does not read, and the client then receives each changed resource (${era})`, async () => {
    const uris = Array.from({ length: 20 }, (_, i) => `test://${i}/${"x".repeat(200)}`);
    const handlers = uris.map((uri, i) => resource({ uri, name: `r${i}`, read: () => "" }));
    const clock = fakeClock();
    const server = openServer({ handlers, clock, limits: testLimits({ streams: { writeMs: Infinity } }) });
    const url = "http://localhost/mcp";
    const request = (method: string, params: object, session?: string) => {
      const { headers, body } = toCall("", { session });
      const message = JSON.parse(body);
      const { _meta } = message.params;
      return new Request(url, {
        method: "POST",
        headers: session ? headers : { ...headers, "mcp-method": method },
        body: JSON.stringify({ ...message, method, params: { ...params, _meta } }),
      });
    };
    let response;
    if (era === "modern") {
      response = await server.fetch(
        request("subscriptions/listen", { notifications: { resourceSubscriptions: uris } }),
      );
    } else {
      const session = await startSession(url, server.fetch);
      for (const uri of uris) await (await server.fetch(request("resources/subscribe", { uri }, session))).text();
      const headers = { accept: "text/event-stream", "mcp-session-id": session };
      response = await server.fetch(new Request(url, { headers }));
    }
    for (let round = 0; round < 100; round++) {
      for (const uri of uris) server.resourceUpdated(uri);
      await clock.advance(10);
    }
    const reading = response.text();
    await clock.advance(1000);
    await server.close();
    const heard = readData(await reading).flatMap((message) => Object(message).params?.uri ?? []);
    assert(heard.length >= uris.length && heard.length < 500, `${heard.length} of 2,000 were sent`);
    assertEquals(new Set(heard).size, uris.length);
  });
}

behaviour(
  "a client that reads in time gets all messages that a handler logs without await",
  async (connect) => {
    const chat = tool({
      name: "chat",
      run(_input, ctx) {
        for (let i = 1; i <= 200; i++) ctx.log.info({ i, text: "x".repeat(1000) });
        return "chatted";
      },
    });
    const { client } = await connect({ handlers: [chat] }, { logLevel: "info" });
    assertEquals(textOf(await client.callTool("chat")), "chatted");
    assertEquals(
      client.received.map(({ params }) => Object(params.data).i),
      Array.from({ length: 200 }, (_, i) => i + 1),
    );
  },
);

Deno.test("messages that a handler logs without await do not fill the memory if the client does not read", async () => {
  const chatted = Promise.withResolvers<void>();
  const chat = tool({
    name: "chat",
    async run(_input, ctx) {
      for (let i = 1; i <= 20_000; i++) {
        ctx.log.info(i);
        if (i % 100 === 0) await turn();
      }
      chatted.resolve();
      return "chatted";
    },
  });
  const server = openServer({ handlers: [chat] });
  const call = toCall("chat", { meta: { [`${META}logLevel`]: "info" } });
  const response = await server.fetch(new Request("http://localhost/mcp", call));
  await chatted.promise;
  const data = readData(await response.text());
  assert(Object(data.at(-1)).result);
  assert(data.length < 1000, `${data.length} messages were kept`);
});

Deno.test("the total size of all replay buffers is limited, and no single session can use all of it", async () => {
  const hold = Promise.withResolvers<void>();
  const said: unknown[] = [];
  const say = tool({
    name: "say",
    input: any,
    async run({ messages }: { readonly messages?: unknown }, ctx) {
      for (let i = 1; i <= Number(messages); i++) await ctx.log.info({ i, text: "x".repeat(1000) });
      said.push(messages);
      await hold.promise;
      return "said";
    },
  });
  const limits = testLimits({ replay: { bytes: 200_000 } });
  const server = openServer({ handlers: [say], limits });
  const url = "http://localhost/mcp";

  /** Opens a session, receives messages, and disconnects. Returns a function that resumes the stream. */
  async function leave(messages: number) {
    const session = await startSession(url, server.fetch);
    const response = await server.fetch(new Request(url, toCall("say", { session, args: { messages } })));
    const reader = response.body?.getReader();
    let text = "";
    while (reader && !text.includes(`"i":${Math.min(messages, 3)},`)) {
      text += new TextDecoder().decode((await reader.read()).value);
    }
    await reader?.cancel();
    const name = /^id: (\S+)_\d+$/m.exec(text)?.[1];
    return (place: number) => {
      const headers = { accept: "text/event-stream", "mcp-session-id": session, "last-event-id": `${name}_${place}` };
      return server.fetch(new Request(url, { headers }));
    };
  }

  const calm = await leave(3);
  const floods = await Promise.all([500, 500, 500, 500].map(leave));
  const calmToo = await leave(3);
  await until(() => said.length === 6, "all messages are sent");
  hold.resolve();
  for (const comeBack of [calm, calmToo]) {
    const data = readData(await (await comeBack(0)).text());
    assertEquals(data.length, 4, "a session with few messages lost none of them");
  }
  let kept = 0;
  for (const comeBack of floods) {
    const gone = await comeBack(3);
    assertEquals(gone.status, 400);
    const { error } = await readReply(gone);
    assertEquals(error.code, -32600);
    const text = await (await comeBack(450)).text();
    kept += text.startsWith("{") ? 0 : text.length;
    const last = await comeBack(500);
    assertEquals(readData(await last.text()).length, 1, "the end of the stream is kept");
  }
  assert(kept < 150_000, `${kept} were kept`);
});

Deno.test("a session keeps a limited number of events for a limited time", async () => {
  const clock = fakeClock();
  const say = tool({
    name: "say",
    async run(_input, ctx) {
      for (let i = 1; i <= 50; i++) await ctx.log.info(i);
      return "said";
    },
  });
  const limits = testLimits({ replay: { events: 20, ms: 300_000 } });
  const server = openServer({ handlers: [say], limits, clock });
  const url = "http://localhost/mcp";
  const session = await startSession(url, server.fetch);
  const text = await (await server.fetch(new Request(url, toCall("say", { session })))).text();
  const name = /^id: (\S+)_\d+$/m.exec(text)?.[1];
  const comeBack = async (place: string) => {
    const headers = { accept: "text/event-stream", "mcp-session-id": session, "last-event-id": place };
    const response = await server.fetch(new Request(url, { headers }));
    return [response.status, readData(await response.text()).length];
  };
  assertEquals(await comeBack(`${name}_30`), [400, 0]);
  assertEquals(await comeBack(`${name}_31`), [200, 20]);
  assertEquals(await comeBack(`${name}_51`), [200, 0]);
  for (const bad of [`${name}_52`, `${name}_${10 ** 30}`, `${name}_-1`, `${name}_`, "x", "", `${name}_1e1`, "_1"]) {
    assertEquals((await comeBack(bad))[0], 400, bad);
  }
  await clock.advance(240_000);
  assertEquals(await comeBack(`${name}_31`), [200, 20]);
  await clock.advance(180_000);
  assertEquals(await comeBack(`${name}_31`), [400, 0]);
});
