// Per-handler limits: timeout, concurrency, rate, and result size.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { z } from "zod";
import { prompt, resource, tool } from "../../mod.ts";
import type { CallEvent, LimitEvent, RefusedEvent } from "../../src/observe/observe.ts";
import { quota } from "../../src/layers/layers.ts";
import { fakeClock, McpError } from "../../src/testing/testing.ts";
import { behaviour, gate, started, textOf, turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

async function fails(run: () => Promise<unknown>): Promise<McpError> {
  const error = await assertRejects(run);
  if (!(error instanceof McpError)) throw error;
  return error;
}

behaviour("every kind of handler has its own timeout", async (connect) => {
  const reached: LimitEvent[] = [];
  const clock = fakeClock();
  const { pass, open } = gate();
  let running = 0;
  const aborted: string[] = [];
  const hang = (name: string, { signal }: { readonly signal: AbortSignal }) =>
    new Promise<never>((_, reject) => {
      running++;
      signal.addEventListener("abort", () => {
        aborted.push(name);
        reject(signal.reason);
      });
    });
  const short = quota({ timeoutMs: 30 });
  const { client } = await connect({
    clock,
    observer: { limit: (event) => reached.push(event) },
    handlers: [
      tool({ name: "t", use: [short], run: (_, ctx) => hang("t", ctx) }),
      resource({ uri: "x://r", name: "r", use: [short], read: (_, ctx) => hang("r", ctx) }),
      prompt({
        name: "p",
        input: z.object({ a: z.string() }),
        use: [short],
        complete: { a: (_value, _others, ctx) => hang("c", ctx) },
        run: (_, ctx) => hang("p", ctx),
      }),
      tool({ name: "free", run: () => (running++, pass.then(() => "done")) }),
    ],
  });
  const slow = started(client.callTool("free"));
  const errors = Promise.all([
    fails(() => client.callTool("t")),
    fails(() => client.readResource("x://r")),
    fails(() => client.getPrompt("p", { a: "" })),
    fails(() => client.complete({ type: "ref/prompt", name: "p" }, { name: "a", value: "" })),
  ]);
  await until(() => running === 5, "all calls run");
  await clock.advance(60);
  for (const { code, message } of await errors) {
    assertEquals(code, -32603);
    assertStringIncludes(message, sentence(30, "handler.timeoutMs"));
  }
  assertEquals(aborted.toSorted(), ["c", "p", "r", "t"]);
  open();
  assertEquals(textOf(await slow), "done");
  assertEquals(reached.map(({ limit }) => limit), Array(4).fill("handler.timeoutMs"));
});

/** Creates a tool that reads a resource, and returns its text or its error. */
const reader = (timeoutMs: number) =>
  tool({
    name: "reader",
    use: [quota({ timeoutMs })],
    input: z.object({ uri: z.string() }),
    run: ({ uri }, ctx) =>
      ctx.readResource(uri).then(
        ([contents]) => String(Object(contents).text),
        (error) => `caught ${error.code} ${error.message}`,
      ),
  });

behaviour(
  "a resource that a handler reads has its own timeout, and the handler can continue after this timeout",
  async (connect) => {
    const clock = fakeClock();
    const started: string[] = [];
    const aborted: string[] = [];
    const short = quota({ timeoutMs: 30 });
    const { pass, open } = gate();
    const slow = resource({
      uri: "x://slow",
      name: "slow",
      use: [short],
      read: (uri, { signal }) => {
        started.push(uri);
        return new Promise<never>((_, reject) =>
          signal.addEventListener("abort", () => {
            aborted.push(signal.reason.name);
            reject(signal.reason);
          })
        );
      },
    });
    // The resource ignores the cancellation of its read.
    const deaf = resource({
      uri: "x://deaf",
      name: "deaf",
      use: [short],
      read: (uri) => {
        started.push(uri);
        return pass.then(() => "late");
      },
    });
    const nested = resource({ uri: "x://nested", name: "nested", read: (_, ctx) => ctx.readResource("x://slow") });
    const { client } = await connect({ clock, handlers: [reader(5000), slow, deaf, nested] });
    for (const uri of ["x://slow", "x://deaf", "x://nested"]) {
      started.length = 0;
      const call = client.callTool("reader", { uri });
      await until(() => started.length > 0, "the resource starts");
      await clock.advance(30);
      assertEquals(
        textOf(await call),
        `caught -32603 ${sentence(30, "handler.timeoutMs")}`,
        uri,
      );
    }
    assertEquals(aborted, ["TimeoutError", "TimeoutError"]);
    open();
  },
);

behaviour(
  "the timeout of a resource that a handler reads is paused while the resource waits for an answer",
  async (connect) => {
    const clock = fakeClock();
    let asked = 0;
    const { pass, open } = gate();
    const schema = z.object({ ok: z.boolean() });
    const asking = resource({
      uri: "x://asking",
      name: "asking",
      use: [quota({ timeoutMs: 1000 })],
      read: async (_, ctx) => (await ctx.elicit("a", { message: "Sure?", schema })).action,
    });
    const { client } = await connect({ clock, handlers: [reader(1000), asking] }, {
      onElicit: async () => {
        asked++;
        await pass;
        return { action: "accept", content: { ok: true } };
      },
    });
    const answered = client.callTool("reader", { uri: "x://asking" });
    await until(() => asked > 0, "the resource asks");
    await clock.advance(5000);
    open();
    assertEquals(textOf(await answered), "accept");
  },
);

behaviour(
  "the timeout counts the time of the handler, but not the time that the client takes to answer",
  async (connect) => {
    const clock = fakeClock();
    let ended = 0;
    const ask = tool({
      name: "ask",
      input: z.object({ workMs: z.number() }),
      use: [quota({ timeoutMs: 120 })],
      async run({ workMs }, ctx) {
        await ctx.elicit("a", { message: "Sure?", schema: z.object({ ok: z.boolean() }) });
        await clock.advance(workMs);
        ended++;
        return "done";
      },
    });
    const onElicit = async () => {
      await clock.advance(250);
      return { action: "accept" as const, content: { ok: true } };
    };
    const { client } = await connect({ clock, handlers: [ask] }, { onElicit });
    assertEquals(textOf(await client.callTool("ask", { workMs: 100 })), "done");
    const { message } = await fails(() => client.callTool("ask", { workMs: 400 }));
    assertStringIncludes(message, "handler.timeoutMs");
    await until(() => ended === 2, "the handler has ended");
  },
);

behaviour(
  "a handler has a concurrency limit; further calls wait in its queue, or are refused if the queue is full",
  async (connect, way) => {
    const { pass, open } = gate();
    const refused: RefusedEvent[] = [];
    const reached: LimitEvent[] = [];
    let running = 0;
    let most = 0;
    const work = tool({
      name: "work",
      use: [quota({ concurrency: { calls: 2, waiting: 4 } })],
      async run() {
        most = Math.max(most, ++running);
        await pass;
        running--;
        return "done";
      },
    });
    const { client } = await connect({
      handlers: [work, tool({ name: "other", run: () => "other" })],
      observer: { refused: (event) => refused.push(event), limit: (event) => reached.push(event) },
    });
    const calls = [1, 2, 3].map(() => started(client.callTool("work")));
    await until(() => running === 2 && reached.length === 1, "two calls run and a third call waits");
    // One client can use a quarter of the queue.
    const { code, message } = await fails(() => client.callTool("work"));
    assertEquals(code, -31503);
    assertStringIncludes(message, "(handler.concurrency)");
    assertEquals(textOf(await client.callTool("other")), "other");
    open();
    for (const call of calls) assertEquals(textOf(await call), "done");
    assertEquals(most, 2);
    assertEquals(textOf(await client.callTool("work")), "done");
    const status = way.transport !== "pipe" ? way.era === "modern" ? 503 : 429 : undefined;
    assertEquals(refused.map(({ reason, limit, status }) => ({ reason, limit, status })), [
      { reason: "limit", limit: "handler.concurrency", status },
    ]);
    assertEquals(reached[0].handler, 'tool "work"');
  },
  { perInstance: "limits" },
);

behaviour("the time in a handler's queue does not count towards the handler's timeout", async (connect) => {
  const clock = fakeClock();
  const work = tool({
    name: "work",
    use: [quota({ concurrency: 1, timeoutMs: 600 })],
    run: () => clock.advance(200).then(() => "done"),
  });
  const { client } = await connect({ clock, handlers: [work] });
  const results = await Promise.all([1, 2, 3, 4, 5].map(() => client.callTool("work")));
  assertEquals(results.map(textOf), Array(5).fill("done"));
}, { perInstance: "limits" });

behaviour("a call in a handler's queue can be cancelled", async (connect) => {
  const { pass, open } = gate();
  const runs: number[] = [];
  const work = tool({
    name: "work",
    use: [quota({ concurrency: 1 })],
    input: z.object({ n: z.number() }),
    async run({ n }) {
      runs.push(n);
      await pass;
      return "done";
    },
  });
  const reached: LimitEvent[] = [];
  const calls: CallEvent[] = [];
  const { client } = await connect({
    handlers: [work],
    observer: { limit: (event) => reached.push(event), call: (event) => calls.push(event) },
  });
  const cancel = new AbortController();
  const first = started(client.callTool("work", { n: 1 }));
  await until(() => runs.length === 1, "the first call runs");
  const second = started(client.callTool("work", { n: 2 }, { signal: cancel.signal }));
  const third = started(client.callTool("work", { n: 3 }));
  await until(() => reached.length === 2, "two calls wait");
  cancel.abort();
  await assertRejects(() => second);
  await until(() => calls.some(({ outcome }) => outcome === "cancelled"), "the server cancels the call");
  open();
  assertEquals(textOf(await first), "done");
  assertEquals(textOf(await third), "done");
  assertEquals(runs, [1, 3]);
}, { perInstance: "limits" });

behaviour("a handler that ignores its cancellation holds its slot until it ends", async (connect) => {
  const { pass, open } = gate();
  let running = 0;
  let most = 0;
  const work = tool({
    name: "work",
    use: [quota({ concurrency: 1 })],
    async run() {
      most = Math.max(most, ++running);
      await pass;
      running--;
      return "done";
    },
  });
  const reached: LimitEvent[] = [];
  const { client } = await connect({ handlers: [work], observer: { limit: (event) => reached.push(event) } });
  const cancel = new AbortController();
  const first = started(client.callTool("work", {}, { signal: cancel.signal }));
  await until(() => running === 1, "the first call runs");
  cancel.abort();
  await assertRejects(() => first);
  const second = started(client.callTool("work"));
  await until(() => reached.length === 1 || most > 1, "the second call waits");
  open();
  assertEquals(textOf(await second), "done");
  assertEquals(most, 1);
}, { perInstance: "limits" });

behaviour("a handler holds its slot until an inner handler that ignores its cancellation ends", async (connect) => {
  let running = 0;
  let most = 0;
  let ended = 0;
  let gates = [gate()];
  const work = tool({
    name: "work",
    async run() {
      const { pass } = gates[0];
      most = Math.max(most, ++running);
      await pass;
      running--;
      return "done";
    },
  });
  const limits = quota({ concurrency: 100 });
  const nested = tool({
    name: "nested",
    use: [limits],
    run: async (_input, ctx) => textOf(await ctx.callTool(work, {})),
  });
  const outers = [work, nested].map((inner, at) =>
    tool({
      name: `outer_${at}`,
      use: [quota({ concurrency: 1 })],
      run: async (_input, ctx) => textOf(await ctx.callTool(inner, {}).finally(() => ended++)),
    })
  );
  const reached: LimitEvent[] = [];
  const { client } = await connect({
    handlers: [work, nested, ...outers],
    observer: { limit: (event) => reached.push(event) },
  });
  for (const { name } of outers) {
    reached.length = most = ended = 0;
    gates = [gate()];
    const cancel = new AbortController();
    const first = started(client.callTool(name, {}, { signal: cancel.signal }));
    await until(() => running === 1, "the first call runs");
    cancel.abort();
    await assertRejects(() => first);
    await until(() => ended === 1, "the outer handler ends");
    await turn(3);
    const second = started(client.callTool(name));
    await until(() => reached.length === 1 || most > 1, "the second call waits");
    gates[0].open();
    assertEquals(textOf(await second), "done");
    assertEquals(most, 1);
  }
}, { perInstance: "limits" });

behaviour("a client can call a handler up to its rate limit", async (connect, way) => {
  const refused: RefusedEvent[] = [];
  const reached: LimitEvent[] = [];
  const seen: string[] = [];
  const polite = quota({ rate: { calls: 2, perMs: 60_000 } });
  const handlers = [
    tool({ name: "t", use: [polite], run: () => "t" }),
    resource({ uri: "x://r", name: "r", use: [polite], read: () => "r" }),
    prompt({
      name: "p",
      input: z.object({ a: z.string() }),
      complete: { a: () => ["a"] },
      use: [polite],
      run: () => "p",
    }),
  ];
  const { client, join } = await connect({
    handlers,
    use: [async ({ method }, next) => {
      seen.push(method);
      return await next();
    }],
    observer: { refused: (event) => refused.push(event), limit: (event) => reached.push(event) },
  });
  assertEquals(textOf(await client.callTool("t")), "t");
  await client.readResource("x://r");
  seen.length = 0;
  const complete = () => client.complete({ type: "ref/prompt", name: "p" }, { name: "a", value: "" });
  // Completion requests have a separate rate limit, because clients send one for each typed character.
  await complete();
  await complete();
  const errors = [
    await fails(() => client.callTool("t")),
    await fails(() => client.readResource("x://r")),
    await fails(() => client.getPrompt("p", { a: "" })),
    await fails(complete),
  ];
  for (const { code, message, data } of errors) {
    assertEquals(code, -31429);
    assertStringIncludes(message, "(handler.rate)");
    const { retryAfterMs } = Object(data);
    assert(retryAfterMs > 0 && retryAfterMs <= 30_000, `${retryAfterMs}`);
  }
  assertEquals(seen, ["completion/complete", "completion/complete"], "middleware ran for a refused call");
  const isHttp = way.transport !== "pipe";
  assertEquals(
    refused.map(({ status, reason, limit }) => [status, reason, limit]),
    Array(4).fill([isHttp ? 429 : undefined, "limit", "handler.rate"]),
  );
  assertEquals(reached.map(({ limit, handler }) => [limit, handler]), [
    ["handler.rate", 'tool "t"'],
    ["handler.rate", 'resource "x://r"'],
    ["handler.rate", 'prompt "p"'],
    ["handler.rate", 'prompt "p"'],
  ]);
  if (way.transport === "http") {
    assert(client.transcript.some((line) => /^← 429/.test(line)), client.transcript.join("\n"));
  }
  // Each principal has a separate rate limit.
  if (way.transport !== "pipe") {
    const ada = await join({ principal: { id: "ada" } });
    assertEquals(textOf(await ada.callTool("t")), "t");
  }
}, { perInstance: "limits" });

behaviour("a result that is too large is refused with a message for the model", async (connect) => {
  const small = quota({ resultBytes: 2000 });
  const { client } = await connect({
    handlers: [
      tool({ name: "t", use: [small], input: z.object({ n: z.number() }), run: ({ n }) => "x".repeat(n) }),
      resource({ uri: "x://r", name: "r", use: [small], read: () => "x".repeat(5000) }),
      prompt({ name: "p", use: [small], run: () => "x".repeat(5000) }),
    ],
  });
  assertEquals(textOf(await client.callTool("t", { n: 1000 })).length, 1000);
  const { isError, content } = await client.callTool("t", { n: 5000 });
  assert(isError);
  assertStringIncludes(
    textOf({ content }),
    sentence(2000, "handler.resultBytes"),
  );
  for (const run of [() => client.readResource("x://r"), () => client.getPrompt("p")]) {
    assertEquals((await fails(run)).message, sentence("handler.resultBytes", 2000));
  }
});

behaviour("a result that is too large is truncated, with a note", async (connect) => {
  const small = quota({ resultBytes: 2000, onLarge: "cut" });
  const long = "äöü\n😀".repeat(2000);
  const { client } = await connect({
    handlers: [
      tool({ name: "t", use: [small], run: () => long }),
      tool({ name: "o", use: [small], run: () => ({ a: long }) }),
      resource({ uri: "x://r", name: "r", use: [small], read: () => long }),
      prompt({ name: "p", use: [small], run: () => long }),
    ],
  });
  const check = (text: string, note: string) => {
    assert(text.length > 100 && long.startsWith(text), text);
    assert(!/[\ud800-\udbff]$/.test(text), "a surrogate pair was split");
    assertEquals(note, sentence(2000));
  };
  const { content: [first, note] } = await client.callTool("t");
  check(textOf({ content: [first] }), textOf({ content: [note] }));
  const object = await client.callTool("o");
  assertEquals(object.structuredContent, undefined);
  assertEquals(textOf({ content: [object.content.at(-1)] }), sentence(2000));
  const { contents } = await client.readResource("x://r");
  check(String(Object(contents[0]).text), String(Object(contents[1]).text));
  const { messages } = await client.getPrompt("p");
  check(textOf({ content: [messages[0].content] }), textOf({ content: [messages[1].content] }));
});

behaviour(
  "a result that is too large is replaced by a resource link, and only its caller can read the pages behind the link",
  async (connect, way) => {
    const lines = Array.from({ length: 1000 }, (_, i) => `line ${i} äöü`).join("\n");
    const all = tool({ name: "all", use: [quota({ resultBytes: 4000, onLarge: "link" })], run: () => lines });
    const { client, join } = await connect({ handlers: [all] });
    const { content } = await client.callTool("all");
    assertStringIncludes(textOf({ content }), sentence("result://all/"));
    const link = Object(content[1]);
    assertEquals(link.type, "resource_link");
    let text = "";
    let pages = 0;
    for (let uri: string | undefined = link.uri; uri;) {
      const { contents }: { contents: readonly unknown[] } = await client.readResource(uri);
      const [page, next] = contents.map(Object);
      assertEquals(page.uri, uri);
      assert(JSON.stringify(contents).length < 4200, "the page is too long");
      text += page.text;
      pages++;
      uri = next?.uri;
      if (next) assertStringIncludes(next.text, sentence(next.uri));
    }
    assertEquals(text, lines);
    assertEquals(Object(content[1]).name, sentence(1, pages));
    assertEquals(await client.listResources(), []);
    assertEquals(await client.listResourceTemplates(), []);
    for (const uri of [`${link.uri}9`, "result://all/x/1"]) {
      assertStringIncludes((await fails(() => client.readResource(uri))).message, sentence());
    }
    if (way.transport === "pipe") return;
    const ada = await join({ principal: { id: "ada" } });
    assertStringIncludes((await fails(() => ada.readResource(link.uri))).message, sentence());
  },
);

behaviour("a handler and the resource that it reads occupy one slot together if they share limits", async (connect) => {
  const one = quota({ concurrency: { calls: 1, waiting: 0 }, timeoutMs: 2000 });
  const read = tool({
    name: "read",
    use: [one],
    async run(_, ctx) {
      const texts = await Promise.all(["x://a", "x://b"].map((uri) => ctx.readResource(uri)));
      return texts.flat().map(({ text }) => text).join();
    },
  });
  const { pass, open } = gate();
  let isHeld = true;
  let running = 0;
  const { client } = await connect({
    handlers: [
      read,
      resource({ uri: "x://a", name: "a", use: [one], read: async (_, ctx) => await ctx.readResource("x://c") }),
      resource({ uri: "x://b", name: "b", use: [one], read: () => (running++, isHeld ? pass.then(() => "b") : "b") }),
      resource({ uri: "x://c", name: "c", use: [one], read: () => "c" }),
    ],
  });
  const first = started(client.callTool("read"));
  await until(() => running === 1, "the resource is being read");
  // The outer handler occupies the slot until it ends.
  assertEquals((await fails(() => client.readResource("x://c"))).code, -31503);
  open();
  isHeld = false;
  assertEquals(textOf(await first), "c,b");
  for (let i = 0; i < 2; i++) assertEquals(textOf(await client.callTool("read")), "c,b");
  assertEquals(await client.readResource("x://b").then(({ contents }) => Object(contents[0]).text), "b");
}, { perInstance: "limits" });

behaviour("the time in a handler's queue counts as waiting time of the call", async (connect) => {
  const calls: CallEvent[] = [];
  const reached: LimitEvent[] = [];
  const clock = fakeClock();
  const { pass, open } = gate();
  const work = tool({
    name: "work",
    use: [quota({ concurrency: 1 })],
    run: async () => {
      await pass;
      await clock.advance(150);
      return "done";
    },
  });
  const { client } = await connect({
    clock,
    handlers: [work],
    observer: { call: (event) => calls.push(event), limit: (event) => reached.push(event) },
  });
  const cancel = new AbortController();
  const all = [1, 2].map(() => started(client.callTool("work")));
  const third = started(client.callTool("work", {}, { signal: cancel.signal }));
  await until(() => reached.length === 2, "two calls wait");
  await clock.advance(120);
  cancel.abort();
  await assertRejects(() => third);
  const ended = () => calls.filter(({ method }) => method === "tools/call");
  await until(() => ended().length === 1, "the cancelled call has ended");
  open();
  await Promise.all(all);
  await until(() => ended().length === 3, "all calls have ended");
  const [cancelled, first, second] = ended();
  assertEquals([cancelled, first, second].map(({ outcome }) => outcome), ["cancelled", "result", "result"]);
  const times = [cancelled, first, second].map(({ waitedMs, durationMs }) => [waitedMs, durationMs]);
  assertEquals(times, [[120, 120], [0, 270], [270, 420]]);
}, { perInstance: "limits" });

behaviour(
  "a completer has the concurrency limit of its handler, and its calls are counted separately",
  async (connect) => {
    const { pass, open } = gate();
    let running = 0;
    let most = 0;
    const complete = async () => {
      most = Math.max(most, ++running);
      await pass;
      running--;
      return ["a"];
    };
    const reached: LimitEvent[] = [];
    const { client } = await connect({
      observer: { limit: (event) => reached.push(event) },
      handlers: [
        prompt({
          name: "p",
          input: z.object({ a: z.string() }),
          use: [quota({ concurrency: { calls: 1, waiting: 4 } })],
          complete: { a: complete },
          run: () => "p",
        }),
        resource({
          uri: "x://{a}",
          name: "r",
          use: [quota({ concurrency: { calls: 1, waiting: 0 } })],
          complete: { a: complete },
          read: () => "r",
        }),
      ],
    });
    const ofPrompt = () => client.complete({ type: "ref/prompt", name: "p" }, { name: "a", value: "" });
    const ofTemplate = () => client.complete({ type: "ref/resource", uri: "x://{a}" }, { name: "a", value: "" });
    const calls = [started(ofPrompt())];
    await until(() => running === 1, "the completer runs");
    calls.push(started(ofPrompt()));
    await until(() => reached.length === 1 || most > 1, "the second call waits");
    assertEquals(most, 1);
    assertEquals((await fails(ofPrompt)).code, -31503);
    assertEquals((await client.getPrompt("p", { a: "" })).messages.length, 1);
    calls.push(started(ofTemplate()));
    await until(() => running === 2, "the completer of the template runs");
    assertEquals((await fails(ofTemplate)).code, -31503);
    open();
    assertEquals((await Promise.all(calls)).map(({ values }) => values), [["a"], ["a"], ["a"]]);
  },
  { perInstance: "limits" },
);
