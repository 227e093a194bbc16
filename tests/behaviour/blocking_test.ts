// More development warnings: handlers that block the event loop, and promises in results.
import { assertEquals } from "@std/assert";
import { z } from "zod";
import { type Context, createServer, prompt, resource, service, tool, ToolError } from "../../mod.ts";
import { listEndpoints } from "../../src/host.ts";
import { guard } from "../../src/layers/layers.ts";
import { type Connection, connectTest, fakeClock } from "../../src/testing/testing.ts";
import { behaviour, plainTool, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { closeAtEnd } from "../support/running.ts";
import { collectWarnings } from "../support/warnings.ts";

/** A fake clock whose time a synchronous handler can advance. */
function movable() {
  const clock = fakeClock();
  let extra = 0;
  return { ...clock, now: () => clock.now() + extra, block: (ms: number) => void (extra += ms) };
}

async function use(connected: Connection, name: string): Promise<void> {
  if (name === "prompt") await connected.getPrompt(name);
  else if (name === "note") await connected.readResource("note://1");
  else await connected.callTool(name);
}

behaviour("a handler that blocks the event loop for more than 50 ms is reported once", async (join) => {
  const clock = movable();
  const db = service("db", () => ({ query: () => clock.block(51) }));
  const handlers = [
    tool({ name: "slow", run: () => clock.block(51) }),
    tool({ name: "fails", run: () => (clock.block(70), Promise.reject(new ToolError("no"))) }),
    tool({ name: "throws", run: () => (clock.block(70), new Map().get(1).x) }),
    tool({ name: "service", services: { db }, run: (_input, ctx) => ctx.services.db.query() }),
    tool({ name: "guarded", use: [guard({ output: [(value) => value] })], run: () => clock.block(51) }),
    plainTool("starts", async () => {
      clock.block(60);
      await undefined;
    }),
    prompt({ name: "prompt", run: () => (clock.block(51), "words") }),
    resource({ uri: "note://1", name: "note", read: () => (clock.block(51), "text") }),
    tool({ name: "quick", run: () => clock.block(50) }),
    plainTool("later", async () => {
      await undefined;
      // This part runs after an `await`, so no runtime can attribute its time to the call.
      clock.block(500);
    }),
  ];
  const { client: connected, takeFaults } = await join({ handlers, clock });
  const times: Readonly<Record<string, number>> = { fails: 70, throws: 70, starts: 60 };
  for (const { name } of handlers) {
    const warnings = await collectWarnings(async () => {
      await use(connected, name);
      clock.block(10);
      await use(connected, name);
    }, { timed: true });
    const place = { prompt: 'prompts/get "prompt"', note: 'resources/read "note://1"' }[name] ?? `tools/call "${name}"`;
    const { [name]: ms = 51 } = times;
    assertEquals(warnings, ["quick", "later"].includes(name) ? [] : [sentence(place, ms)], name);
  }
  assertEquals(takeFaults().length, 2);
}, { perInstance: "observer" });

Deno.test("until they unsubscribe, listeners are notified when a handler starts and when a handler blocks the event loop", async () => {
  const clock = movable();
  const slow = tool({ name: "slow", run: () => clock.block(51) });
  await using server = createServer({ name: "s", version: "1.0.0", handlers: [slow], clock });
  const seen: unknown[] = [];
  const [endpoint] = listEndpoints(server);
  const stop = endpoint.develop({ start: () => seen.push("start"), block: (ms) => seen.push(ms) });
  await using connected = await connectTest(server);
  await collectWarnings(async () => {
    await connected.callTool("slow");
    await connected.callTool("slow");
    stop();
    await connected.callTool("slow");
  });
  assertEquals(seen, ["start", 51, "start", 51]);
});

const lost = () => Promise.reject(new Error("lost"));
// Handlers that TypeScript rejects. Plain JavaScript accepts these handlers.
const promises = [
  tool({ name: "object", run: () => ({ a: lost() }) }),
  tool({ name: "nested", run: () => Promise.resolve({ a: [new Map([["b", lost()]])] }) }),
  tool({ name: "content", run: () => ({ content: [lost()] }) as never }),
  tool({ name: "structured", run: () => ({ content: [], structuredContent: { a: lost() } }) as never }),
  tool({ name: "guarded", use: [guard({ output: [(value) => value] })], run: () => ({ a: lost() }) }),
  prompt({ name: "prompt", run: () => [lost()] as never }),
  resource({ uri: "note://1", name: "note", read: () => [{ text: lost() }] as never }),
];

behaviour(
  "a promise in a result is reported with its path, and the process survives its rejection",
  async (join) => {
    const { client: connected, takeFaults } = await join({ handlers: promises });
    const paths: Readonly<Record<string, string>> = { nested: "a[0].b", content: "content[0]", prompt: "[0]" };
    for (const { name } of promises) {
      await use(connected, name).catch(() => {});
      const { [name]: path = name === "note" ? "[0].text" : "a" } = paths;
      const place = name === "note" ? 'resource "note://1"' : name === "prompt" ? 'prompt "prompt"' : `tool "${name}"`;
      assertEquals(takeFaults().map(({ error }) => String(error)), [
        sentence(place, path),
      ]);
    }
  },
);

Deno.test("the value of an awaited promise is sent", async () => {
  const fine = tool({ name: "fine", run: async () => ({ a: await Promise.resolve(1), b: {} }) });
  await using server = createServer({ name: "s", version: "1.0.0", handlers: [fine] });
  await using connected = await connectTest(server);
  assertEquals(textOf(await connected.callTool("fine")), '{"a":1,"b":{}}');
});

// Work before a question. In development, the server warns about this work, because the handler repeats it for clients
// without a session.

const schema = z.object({ ok: z.boolean() });
const ask = (ctx: Context, key: string) => ctx.elicit(key, { message: "?", schema });
const client = { onElicit: () => ({ action: "accept", content: { ok: true } }) as const, logLevel: "debug" } as const;

const noisy = plainTool("noisy", async (ctx) => {
  await ctx.log.info("begin");
  await ctx.progress(1);
  await ask(ctx, "first");
  await ctx.log.info("middle");
  await ask(ctx, "second");
  await ctx.log.info("end");
  return "done";
});

behaviour("work before a question is reported once for each question, in every revision", async (join) => {
  const { client: connected } = await join({ handlers: [noisy], clock: fakeClock() }, client);
  const call = () => connected.callTool("noisy", {}, { meta: { progressToken: 1 } });
  const warnings = await collectWarnings(async () => void [await call(), await call()]);
  assertEquals(warnings, [
    sentence('tools/call "noisy"', '"first"', "ctx.once("),
    sentence('tools/call "noisy"', '"second"', "ctx.once("),
  ]);
}, { perInstance: "observer" });

behaviour("a slow await before a question is reported, but work in ctx.once is not", async (join) => {
  const clock = fakeClock();
  const slow = plainTool("slow", async (ctx) => {
    await clock.advance(150);
    await ask(ctx, "sure");
    return "done";
  });
  const kept = plainTool("kept", async (ctx) => {
    await clock.advance(99);
    await ctx.once("work", async () => {
      await ctx.log.info("once");
      await clock.advance(500);
      return 1;
    });
    await Promise.all([ask(ctx, "a"), ask(ctx, "b")]);
    return "done";
  });
  const { client: connected } = await join({ handlers: [slow, kept], clock }, client);
  const warnings = await collectWarnings(
    async () => void [await connected.callTool("slow"), await connected.callTool("kept")],
    { timed: true },
  );
  assertEquals(warnings, [sentence('tools/call "slow"', 150, '"sure"')]);
}, { perInstance: "observer" });

behaviour(
  "a notification before a question is reported, but a notification after the question is not",
  async (join) => {
    const announcing = plainTool("announcing", async (ctx) => {
      const { listChanged, resourceUpdated } = ctx.server;
      listChanged("tools");
      await ask(ctx, "first");
      await ctx.once("told", () => resourceUpdated("note://1"));
      await ask(ctx, "second");
      resourceUpdated("note://1");
      return "done";
    });
    const quiet = tool({ name: "quiet", run: async (_input, ctx) => (await ask(ctx, "sure")).action });
    const { client: connected } = await join({ handlers: [announcing, quiet] }, client);
    await using subscription = await connected.subscribe({ toolsListChanged: true });
    const warnings = await collectWarnings(async () => {
      await connected.callTool("announcing");
      await connected.callTool("quiet");
    });
    assertEquals(warnings, [sentence('tools/call "announcing"', '"first"')]);
    assertEquals((await subscription.take(1)).length, 1);
  },
  { perInstance: "observer" },
);

behaviour("prompts and resources are checked like tools", async (join) => {
  const work = async (ctx: Context) => {
    await ctx.log.warning("begin");
    await ask(ctx, "sure");
    return "done";
  };
  const { client: connected } = await join({
    handlers: [
      prompt({ name: "words", run: (_input, ctx) => work(ctx) }),
      resource({ uri: "note://1", name: "note", read: (_uri, ctx) => work(ctx) }),
    ],
  }, client);
  const warnings = await collectWarnings(async () => {
    await connected.getPrompt("words");
    await connected.readResource("note://1");
  });
  assertEquals(warnings, [sentence('prompts/get "words"'), sentence('resources/read "note://1"')]);
}, { perInstance: "observer" });

Deno.test("development: true enables the warnings without a test kit, and development: false disables them in the test kit", async () => {
  const warnOf = async (development: boolean) => {
    const server = closeAtEnd(createServer({ name: "s", version: "1.0.0", handlers: [noisy], development }));
    if (development) listEndpoints(server)[0].develop();
    return await collectWarnings(async () => {
      await using connected = await connectTest(server, client);
      await connected.callTool("noisy");
    });
  };
  assertEquals((await warnOf(true)).length, 2);
  assertEquals(await warnOf(false), []);
});
