// Questions that a handler does not await. The server reports them, because their answers are lost: in development with a
// warning, and otherwise to the observer.
import { assertEquals } from "@std/assert";
import { z } from "zod";
import { type Context, createServer, extension, prompt, resource, service, tool, ToolError } from "../../mod.ts";
import { guard } from "../../src/layers/layers.ts";
import { connect } from "../../src/client/client.ts";
import { taskClient } from "../../src/extensions/tasks/client/tasks.ts";
import { type Connection, connectTest, fakeClock } from "../../src/testing/testing.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import type { FaultEvent } from "../../src/observe/observe.ts";
import { behaviour, gate, plainTool, until } from "../support/behaviour.ts";
import { collectWarnings } from "../support/warnings.ts";
import { sentence } from "../support/messages.ts";

const schema = z.object({ ok: z.boolean() });
const ask = (ctx: Pick<Context, "elicit">, key = "sure") => ctx.elicit(key, { message: "?", schema });
const client = {
  onElicit: () => ({ action: "accept", content: { ok: true } }) as const,
  onElicitUrl: () => ({ action: "accept" }) as const,
  onSample: () => ({ role: "assistant", content: { type: "text", text: "Ha" }, model: "m" }) as const,
  roots: () => [],
  logLevel: "debug",
} as const;

const asker = service("asker", () => ({
  forget: (ctx: Pick<Context, "elicit">) => void ask(ctx),
  wait: async (ctx: Pick<Context, "elicit">) => (await ask(ctx)).action,
}));

const wrapping = extension({ id: "com.example/wrapping" });

const forgetting = [
  plainTool("void", (ctx) => {
    void ask(ctx);
    return "done";
  }),
  plainTool("later", async (ctx) => {
    await undefined;
    ask(ctx);
    return "done";
  }),
  plainTool("url", ({ elicitUrl }) => void elicitUrl("page", { message: "Pay", url: "https://example.com/pay" })),
  tool({ name: "sample", run: (_input, ctx) => void ctx.sample("joke", { messages: [], maxTokens: 1 }) }),
  tool({ name: "roots", run: (_input, ctx) => void ctx.roots() }),
  plainTool("second", async (ctx) => {
    const { action } = await ask(ctx, "first");
    void ask(ctx, "second");
    return action;
  }),
  tool({ name: "service", services: { asker }, run: (_input, ctx) => ctx.services.asker.forget(ctx) }),
  tool({
    name: "wrapped",
    use: [wrapping.layer({ around: (_call, next) => next() })],
    run: (_input, ctx) => void ask(ctx),
  }),
  tool({ name: "guarded", use: [guard({ output: [(value) => value] })], run: (_input, ctx) => void ask(ctx) }),
  prompt({
    name: "prompt",
    run(_input, ctx) {
      void ask(ctx);
      return "done";
    },
  }),
  resource({
    uri: "note://1",
    name: "note",
    read(_input, ctx) {
      void ask(ctx);
      return "done";
    },
  }),
  tool({ name: "reads", run: async (_input, ctx) => (await ctx.readResource("note://1"))[0].text }),
];

/** Calls one of the handlers listed above by its name. */
async function use(connected: Connection, name: string): Promise<void> {
  if (name === "prompt") await connected.getPrompt(name);
  else if (name === "note") await connected.readResource("note://1");
  else await connected.callTool(name);
}

behaviour("a question that is not awaited is reported once, with its handler and its key", async (join) => {
  const { client: connected } = await join({ handlers: [wrapping, ...forgetting], clock: fakeClock() }, client);
  const sources: Readonly<Record<string, string>> = {
    url: 'ctx.elicitUrl("page")',
    sample: 'ctx.sample("joke")',
    roots: "ctx.roots()",
    second: 'ctx.elicit("second")',
  };
  for (const { name } of forgetting) {
    const warnings = await collectWarnings(async () => void [await use(connected, name), await use(connected, name)]);
    const places: Readonly<Record<string, string>> = {
      prompt: 'prompts/get "prompt"',
      note: 'resources/read "note://1"',
    };
    const { [name]: source = 'ctx.elicit("sure")' } = sources;
    const { [name]: place = `tools/call "${name}"` } = places;
    // The resource was already reported in an earlier iteration.
    assertEquals(warnings, name === "reads" ? [] : [sentence(source, place)], name);
  }
}, { perInstance: "observer" });

behaviour("a resource that a handler reads is reported like a resource that a client reads", async (join) => {
  const { client: connected } = await join({ handlers: [wrapping, ...forgetting], clock: fakeClock() }, client);
  const warnings = await collectWarnings(() => connected.callTool("reads"));
  assertEquals(warnings, [sentence('ctx.elicit("sure")', 'resources/read "note://1"')]);
}, { perInstance: "observer" });

const awaiting = [
  tool({ name: "returned", run: (_input, ctx) => ask(ctx).then(({ action }) => action) }),
  tool({ name: "passed_on", run: (_input, ctx) => ask(ctx) }),
  tool({ name: "async", run: async (_input, ctx) => await ask(ctx) }),
  tool({ name: "all", run: (_input, ctx) => Promise.all([ask(ctx, "a"), ask(ctx, "b")]) }),
  plainTool("settled", async (ctx) => (await Promise.allSettled([ask(ctx, "a"), ask(ctx, "b")])).length),
  plainTool("one_by_one", async (ctx) => {
    const [a, b] = [ask(ctx, "a"), ask(ctx, "b")];
    return [(await a).action, (await b).action];
  }),
  plainTool("handled", (ctx) => {
    // The `catch` shows that the handler ignores the answer on purpose.
    ask(ctx).catch(() => {});
    return "done";
  }),
  plainTool("unwinds", async (ctx) => {
    const answer = ask(ctx, "a");
    if (!(await ask(ctx, "b")).content) throw new ToolError("declined");
    return (await answer).action;
  }),
  plainTool("fails", async (ctx) => {
    const answer = ask(ctx);
    if (ctx.method) throw new ToolError("before the await");
    return await answer;
  }),
  plainTool("catches", async (ctx) => {
    const answer = ask(ctx, "a");
    try {
      await ask(ctx, "b");
    } catch {
      return "undecided";
    }
    return (await answer).action;
  }),
  tool({ name: "service", services: { asker }, run: (_input, ctx) => ctx.services.asker.wait(ctx) }),
];

behaviour("a question that a handler awaits is not reported", async (join) => {
  const { client: connected } = await join({ handlers: awaiting, clock: fakeClock() }, client);
  for (const { name } of awaiting) {
    assertEquals(await collectWarnings(() => use(connected, name)), [], name);
  }
}, { perInstance: "observer" });

behaviour("a call that is cancelled before it awaits a question is not reported", async (join) => {
  const { pass, open } = gate();
  let hasAsked = false;
  const slow = plainTool("slow", async (ctx) => {
    const answer = ask(ctx);
    hasAsked = true;
    await pass;
    return (await answer).action;
  });
  const { client: connected } = await join({ handlers: [slow], clock: fakeClock() }, client);
  const warnings = await collectWarnings(async () => {
    const stop = new AbortController();
    const call = connected.callTool("slow", {}, { signal: stop.signal }).catch(() => {});
    await until(() => hasAsked, "the question was asked");
    stop.abort();
    await call;
    open();
  });
  assertEquals(warnings, []);
}, { perInstance: "observer" });

behaviour("a handler that returns early because its call was cancelled is not reported", async (join) => {
  const { pass, open } = gate();
  let signal: AbortSignal | undefined;
  let hasEnded = false;
  const slow = plainTool("slow", async (ctx) => {
    const answer = ask(ctx);
    signal = ctx.signal;
    await pass;
    hasEnded = true;
    return ctx.signal.aborted ? "stopped" : (await answer).action;
  });
  const forgets = tool({ name: "forgets", run: (_input, ctx) => void ask(ctx) });
  const { client: connected } = await join({ handlers: [slow, forgets], clock: fakeClock() }, client);
  const warnings = await collectWarnings(async () => {
    const stop = new AbortController();
    const call = connected.callTool("slow", {}, { signal: stop.signal }).catch(() => {});
    await until(() => signal, "the question was asked");
    stop.abort();
    await call;
    await until(() => signal?.aborted, "the call is cancelled");
    open();
    await until(() => hasEnded, "the handler has ended");
    await connected.callTool("forgets");
  });
  assertEquals(warnings, [sentence('ctx.elicit("sure")', 'tools/call "forgets"')]);
}, { perInstance: "observer", transports: ["pipe"] }); // Over a pipe, the server learns of a cancellation at once.

behaviour("middleware that does not await its question is reported", async (join) => {
  const ping = tool({ name: "ping", run: () => "pong" });
  const use = [async (call: Context, next: () => Promise<Record<string, unknown>>) => {
    if (call.method === "tools/call") void ask(call);
    return await next();
  }];
  const { client: connected } = await join({ handlers: [ping], use, clock: fakeClock() }, client);
  assertEquals(await collectWarnings(() => connected.callTool("ping")), [
    sentence('ctx.elicit("sure")', 'tools/call "ping"'),
  ]);
}, { perInstance: "observer" });

Deno.test("a tool that runs as a task is reported if it does not await its question", async () => {
  const press = tool({
    name: "press",
    use: [task()],
    async run(_input, ctx) {
      await undefined;
      void ask(ctx);
      return "done";
    },
  });
  await using server = createServer({ name: "s", version: "1.0.0", handlers: [tasks(), press] });
  await using connected = await connectTest(server, { ...client, extensions: [taskClient()] });
  assertEquals(await collectWarnings(() => connected.callTool("press")), [
    sentence('ctx.elicit("sure")', 'tools/call "press"'),
  ]);
});

behaviour("outside of development, the observer gets an error for each question that is not awaited", async (join) => {
  const handlers = [...forgetting, ...awaiting.filter(({ name }) => name !== "service")];
  const { client: connected, takeFaults } = await join(
    { handlers: [wrapping, ...handlers], development: false },
    client,
  );
  const warnings = await collectWarnings(async () => {
    for (const { name } of handlers) {
      for (let i = 0; i < 2; i++) await use(connected, name);
      const isForgetting = forgetting.some((each) => each.name === name) && name !== "reads";
      const faults: unknown[] = [];
      const isTold = () => faults.push(...takeFaults().map(({ error }) => error)) > 0;
      if (isForgetting) await until(isTold, `the report of ${name}`);
      else isTold();
      assertEquals(faults.map(String), isForgetting ? [sentence("ctx.")] : [], name);
    }
  });
  assertEquals(warnings, []);
}, { perInstance: "observer" });

Deno.test("the observer gets the method and the handler of a question that is not awaited", async () => {
  const faults: unknown[] = [];
  const observer = {
    fault: ({ error, method, subject }: FaultEvent) => void faults.push([method, subject, String(error)]),
  };
  await using server = createServer({ name: "s", version: "1.0.0", handlers: [wrapping, ...forgetting], observer });
  await using connected = await connect(server, client);
  await connected.callTool("void");
  await until(() => faults.length > 0, "the report");
  assertEquals(faults, [["tools/call", "void", sentence("Error: ", 'ctx.elicit("sure")', 'tools/call "void"')]]);
});
