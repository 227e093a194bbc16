// More development warnings: handlers that block the event loop, and promises in results.
import { assertEquals } from "@std/assert";
import { createServer, prompt, resource, service, tool, ToolError } from "../../mod.ts";
import { guard } from "../../src/layers/layers.ts";
import { listEndpoints } from "../../src/host.ts";
import { type Connection, connectTest, fakeClock } from "../../src/testing/testing.ts";
import { behaviour, textOf } from "../support/behaviour.ts";
import { collectWarnings } from "../support/warnings.ts";
import { sentence } from "../support/messages.ts";

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
    tool({
      name: "starts",
      async run() {
        clock.block(60);
        await undefined;
      },
    }),
    prompt({ name: "prompt", run: () => (clock.block(51), "words") }),
    resource({ uri: "note://1", name: "note", read: () => (clock.block(51), "text") }),
    tool({ name: "quick", run: () => clock.block(50) }),
    tool({
      name: "later",
      async run() {
        await undefined;
        // This part runs after an `await`, so no runtime can attribute its time to the call.
        clock.block(500);
      },
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
