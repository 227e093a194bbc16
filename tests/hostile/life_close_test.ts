// Closing a server: running calls get time to end, queued calls are refused, and no resource leaks.
import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { createServer, resource, type Server, type ServerOptions, tool } from "../../mod.ts";
import { startChild, startHttpServer, toCommand } from "../../src/testing/http_server.ts";
import { connectTest, type FakeClock, fakeClock } from "../../src/testing/testing.ts";
import { gate, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { ask, readReply, toRequest } from "../support/requests.ts";
import { readData, startSession, toCall } from "./unread.ts";
import { openServer } from "../support/servers.ts";

/** Registers a test with Deno's sanitizers, so that a leaked timer, listener or stream fails the test. */
function clean(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, fn, sanitizeOps: true, sanitizeResources: true });
}

function createHolding(options: Partial<ServerOptions> = {}) {
  const { pass, open } = gate();
  const counts = { started: 0, aborted: 0 };
  const hold = tool({
    name: "hold",
    async run(_input, { signal }) {
      counts.started++;
      signal.addEventListener("abort", () => counts.aborted++);
      await pass;
      return "held";
    },
  });
  const handlers = [hold, resource({ uri: "test://one", name: "one", read: () => "" })];
  return { open, counts, server: openServer({ handlers, ...options }) };
}

function toListen(): RequestInit {
  const { headers, body } = toCall("");
  const message = JSON.parse(body);
  const params = { ...message.params, notifications: { toolsListChanged: true } };
  return {
    method: "POST",
    headers: { ...headers, "mcp-method": "subscriptions/listen" },
    body: JSON.stringify({ ...message, method: "subscriptions/listen", params }),
  };
}

/** Opens `count` connections, streams and calls of each kind, and waits until they are open. */
async function openAll(
  url: string,
  count: number,
  { counts, clock }: { readonly counts: { readonly started: number }; readonly clock: FakeClock },
) {
  const ended = {
    calls: [] as string[],
    answers: [] as string[],
    streams: [] as string[],
    subscriptions: [] as string[],
  };
  const all: Promise<unknown>[] = [];
  let open = 0;
  const follow = async (list: string[], init: RequestInit) => {
    const response = await fetch(url, init);
    open++;
    list.push(await response.text());
  };
  for (let i = 0; i < count; i++) {
    const session = await startSession(url, fetch);
    all.push(follow(ended.calls, toCall("hold", { id: `call ${i}` })));
    all.push(follow(ended.answers, toCall("hold", { id: `answer ${i}`, session })));
    all.push(follow(ended.streams, { headers: { accept: "text/event-stream", "mcp-session-id": session } }));
    all.push(follow(ended.subscriptions, toListen()));
  }
  await until(async () => {
    // A call gets its stream after a delay on the server's clock.
    await clock.advance(10);
    return counts.started === 2 * count && open === 4 * count;
  }, "everything is open");
  return { ended, done: Promise.all(all) };
}

for (const inTime of [true, false]) {
  clean(`50 calls, streams and subscriptions end ${inTime ? "before the deadline" : "at the deadline"}`, async () => {
    const clock = fakeClock();
    const { open, counts, server } = createHolding({ clock, limits: { calls: { closeMs: 300 } } });
    const host = startHttpServer(server.fetch);
    const url = `${host.origin}/mcp`;
    const session = await startSession(url, fetch);
    const { ended, done } = await openAll(url, 50, { counts, clock });
    const closing = server.close();
    assertEquals(server.close(), closing, "closed twice");
    // Subscriptions end immediately, even while calls are running.
    await until(
      () => ended.streams.length === 50 && ended.subscriptions.length === 50,
      "streams and subscriptions end",
    );
    assertEquals([ended.calls.length, ended.answers.length], [0, 0]);
    const get = { headers: { accept: "text/event-stream", "mcp-session-id": session } };
    for (const init of [toCall("hold"), toCall("hold", { session }), toListen(), get]) {
      const refused = await fetch(url, init);
      assertEquals([refused.status, refused.headers.get("retry-after")], [503, "1"]);
      assertEquals((await readReply(refused)).error.message, sentence());
    }
    if (inTime) open();
    else await clock.advance(300);
    await done;
    await closing;
    await server.close();
    for (const [kind, texts] of [["call", ended.calls], ["answer", ended.answers]] as const) {
      const messages = texts.flatMap(readData).map(Object);
      assertEquals(messages.map(({ id }) => id).sort(), Array.from({ length: 50 }, (_, i) => `${kind} ${i}`).sort());
      for (const { result, error } of messages) {
        if (inTime) assertEquals(result.content[0].text, "held");
        else assertEquals([error.code, error.message], [-32603, sentence()]);
      }
    }
    assertEquals(counts.aborted, inTime ? 0 : 100);
    for (const text of ended.streams) assertEquals(readData(text), []);
    for (const text of ended.subscriptions) assertEquals(Object(readData(text).at(-1)).result.resultType, "complete");
    open();
    await host.stop();
  });
}

clean("queued calls get a response when the server closes", async () => {
  for (const inTime of [true, false]) {
    const { open, counts, server } = createHolding({
      limits: { calls: { running: 1, closeMs: inTime ? 10_000 : 50 } },
    });
    const calls = [1, 2, 3].map(() => ask(server, "tools/call", { name: "hold" }));
    await until(() => counts.started === 1, "one runs");
    const closing = server.close();
    if (inTime) open();
    for (const { result, error } of await Promise.all(calls)) {
      if (inTime) assertEquals(result.content[0].text, "held");
      else assertEquals(error?.message, sentence());
    }
    await closing;
    assertEquals(counts.started, inTime ? 3 : 1, "a queued call is not started only to be cancelled");
    open();
  }
});

clean("over a pipe, closing the server ends running calls and subscriptions", async () => {
  for (const era of ["modern", "legacy"] as const) {
    const { open, counts, server } = createHolding({ limits: { calls: { closeMs: 50 } } });
    await using client = await connectTest(server, { era, transport: "pipe" });
    const running = client.callTool("hold").catch((error) => error.message);
    const subscription = era === "modern" ? await client.subscribe({ toolsListChanged: true }) : undefined;
    await until(() => counts.started === 1, "the call runs");
    await server.close();
    assertEquals(await running, sentence());
    await subscription?.ended;
    await assertRejects(() => client.request("tools/list"), Error, sentence());
    open();
  }
});

clean("1,000 servers are created and closed without a leak", async () => {
  const quick = tool({ name: "quick", run: () => "quick" });
  for (let i = 0; i < 1000; i++) {
    const clock = fakeClock();
    const server = createServer({ name: `server ${i}`, version: "1.0.0", handlers: [quick], clock });
    assertEquals((await ask(server, "tools/call", { name: "quick" })).status, 200);
    await server.close();
    assertEquals(clock.waiting, 0, "timers");
  }
});

clean(
  "closing 100 HTTP servers, each with a session, a stream and a disconnected client, leaks no resource",
  async () => {
    for (let i = 0; i < 100; i++) {
      const { open, counts, server } = createHolding();
      const host = startHttpServer(server.fetch);
      const url = `${host.origin}/mcp`;
      const session = await startSession(url, fetch);
      const stream = await fetch(url, { headers: { accept: "text/event-stream", "mcp-session-id": session } });
      const leaving = new AbortController();
      const lost = fetch(url, { ...toCall("hold"), signal: leaving.signal }).then(
        (response) => response.text(),
        () => "",
      );
      await until(() => counts.started === 1, "the call runs");
      leaving.abort();
      await lost.catch(() => {});
      open();
      await server.close();
      assertEquals(readData(await stream.text()), []);
      await host.stop();
    }
  },
);

clean("a notification without a recipient is dropped without an error", async () => {
  const { server } = createHolding();
  const late = tool({ name: "late", run: () => "" });
  await using client = await connectTest(server, { era: "modern", transport: "pipe" });
  await client.subscribe({ toolsListChanged: true });
  server.handlers.add(late);
  const closing = server.close();
  server.handlers.remove(late);
  server.resourceUpdated("test://one");
  await closing;
  server.handlers.add(late);
  server.handlers.remove(late);
  server.resourceUpdated("test://one");
});

clean("a handler can still log and report progress after its client has disconnected", async () => {
  let said = 0;
  const { promise: gone, resolve: go } = Promise.withResolvers<void>();
  const chat = tool({
    name: "chat",
    async run(_input, ctx) {
      await ctx.progress(1);
      await gone;
      for (let i = 2; i < 500; i++) {
        ctx.progress(i, { message: "x".repeat(1000) });
        await ctx.log.error(i);
        said++;
      }
      return "chatted";
    },
  });
  const server = openServer({ handlers: [chat] });
  const url = "http://localhost/mcp";
  for (const session of [undefined, await startSession(url, server.fetch)]) {
    const response = await server.fetch(new Request(url, toCall("chat", { session, meta: { progressToken: 1 } })));
    await response.body?.cancel();
  }
  go();
  await until(() => said === 2 * 498, "both handlers end");
});

clean("closing one server does not affect another server in the same process", async () => {
  const one = createHolding();
  const two = createHolding();
  two.server.handlers.add(tool({ name: "more", run: () => "more" }));
  const names = async (server: Server) =>
    (await ask(server, "tools/list")).result.tools.map(({ name }: { readonly name: string }) => name);
  assertEquals([await names(one.server), await names(two.server)], [["hold"], ["hold", "more"]]);
  await one.server.close();
  assertEquals((await ask(two.server, "tools/call", { name: "more" })).result.content[0].text, "more");
  const session = await startSession("http://localhost/mcp", two.server.fetch);
  const other = createHolding();
  const foreign = await other.server.fetch(new Request("http://localhost/mcp", toCall("hold", { session })));
  assertEquals(foreign.status, 404);
  await foreign.text();
  for (const { open } of [one, two, other]) open();
});

/** Maps the library's imports to packages. */
const CONFIG = decodeURIComponent(new URL("../../deno.json", import.meta.url).pathname);

async function runScript(
  source: string,
): Promise<{ readonly code: number; readonly out: string; readonly errors: string }> {
  const script = `data:text/javascript,${encodeURIComponent(source)}`;
  const isBun = "Bun" in globalThis;
  const [program] = toCommand("");
  const child = startChild(
    isBun
      ? [program, "-e", source]
      : [program, "run", "--quiet", "--no-prompt", "--no-check", "--config", CONFIG, script],
  );
  const [code, out, errors] = await Promise.all([
    child.exited,
    new Response(child.output).text(),
    new Response(child.errors).text(),
  ]);
  await child.closeInput().catch(() => {});
  return { code, out, errors };
}

clean("importing the library prints nothing, prompts for nothing and does not keep the process alive", async () => {
  const { default: config } = await import("../../deno.json", { with: { type: "json" } });
  const root = new URL("../../", import.meta.url).href;
  const imports = Object.values(config.exports).map((path) => `import ${JSON.stringify(new URL(path, root).href)};`);
  assertEquals(await runScript(`${imports.join("\n")}`), { code: 0, out: "", errors: "" });
});

clean("a server without an open transport does not keep the process alive", async () => {
  const library = JSON.stringify(new URL("../../mod.ts", import.meta.url).href);
  const source = `const { createServer, tool } = await import(${library});
    const server = createServer({ name: "idle", version: "1.0.0", handlers: [tool({ name: "a", run: () => "" })] });
    const { headers, body, method } = ${JSON.stringify(toCall("a"))};
    const response = await server.fetch(new Request("http://localhost/mcp", { method, headers, body }));
    console.log(response.status);`;
  assertEquals(await runScript(source), { code: 0, out: "200\n", errors: "" });
});

clean("the library does not handle unhandled rejections, so the runtime ends the process", async () => {
  const library = JSON.stringify(new URL("../../mod.ts", import.meta.url).href);
  const source = `const { createServer, tool } = await import(${library});
    const run = () => { Promise.reject(new Error("forgotten")); return new Promise(() => setTimeout(() => {}, 1000)); };
    const server = createServer({ name: "idle", version: "1.0.0", handlers: [tool({ name: "a", run })] });
    const { headers, body, method } = ${JSON.stringify(toCall("a"))};
    await server.fetch(new Request("http://localhost/mcp", { method, headers, body }));
    await new Promise((resolve) => setTimeout(resolve, 1000));`;
  const { code, errors } = await runScript(source);
  assertEquals(code, 1);
  assertStringIncludes(errors, "forgotten");
});

/** Creates a clock whose date can be set without affecting its timers, as when the system clock is set. */
function settableClock() {
  const clock = fakeClock();
  let offset = 0;
  return {
    advance: clock.advance,
    set(by: number) {
      offset += by;
    },
    clock: { now: clock.now, start: clock.start, date: () => clock.date() + offset },
  };
}

for (
  const [what, by] of [["an hour back", -3_600_000], ["a day forward", 86_400_000], [
    "a year forward",
    31_536_000_000,
  ]] as const
) {
  clean(
    `the system's clock is set ${what}: no session expires, hangs or outlives its limit because of it`,
    async () => {
      const { clock, advance, set } = settableClock();
      const { open, counts, server } = createHolding({ clock, limits: { calls: { timeoutMs: 100_000 } } });
      const url = "http://localhost/mcp";
      const session = await startSession(url, server.fetch);
      const list = async () => {
        const { headers } = toCall("", { session });
        const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
        const response = await server.fetch(new Request(url, { method: "POST", headers, body }));
        await response.text();
        return response.status;
      };
      assertEquals(await list(), 200);
      const stream = await server.fetch(
        new Request(url, { headers: { accept: "text/event-stream", "mcp-session-id": session } }),
      );
      const reading = stream.text();
      const running = server.fetch(toRequest("tools/call", { name: "hold" })).then((response) => response.text());
      await until(() => counts.started === 1, "the call runs");
      set(by);
      await advance(90_000);
      assertEquals([await list(), counts.aborted], [200, 0]);
      await advance(20_000);
      assertEquals(counts.aborted, 1, "the call ends at its own timeout");
      assertStringIncludes(await running, "calls.timeoutMs");
      assertEquals(await list(), 200);
      open();
      const closing = server.close();
      await advance(10_000);
      await closing;
      assertEquals(readData(await reading), []);
    },
  );
}
