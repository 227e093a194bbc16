// The store of an extension, for the process and for the client of a request.
import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { type Context, createServer, extension, service, tool } from "../../mod.ts";
import { clientExtension } from "../../src/client/client.ts";
import type { KeptBytes, ServerHandle, StoreView } from "../../src/extensions/extension.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { z } from "zod";
import { until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const ID = "com.example/notes";

Deno.test("an extension counts stored bytes against the share of a request's client, until they are released", async () => {
  let host: ServerHandle | undefined;
  const all: KeptBytes[] = [];
  const contexts: Context[] = [];
  const blobs = extension({
    id: ID,
    start: (server) => void (host = server),
    methods: {
      "blobs/add": {
        params: z.object({ bytes: z.number() }),
        run({ bytes }, ctx, server) {
          contexts.push(ctx);
          const kept = server?.keep(ctx, bytes);
          if (kept) all.push(kept);
          return { isKept: kept !== undefined };
        },
      },
    },
  });
  await using server = createServer({ name: "blobs", version: "1.0.0", handlers: [blobs] });
  const join = (id: string) => connectTest(server, { extensions: [clientExtension({ id: ID })], principal: { id } });
  await using ada = await join("ada");
  await using bob = await join("bob");
  const add = async (client: Connection, bytes: number) => (await client.request("blobs/add", { bytes })).isKept;
  const QUARTER = 33_554_432;
  assertEquals(await add(ada, QUARTER - 1000), true);
  assertEquals([await add(ada, 2000), await add(bob, 2000)], [false, true]);
  all[0].resize(1000);
  assertEquals(await add(ada, 2000), true);
  all[0].end();
  assertEquals([all[0].grow(1), all[1].grow(QUARTER), all[1].grow(1)], [false, false, true]);
  assertThrows(() => host?.keep({ ...contexts[0], link: undefined } as Context, 1), TypeError, sentence("ctx"));
});

Deno.test("an extension uses the same data for the process and for the client of each context", async () => {
  let host: ServerHandle | undefined;
  const views: (StoreView | undefined)[] = [];
  const watched: string[] = [];
  const notes = extension({
    id: ID,
    start: (server) => void (host = server),
    methods: {
      "notes/set": {
        params: z.object({ text: z.string() }),
        async run({ text }, ctx, server) {
          const [first, second] = [server?.store?.by(ctx), server?.store?.by(ctx)];
          views.push(first, second);
          await first?.set("note", text, { ttlMs: 60_000 });
          return {};
        },
      },
    },
    listen: {
      notes: {
        filter: z.array(z.string()),
        watch: async (topic, ctx, server) => {
          await server?.store?.by(ctx).set(topic, "watched", { ttlMs: 60_000 });
          watched.push(`${topic} ${ctx.principal?.id} ${server === host}`);
        },
      },
    },
  });
  // The context of a handler with services is a separate object.
  const wrapping = notes.layer({
    around: async (call, next) => {
      views.push(call.server?.store?.by(call.ctx));
      return await next();
    },
  });
  const contexts: Context<unknown>[] = [];
  const read = tool({
    name: "read",
    services: { clock: service("clock", () => 1) },
    use: [wrapping],
    run: async (_input, ctx) => {
      contexts.push(ctx);
      return (await host?.store?.by(ctx).get("note"))?.value ?? "";
    },
  });
  await using server = createServer({
    name: "notes",
    version: "1.0.0",
    secret: "a secret of at least thirty-two characters",
    handlers: [notes, read],
    store: memoryStore(),
  });
  const declared = { extensions: [clientExtension({ id: ID })], principal: { id: "ada" } };
  await using client = await connectTest(server, declared);
  await client.request("notes/set", { text: "Buy milk" });
  assertEquals((await host?.store?.own.get("note"))?.value, "Buy milk");
  const { content: [text] } = await client.callTool("read");
  assertEquals(Object(text).text, "Buy milk");
  // A request has one view, so only its first operation is refused.
  assertStrictEquals(views[0], views[1]);
  assertStrictEquals(views[2], host?.store?.by(contexts[0]));
  await using _subscription = await client.subscribe({ extensions: { notes: ["today"] } });
  await until(() => watched.length === 1, "the topic is watched");
  assertEquals(watched, ["today ada true"]);
  assertEquals((await host?.store?.own.get("today"))?.value, "watched");
  const { lease } = host?.store?.by(contexts[0]) ?? {};
  assertEquals([lease?.id, await lease?.isHeld("unknown")], [host?.store?.own.lease.id, true]);
  // A copy of a context belongs to no call.
  assertThrows(() => host?.store?.by({ ...contexts[0] }), TypeError, sentence("ctx"));
});
