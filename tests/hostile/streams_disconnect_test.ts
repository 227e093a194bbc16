// Clients that disconnect during a call. A disconnect cancels a call without a session, but not a call in a session.
import { assert, assertEquals } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { startHttpServer } from "../../src/testing/http_server.ts";
import { turn, until } from "../support/behaviour.ts";
import { random } from "../support/random.ts";
import { openUnread, readData, startSession, toCall, toWire } from "./unread.ts";

const any = { type: "object" } as const;

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
  const server = createServer({ name: "hold", version: "1.0.0", handlers: [hold] });
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
  const server = createServer({ name: "count", version: "1.0.0", handlers: [count] });
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
  const server = createServer({ name: "count", version: "1.0.0", handlers: [count] });
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
  await server.close();
});
