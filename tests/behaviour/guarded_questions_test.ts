// Output guards process the questions that a client gets, wherever they come from.
import { assert, assertEquals } from "@std/assert";
import { z } from "zod";
import { createServer, group, McpError, type Middleware, resource, service, tool, ToolError } from "../../mod.ts";
import { confirm, guard, idempotent, type OutputGuard, quota } from "../../src/layers/layers.ts";
import { connect as connectTo } from "../../src/client/client.ts";
import type { AskedEvent } from "../../src/observe/observe.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { behaviour, plainTool, textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { asking } from "../tasks/declared.ts";

const PIN = "pin-4711";
const empty = z.object({});

/** Replaces the secret in all texts of a value. */
function hide(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value ?? null).replaceAll(PIN, "****"));
}

/** Changes only questions. */
function onQuestions(change: (params: Record<string, unknown>) => unknown): OutputGuard {
  return (value, _ctx, part) => part === "question" ? change(Object(value)) : undefined;
}

/** Options of a client that records all questions, and accepts them. */
function record() {
  const asked: unknown[] = [];
  const note = (request: unknown) => void asked.push(request);
  return {
    asked,
    options: {
      onElicit: (request: unknown) => (note(request), { action: "accept", content: { pick: "x" } } as const),
      onElicitUrl: (request: unknown) => (note(request), { action: "accept" } as const),
      onSample: (request: unknown) => {
        note(request);
        return { role: "assistant", content: { type: "text", text: "sampled" }, model: "m" } as const;
      },
      roots: [{ uri: "file:///a" }],
    },
  };
}

behaviour("the guards of the handler and then of the server change questions of every kind", async (connect) => {
  const parts: string[] = [];
  const pick = z.object({ pick: z.string().describe(`not ${PIN}`).default(PIN) });
  const all = tool({
    name: "all",
    use: [guard({
      output: [onQuestions((params) => ({ ...params, ...params.message ? { message: `${params.message}!` } : {} }))],
    })],
    run: async (_input, ctx) => {
      const form = ctx.elicit("form", { message: `Use ${PIN}?`, schema: pick });
      const page = ctx.elicitUrl("page", { message: `See ${PIN}`, url: `https://a.example/${PIN}` });
      const said = ctx.sample("said", {
        systemPrompt: `You know ${PIN}`,
        messages: [{ role: "user", content: { type: "text", text: `Repeat ${PIN}` } }],
        maxTokens: 9,
      });
      const answers = await Promise.all([form, page, said, ctx.roots()]);
      return answers.map((answer) => JSON.stringify(answer).length > 2).join();
    },
  });
  const guards: { output: OutputGuard[] } = {
    output: [(value, _ctx, part) => {
      parts.push(part);
      return hide(value);
    }],
  };
  const { asked, options } = record();
  const { client } = await connect({ handlers: [all], use: [guard(guards)] }, options);
  assertEquals(textOf(await client.callTool("all")), "true,true,true,true");
  const text = JSON.stringify(asked);
  assertEquals([asked.length, text.includes(PIN), text.split("****").length], [3, false, 8], text);
  assert(text.includes("Use ****?!") && text.includes("https://a.example/****") && text.includes("See ****!"), text);
  assertEquals(new Set(parts), new Set(["question", "result"]));
});

behaviour(
  "guards change the questions of confirmations, services, middleware, resources and forwarded requests",
  async (connect) => {
    await using upstream = createServer({
      name: "upstream",
      version: "1.0.0",
      handlers: [
        plainTool("ask", async (ctx) => (await ctx.elicit("up", { message: `Upstream ${PIN}`, schema: empty })).action),
      ],
    });
    await using far = await connectTo(upstream, { era: "modern", capabilities: { elicitation: { form: {} } } });
    const made = service("made", async ({ ctx }) => {
      return (await ctx.elicit("made", { message: `Service ${PIN}`, schema: empty })).action;
    }, { per: "call" });
    const page = resource({
      uri: "page://1",
      name: "page",
      read: async (_uri, ctx) => (await ctx.elicit("page", { message: `Resource ${PIN}`, schema: empty })).action,
    });
    const ask = (name: string): Middleware => async (call, next) => {
      await call.elicit(name, { message: `${name} ${PIN}`, schema: empty });
      return await next();
    };
    const handlers = [
      page,
      tool({ name: "confirmed", use: [confirm(`Confirm ${PIN}`)], run: () => "accept" }),
      tool({ name: "served", services: { made }, run: (_input, { services }) => services.made }),
      tool({ name: "around", use: [ask("Middleware")], run: () => "accept" }),
      group("group", [tool({ name: "grouped", run: () => "accept" })], { use: [ask("Group")] }),
      plainTool("reads", async (ctx) => String(Object((await ctx.readResource("page://1"))[0]).text)),
      plainTool(
        "forwards",
        (ctx) =>
          ctx.forward((retry, how) => far.request("tools/call", { name: "ask", ...retry }, how), { key: "far ask" }),
      ),
    ];
    const { asked, options } = record();
    const { client } = await connect({ handlers, use: [guard({ output: [hide] })] }, options);
    for (const name of ["confirmed", "served", "around", "group_grouped", "reads", "forwards"]) {
      assertEquals(textOf(await client.callTool(name)), "accept", name);
    }
    await client.readResource("page://1");
    const messages = asked.map((request) => Object(request).message);
    assertEquals(messages, [
      "Confirm ****",
      "Service ****",
      "Middleware ****",
      "Group ****",
      "Resource ****",
      "Upstream ****",
      "Resource ****",
    ]);
  },
);

behaviour("a call fails if a guard refuses its question, even if the handler catches the error", async (connect) => {
  let error: () => Error = () => new ToolError("The question has a secret.");
  const refuse = onQuestions(({ message }) => {
    if (String(message).includes(PIN)) throw error();
  });
  const handlers = [
    plainTool("catches", async (ctx) => {
      const asked = ctx.elicit("a", { message: PIN, schema: empty });
      return await asked.then(() => "answered", () => "caught");
    }),
    tool({ name: "confirms", use: [confirm(`Delete ${PIN}?`)], run: () => "deleted" }),
    tool({
      name: "keyed",
      use: [idempotent(() => "k")],
      run: async (_input, ctx) =>
        await ctx.elicit("a", { message: PIN, schema: empty }).then(() => "ok", () => "caught"),
    }),
  ];
  const { asked, options } = record();
  const { client, takeFaults } = await connect({ handlers, use: [guard({ output: [refuse] })] }, options);
  for (const name of ["catches", "confirms"]) {
    const result = await client.callTool(name);
    assertEquals([result.isError, textOf(result)], [true, "The question has a secret."], name);
  }
  error = () => new McpError(-31_777, "Not allowed");
  for (const name of ["catches", "confirms"]) {
    assertEquals(
      await client.callTool(name).catch(({ code, message }) => [code, message]),
      [-31_777, "Not allowed"],
      name,
    );
  }
  error = () => new RangeError("the guard is broken");
  assertEquals((await client.callTool("catches")).isError, true);
  assertEquals(takeFaults().map(({ error }) => String(error)), ["RangeError: the guard is broken"]);
  assertEquals(asked, []);
});

behaviour("an idempotency key keeps no result of a call whose question was refused", async (connect, { era }) => {
  if (era === "modern") return;
  let isStrict = true;
  let runs = 0;
  const refuse = onQuestions(() => {
    if (isStrict) throw new ToolError("refused");
  });
  const keyed = tool({
    name: "keyed",
    use: [idempotent(() => "k")],
    run: async (_input, ctx) => {
      runs++;
      return await ctx.elicit("a", { message: "a", schema: empty }).then(({ action }) => action, () => "caught");
    },
  });
  const { client } = await connect({ handlers: [keyed], use: [guard({ output: [refuse] })] }, record().options);
  assertEquals(textOf(await client.callTool("keyed")), "refused");
  isStrict = false;
  assertEquals([textOf(await client.callTool("keyed")), runs], ["accept", 2]);
});

behaviour("a call fails if a guard returns something else than the params of the question", async (connect) => {
  let change: (params: Record<string, unknown>) => unknown = () => undefined;
  const ask = tool({
    name: "ask",
    input: z.object({ kind: z.enum(["form", "page", "sample"]) }),
    use: [guard({ output: [onQuestions((params) => change(params))] })],
    run: async ({ kind }, ctx) => {
      if (kind === "form") await ctx.elicit("a", { message: "a", schema: empty });
      else if (kind === "page") await ctx.elicitUrl("a", { message: "a", url: "https://a.example" });
      else await ctx.sample("a", { messages: [], maxTokens: 1, systemPrompt: "a" });
      return "answered";
    },
  });
  const { asked, options } = record();
  const { client, takeFaults } = await connect({ handlers: [ask] }, options);
  const cases: [string, (params: Record<string, unknown>) => unknown][] = [
    ["form", () => null],
    ["form", () => "masked"],
    ["form", () => []],
    ["form", () => false],
    ["form", ({ message: _, ...rest }) => rest],
    ["form", (params) => ({ ...params, message: 7 })],
    ["form", (params) => ({ ...params, requestedSchema: "object" })],
    ["form", (params) => ({ ...params, mode: "url", url: "https://b.example" })],
    ["page", (params) => ({ ...params, url: "javascript:alert(1)" })],
    ["page", (params) => ({ ...params, url: "https://a.example/ b" })],
    ["page", (params) => ({ ...params, mode: "form" })],
    ["sample", (params) => ({ ...params, tools: [] })],
    ["sample", (params) => ({ ...params, messages: {} })],
    ["sample", (params) => ({ ...params, maxTokens: "1" })],
  ];
  for (const [kind, of] of cases) {
    change = of;
    assertEquals((await client.callTool("ask", { kind })).isError, true, `${kind} ${of}`);
    assertEquals(
      takeFaults().map(({ error }) => String(error)),
      [sentence("TypeError", "Cannot ask the client")],
      `${of}`,
    );
  }
  assertEquals(asked, []);
  // A guard may remove what a question does not need, and change its copy.
  change = ({ systemPrompt: _, ...rest }) => rest;
  assertEquals(textOf(await client.callTool("ask", { kind: "sample" })), "answered");
  change = (params) => void (params.message = "changed");
  assertEquals(textOf(await client.callTool("ask", { kind: "form" })), "answered");
  assertEquals(asked.map((request) => Object.keys(Object(request)).includes("systemPrompt")), [false, false]);
  assertEquals(Object(asked[1]).message, "changed");
});

behaviour("an answer counts only for the text that the guard has sent", async (connect, { era }) => {
  const texts = ["first", "second", "second", "second"];
  const { asked, options } = record();
  const ask = tool({
    name: "ask",
    use: [guard({ output: [onQuestions((params) => ({ ...params, message: texts.shift() }))] })],
    run: async (_input, ctx) => (await ctx.elicit("a", { message: "a", schema: empty })).action,
  });
  const { client } = await connect({ handlers: [ask] }, options);
  assertEquals(textOf(await client.callTool("ask")), "accept");
  const messages = asked.map((request) => Object(request).message);
  assertEquals(messages, era === "modern" ? ["first", "second"] : ["first"]);
});

behaviour("questions that are asked together are sent together, also with a slow guard", async (connect, { era }) => {
  let runs = 0;
  const { asked, options } = record();
  const slow: OutputGuard = async (value, ctx, part) => {
    if (part !== "question") return;
    // The second question is slower than the first.
    if (Object(value).message === `b ${PIN}`) { for (let turn = 0; turn < 50; turn++) await ctx.signal.aborted; }
    return hide(value);
  };
  const ask = plainTool("ask", async (ctx) => {
    runs++;
    const both = ["a", "b"].map((key) => ctx.elicit(key, { message: `${key} ${PIN}`, schema: empty }));
    return (await Promise.all(both)).map(({ action }) => action).join();
  });
  const events: AskedEvent[] = [];
  const { client } = await connect({
    handlers: [ask],
    use: [guard({ output: [slow] })],
    observer: { asked: (event) => void events.push(event) },
  }, options);
  assertEquals(textOf(await client.callTool("ask")), "accept,accept");
  assertEquals(asked.map((request) => Object(request).message).sort(), ["a ****", "b ****"]);
  assertEquals(runs, era === "modern" ? 2 : 1);
  assertEquals([events.length > 0, JSON.stringify(events).includes(PIN)], [true, false]);
});

behaviour("the time of a guard counts towards the timeout of the call", async (connect) => {
  const clock = fakeClock();
  let guarded = 0;
  const ask = tool({
    name: "ask",
    use: [
      quota({ timeoutMs: 1000 }),
      guard({
        output: [onQuestions(() => {
          guarded++;
          return new Promise(() => {});
        })],
      }),
    ],
    run: async (_input, ctx) => (await ctx.elicit("a", { message: "a", schema: empty })).action,
  });
  const { client } = await connect({ clock, handlers: [ask] }, record().options);
  const calling = client.callTool("ask").catch((error) => String(error));
  await until(() => guarded === 1, "the guard runs");
  await clock.advance(1000);
  assertEquals(String(await calling), sentence("McpError", 1000, "handler.timeoutMs"));
}, { perInstance: "limits" });

behaviour("a task shows its questions as the guards have changed them", async (connect) => {
  const ask = tool({
    name: "ask",
    use: [task()],
    run: async (_input, ctx) => (await ctx.elicit("a", { message: `Task ${PIN}`, schema: empty })).action,
  });
  const { client } = await connect({ handlers: [tasks(), ask], use: [guard({ output: [hide] })] }, asking);
  const { taskId } = await client.request("tools/call", { name: "ask", arguments: {} }, { finish: false });
  let state: Record<string, unknown> = {};
  const reach = (status: string) =>
    until(async () => (state = await client.request("tasks/get", { taskId })).status === status, status);
  await reach("input_required");
  assertEquals(Object(Object(state.inputRequests).a).params.message, "Task ****");
  await client.request("tasks/update", { taskId, inputResponses: { a: { action: "accept", content: {} } } });
  await reach("completed");
  assertEquals(textOf(Object(state).result), "accept");
}, { eras: ["modern"] });
