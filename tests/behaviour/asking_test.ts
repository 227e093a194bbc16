// Requests to the client during a call. One handler serves both eras, and the server accepts an answer only for the
// question that was asked.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { z } from "zod";
import { type Context, createServer, prompt, resource, tool, ToolError } from "../../mod.ts";
import { confirm } from "../../src/layers/layers.ts";
import { connectTest as connectTo, fakeClock, fakeContext, McpError } from "../../src/testing/testing.ts";
import type { ConnectTestOptions } from "../../src/testing/testing.ts";
import { behaviour, LEGACY_VERSIONS, plainTool, raise, textOf, turn } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";

const yesNo = z.object({ ok: z.boolean() });
const accept = <C>(content: C) => ({ action: "accept", content }) as const;

/** Returns the number of requests that the client sent. */
function countCalls({ transcript }: { readonly transcript: readonly string[] }, method = "tools/call"): number {
  return transcript.filter((line) => line.startsWith("→ {") && line.includes(`"method":"${method}"`)).length;
}

behaviour("a handler elicits from the user, and gets each possible answer", async (connect) => {
  const order = plainTool("order", async (ctx) => {
    const answer = await ctx.elicit("confirm", { message: "Order?", schema: yesNo });
    return answer.action === "accept" ? `accepted ${answer.content.ok}` : answer.action;
  });
  const answers = [
    accept({ ok: true }),
    accept({ ok: false }),
    { action: "decline" } as const,
    { action: "cancel" } as const,
  ];
  const asked: unknown[] = [];
  const { client } = await connect({ handlers: [order] }, {
    onElicit(request) {
      asked.push(request);
      return answers[asked.length - 1];
    },
  });
  for (const text of ["accepted true", "accepted false", "decline", "cancel"]) {
    assertEquals(textOf(await client.callTool("order")), text);
  }
  assertEquals(asked[0], {
    message: "Order?",
    requestedSchema: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] },
  });
});

behaviour("a handler requests sampling, roots, and URL elicitation", async (connect) => {
  const all = plainTool("all", async (ctx) => {
    const said = await ctx.sample("joke", {
      messages: [{ role: "user", content: { type: "text", text: "A joke" } }],
      maxTokens: 9,
    });
    const roots = await ctx.roots();
    const { action } = await ctx.elicitUrl("pay", { message: "Pay here", url: "https://example.com/pay" });
    return { said: said.content, roots, action };
  });
  const { client } = await connect({ handlers: [all] }, {
    roots: [{ uri: "file:///home", name: "home" }],
    onElicitUrl({ mode, url }) {
      assertEquals([mode, url], ["url", "https://example.com/pay"]);
      return { action: "accept" };
    },
    onSample(request) {
      assertEquals(request, { messages: [{ role: "user", content: { type: "text", text: "A joke" } }], maxTokens: 9 });
      return { role: "assistant", content: { type: "text", text: "Knock, knock" }, model: "m" };
    },
  });
  assertEquals((await client.callTool("all")).structuredContent, {
    said: { type: "text", text: "Knock, knock" },
    roots: [{ uri: "file:///home", name: "home" }],
    action: "accept",
  });
});

/** Destructures a context, and calls each of its methods. */
async function useParts({ progress, log, once, elicit, elicitUrl, sample, roots, server, closeStream }: Context) {
  const { info } = log;
  const { resourceUpdated, listChanged } = server;
  await progress(1);
  await info("x");
  resourceUpdated("note://1");
  listChanged("tools");
  closeStream();
  const number = await once("number", () => 7);
  const { action } = await elicit("form", { message: "Form?", schema: yesNo });
  const { action: visit } = await elicitUrl("visit", { message: "Visit", url: "https://example.com/" });
  const said = await sample("joke", {
    messages: [{ role: "user", content: { type: "text", text: "?" } }],
    maxTokens: 9,
  });
  return [number, action, visit, said.model, (await roots()).length].join(" ");
}

const everything = {
  roots: [{ uri: "file:///home" }],
  onElicit: () => accept({ ok: true }),
  onElicitUrl: () => ({ action: "decline" as const }),
  onSample: () => ({ role: "assistant" as const, content: { type: "text" as const, text: "!" }, model: "m" }),
};

behaviour("every method of a context works after destructuring the context", async (connect) => {
  const parts = tool({ name: "parts", run: (_input, ctx) => useParts(ctx) });
  const { client } = await connect({ handlers: [parts] }, everything);
  assertEquals(textOf(await client.callTool("parts")), "7 accept decline m 1");
});

Deno.test("every method of a fake context works after destructuring the context", async () => {
  const [form, url] = [accept({ ok: true }), { action: "decline" }];
  const { model, role, content } = { ...everything.onSample() };
  const answers = { form, visit: url, joke: { model, role, content }, roots: { roots: everything.roots } };
  const ctx = fakeContext({ answers });
  assertEquals(await useParts(ctx), "7 accept decline m 1");
});

behaviour(
  "questions asked in parallel are sent together, and further questions are sent in further rounds",
  async (connect, { era }) => {
    let runs = 0;
    const made: string[] = [];
    const both = plainTool("both", async (ctx) => {
      runs++;
      const stamp = await ctx.once("stamp", () => {
        made.push("stamp");
        return `stamp ${made.length}`;
      });
      const [a, b] = await Promise.all([
        ctx.elicit("a", { message: "A?", schema: yesNo }),
        ctx.elicit("b", { message: "B?", schema: yesNo }),
      ]);
      const c = await ctx.elicit("c", { message: "C?", schema: yesNo });
      return [stamp, a.action, b.action, c.action].join();
    });
    const asked: unknown[] = [];
    const { client } = await connect({ handlers: [both] }, {
      onElicit({ message }) {
        asked.push(message);
        return accept({ ok: true });
      },
    });
    assertEquals(textOf(await client.callTool("both")), "stamp 1,accept,accept,accept");
    assertEquals(asked.sort(), ["A?", "B?", "C?"]);
    assertEquals([countCalls(client), runs], era === "modern" ? [3, 3] : [1, 1]);
    assertEquals(made.length, 1);
  },
);

behaviour(
  "a handler that catches every error cannot suppress a question, and its finally block runs",
  async (connect) => {
    const log: string[] = [];
    const stubborn = plainTool("stubborn", async (ctx) => {
      try {
        const { action } = await ctx.elicit("confirm", { message: "Sure?", schema: yesNo });
        return action;
      } catch {
        return "swallowed";
      } finally {
        log.push("finally");
      }
    });
    const { client } = await connect({ handlers: [stubborn] }, { onElicit: () => accept({ ok: true }) });
    assertEquals(textOf(await client.callTool("stubborn")), "accept");
    assert(log.length >= 1);
  },
);

behaviour("an answer is accepted only for a question identical to the question it answers", async (connect) => {
  let price = 10;
  const paid: number[] = [];
  const pay = plainTool("pay", async (ctx) => {
    const now = price;
    const { action } = await ctx.elicit("pay", { message: `Pay $${now}?`, schema: yesNo });
    if (action === "accept") paid.push(now);
    return action;
  });
  const asked: unknown[] = [];
  const { client } = await connect({ handlers: [pay] }, {
    onElicit({ message }) {
      asked.push(message);
      if (asked.length < 3) price++;
      return accept({ ok: true });
    },
  });
  assertEquals(textOf(await client.callTool("pay")), "accept");
  assertEquals([asked, paid], [["Pay $10?", "Pay $11?", "Pay $12?"], [12]]);
}, { eras: ["modern"] });

behaviour(
  "a key identifies one question in a run: a question asked again with the same key gets the same answer",
  async (connect) => {
    const thrown: unknown[] = [];
    const handlers = [
      plainTool("same", async (ctx) => {
        const ask = () => ctx.elicit("sure", { message: "Sure?", schema: yesNo });
        const roots = await Promise.all([ctx.roots(), ctx.roots()]);
        return [await ask(), ...await Promise.all([ask(), ask()])].map(({ content }) => content?.ok).join() +
          roots.length;
      }),
      plainTool("other", async (ctx) => {
        await ctx.elicit("sure", { message: "Sure?", schema: yesNo });
        try {
          await ctx.elicit("sure", { message: "Really?", schema: yesNo });
        } catch (error) {
          thrown.push(error);
          throw error;
        }
        return "done";
      }),
      plainTool(
        "roots",
        async (ctx) => (await ctx.roots(), (await ctx.elicit("roots", { message: "?", schema: yesNo })).action),
      ),
    ];
    const asked: unknown[] = [];
    const { client, takeFaults } = await connect({ handlers }, {
      onElicit({ message }) {
        asked.push(message);
        return accept({ ok: true });
      },
      roots() {
        asked.push("roots");
        return [];
      },
    });
    assertEquals(textOf(await client.callTool("same")), "true,true,true2");
    assertEquals(asked.splice(0), ["roots", "Sure?"]);
    for (const name of ["other", "roots"]) assertEquals((await client.callTool(name)).isError, true);
    assertEquals(asked, ["Sure?", "roots"]);
    const told = takeFaults().map(({ error }) => error);
    assertEquals(told.map((error) => Object(error).message), [sentence('"sure"'), sentence('"roots"')]);
    assertEquals(thrown, [told[0]]);
  },
);

behaviour("a form that is accepted without content has the defaults of its fields", async (connect) => {
  const schemas = {
    empty: z.object({}),
    zod: z.object({ size: z.number().default(3), note: z.string().optional() }),
    raw: {
      type: "object",
      properties: {
        size: { type: "integer", default: 3 },
        note: { type: "string" },
        ok: { type: "boolean", default: false },
      },
      required: ["size"],
    },
    required: z.object({ name: z.string() }),
  } as const;
  const handlers = Object.entries(schemas).map(([name, schema]) =>
    plainTool(name, async (ctx) => {
      const answer = await ctx.elicit("form", { message: "Fill in", schema });
      return JSON.stringify(answer.action === "accept" ? answer.content : answer.action);
    })
  );
  const confirmed = tool({ name: "confirmed", use: [confirm("Run?")], run: () => "ran" });
  for (const answer of [{ action: "accept" }, { action: "accept", content: null }]) {
    const { client } = await connect({ handlers: [...handlers, confirmed] }, { answer: () => answer });
    const texts = Object.keys({ ...schemas, confirmed }).filter((name) => name !== "required").map(async (name) => [
      name,
      textOf(await client.callTool(name)),
    ]);
    assertEquals(Object.fromEntries(await Promise.all(texts)), {
      empty: "{}",
      zod: '{"size":3}',
      raw: '{"size":3,"ok":false}',
      confirmed: "ran",
    });
    const before = countCalls(client);
    await assertRejects(() => client.callTool("required"), McpError, sentence("name"));
    // Without a session, the server repeats the question twice.
    assertEquals(countCalls(client) - before, client.era === "modern" ? 4 : 1);
  }
});

behaviour("a handler can repeat a question after an unusable answer", async (connect) => {
  const answers: unknown[] = ["no", accept({ ok: true })];
  const order = plainTool("order", async (ctx) => {
    const ask = () => ctx.elicit("sure", { message: "Sure?", schema: yesNo });
    return (await ask().catch(ask)).action;
  });
  const { client } = await connect({ handlers: [order] }, { answer: () => answers.shift() });
  assertEquals(textOf(await client.callTool("order")), "accept");
}, { eras: ["legacy"] });

behaviour("the server repeats a question after an answer of the wrong shape", async (connect) => {
  const order = plainTool(
    "order",
    async (ctx) => (await ctx.elicit("confirm", { message: "Order?", schema: yesNo })).action,
  );
  const wrong = [accept({ ok: "yes" }), { action: "accept" }, { action: "maybe" }, 12345, null, "accept"];
  const answers = [0, 2, 4].flatMap((i) => [wrong[i], wrong[i + 1], accept({ ok: true })]);
  let at = 0;
  const { client } = await connect({ handlers: [order] }, { answer: () => answers[at++] });
  for (const count of [3, 6, 9]) {
    assertEquals(textOf(await client.callTool("order")), "accept");
    assertEquals(at, count);
  }
}, { eras: ["modern"] });

behaviour(
  "the third answer of the wrong shape to one question is thrown as an error in the handler",
  async (connect) => {
    const caught: unknown[] = [];
    const order = plainTool("order", async (ctx) => {
      const first = await ctx.elicit("first", { message: "First?", schema: yesNo });
      try {
        return (await ctx.elicit("second", { message: "Second?", schema: yesNo })).action;
      } catch (error) {
        caught.push(error);
        if (first.content?.ok) throw error;
        return "fallback";
      }
    });
    for (const ok of [true, false]) {
      let asked = 0;
      const answers = [{ action: "maybe" }, accept({ ok }), 1, { action: "accept" }, accept({ ok: "no" })];
      const { client } = await connect({ handlers: [order] }, { answer: () => answers[asked++] });
      if (ok) {
        const error = await assertRejects(() => client.callTool("order"), McpError);
        assertEquals(error.code, -32602);
        assertEquals(error.message, sentence('"second"', asked - 2));
      } else assertEquals(textOf(await client.callTool("order")), "fallback");
      assertEquals(asked, 5);
    }
    // The handler's `catch` block also receives open questions, so the number of caught values is not exact.
    assert(caught.length >= 2);
  },
  { eras: ["modern"] },
);

behaviour(
  "an answer of the wrong shape, and an error response, are thrown as an error in the handler",
  async (connect) => {
    const errors: unknown[] = [];
    const order = plainTool("order", async (ctx) => {
      try {
        return (await ctx.elicit("confirm", { message: "Order?", schema: yesNo })).action;
      } catch (error) {
        errors.push([Object(error).code, Object(error).data]);
        throw new ToolError("No answer");
      }
    });
    const answers = [
      () => accept({ ok: "yes" }),
      () => ({ action: "maybe" }),
      () => raise(new McpError(-1, "The user is away", { since: 9 })),
      () => accept({ ok: true }),
    ];
    let at = 0;
    const { client } = await connect({ handlers: [order] }, { answer: () => answers[at++]() });
    for (let i = 0; i < 3; i++) assertEquals((await client.callTool("order")).isError, true);
    assertEquals(textOf(await client.callTool("order")), "accept");
    assertEquals(errors, [
      [-32602, undefined],
      [-32602, undefined],
      [-32602, { code: -1, message: "The user is away", data: { since: 9 } }],
    ]);
  },
  { eras: ["legacy"] },
);

behaviour("a client's error response to a question does not become the error of the call", async (connect) => {
  const ask = async (ctx: Context) => (await ctx.elicit("confirm", { message: "Order?", schema: yesNo })).action;
  const handlers = [
    tool({ name: "order", run: (_input, ctx) => ask(ctx) }),
    resource({ uri: "order://1", name: "order", read: (_uri, ctx) => ask(ctx) }),
    prompt({ name: "order", run: (_input, ctx) => ask(ctx) }),
  ];
  for (const code of [-32601, -32002, -32021, -32029, 404]) {
    const answer = () => {
      throw new McpError(code, "No", { uri: "other://1" });
    };
    const { client } = await connect({ handlers }, { answer });
    for (
      const call of [
        () => client.callTool("order"),
        () => client.readResource("order://1"),
        () => client.getPrompt("order"),
      ]
    ) {
      const error = await assertRejects(
        call,
        McpError,
        sentence(code),
      );
      assertEquals(error.code, -32602);
      assertEquals([undefined, 200].includes(error.status), true);
    }
  }
}, { eras: ["legacy"] });

behaviour(
  "the server sends no request for a capability that the client did not declare, and the tool runs once",
  async (connect, { era, transport }) => {
    const sampling = { messages: [], maxTokens: 1 };
    const outcomes: unknown[] = [];
    const handlers = [
      tool({ name: "form", run: async (_i, ctx) => (await ctx.elicit("x", { message: "?", schema: yesNo })).action }),
      plainTool("url", async (ctx) => (await ctx.elicitUrl("x", { message: "?", url: "https://x.example" })).action),
      tool({ name: "sample", run: async (_i, ctx) => (await ctx.sample("x", sampling)).model }),
      tool({ name: "tools", run: async (_i, ctx) => (await ctx.sample("x", { ...sampling, tools: [] })).model }),
      tool({ name: "roots", run: async (_i, ctx) => `${(await ctx.roots()).length}` }),
    ];
    const needs = {
      form: { elicitation: { form: {} } },
      url: { elicitation: { url: {} } },
      sample: { sampling: {} },
      tools: { sampling: { tools: {} } },
      roots: { roots: {} },
    };
    const refuse = async (capabilities: ConnectTestOptions["capabilities"], names: readonly (keyof typeof needs)[]) => {
      outcomes.length = 0;
      const { client } = await connect({ handlers, observer: { call: ({ outcome }) => void outcomes.push(outcome) } }, {
        capabilities,
        answer: () => assert(false, "the client was asked"),
      });
      for (const name of names) {
        if (era === "legacy") {
          const { content, isError } = await client.callTool(name);
          assertEquals([isError, content.length], [true, 1]);
          assertEquals(textOf({ content }), sentence(JSON.stringify(needs[name])));
          continue;
        }
        const error = await assertRejects(() => client.callTool(name), McpError);
        assertEquals([error.code, error.data], [-32021, { requiredCapabilities: needs[name] }], name);
        assertEquals(error.status, transport === "pipe" ? undefined : 400);
      }
      const outcome = era === "legacy" ? "tool_error" : "error";
      assertEquals(outcomes.filter((each) => each !== "result"), names.map(() => outcome));
    };
    await refuse({}, ["form", "url", "sample", "tools", "roots"]);
    await refuse({ elicitation: {}, sampling: {} }, ["url", "tools", "roots"]);
    await refuse({ elicitation: { url: {} }, roots: {} }, ["form", "sample"]);
  },
  { versions: LEGACY_VERSIONS },
);

behaviour("a prompt or a resource that asks without the capability gets an error in every era", async (
  connect,
  { era },
) => {
  const ask = async (ctx: Context) => (await ctx.elicit("x", { message: "?", schema: yesNo })).action;
  const handlers = [
    prompt({ name: "p", run: (_input, ctx) => ask(ctx) }),
    resource({ uri: "x://1", name: "r", read: (_uri, ctx) => ask(ctx) }),
  ];
  const { client } = await connect({ handlers }, { capabilities: {} });
  for (const attempt of [() => client.getPrompt("p"), () => client.readResource("x://1")]) {
    const { code, data } = await assertRejects(attempt, McpError);
    assertEquals([code, data], [era === "modern" ? -32021 : -32600, {
      requiredCapabilities: { elicitation: { form: {} } },
    }]);
  }
});

behaviour("URL elicitation accepts only http and https URLs", async (connect) => {
  let url = "";
  const visit = plainTool("visit", async (ctx) => (await ctx.elicitUrl("x", { message: "?", url })).action);
  const asked: unknown[] = [];
  const { client, takeFaults } = await connect({ handlers: [visit] }, {
    answer({ params }) {
      asked.push(params.url);
      return { action: "accept" };
    },
  });
  const bad = [
    "",
    "x",
    "/pay",
    "//pay.example/x",
    "pay.example/x",
    "https:",
    "https://",
    "https:pay.example",
    "https:/pay.example",
    "https://[::1",
    "https://pay.example:99999",
    "javascript:alert(1)",
    "JavaScript://pay.example/%0aalert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "ftp://pay.example",
    "vscode://x",
    " https://pay.example",
    "https://pay.example\n",
    "https://pay\t.example",
    "java\nscript:alert(1)//https://pay.example",
    "blob:https://pay.example/1",
    "view-source:https://pay.example",
    ...[undefined, null, 5, {}, []].map((value) => value as unknown as string),
  ];
  for (url of bad) {
    assertEquals((await client.callTool("visit")).isError, true, url);
    assertStringIncludes(String(takeFaults()[0].error), sentence("TypeError"), url);
  }
  assertEquals(asked, []);
  const good = ["https://pay.example", "http://localhost:8000/x?y=1#z", "HTTPS://pay.example/%20", "https://[::1]/ü"];
  for (url of good) assertEquals(textOf(await client.callTool("visit")), "accept");
  assertEquals(asked, good);
});

behaviour("if the server cannot wait for an answer, a question throws an error that states why", async (connect) => {
  const asks: Record<string, (ctx: Context) => Promise<unknown>> = {
    form: (ctx) => ctx.elicit("x", { message: "?", schema: yesNo }),
    page: (ctx) => ctx.elicitUrl("x", { message: "?", url: "https://x.example" }),
    model: (ctx) => ctx.sample("x", { messages: [], maxTokens: 1 }),
    roots: (ctx) => ctx.roots(),
  };
  let ask = asks.form;
  const handlers = [
    plainTool("asked", async (ctx) => (await ctx.elicit("y", { message: "?", schema: yesNo })).action),
    tool({
      name: "guarded",
      async allow(ctx) {
        await ask(ctx);
        return true;
      },
      run: () => "x",
    }),
    resource({
      uri: "x://{id}",
      name: "x",
      complete: {
        async id(_value, _others, ctx) {
          await ask(ctx);
          return ["1"];
        },
      },
      async list(ctx) {
        await ask(ctx);
        return [];
      },
      read: () => "x",
    }),
  ];
  const { client, takeFaults } = await connect({
    handlers,
    use: [async (ctx, next) => {
      if (ctx.method === "resources/templates/list") await ask(ctx);
      return await next();
    }],
  }, { answer: () => ({ action: "accept", content: { ok: true } }) });
  // A question that was asked earlier in the session does not change the result.
  assertEquals(textOf(await client.callTool("asked")), "accept");
  const ref = { type: "ref/resource", uri: "x://{id}" };
  for (ask of Object.values(asks)) {
    for (
      const [method, params, code] of [
        ["completion/complete", { ref, argument: { name: "id", value: "" } }, -32603],
        ["resources/list", {}, -32603],
        ["resources/templates/list", {}, -32603],
        ["tools/call", { name: "guarded" }, -32602],
      ] as const
    ) {
      const error = await assertRejects(() => client.request(method, params), McpError);
      assertEquals(error.code, code, method);
      const faults = takeFaults();
      assertEquals(faults.map(({ error }) => String(error)), [
        sentence("TypeError", method),
      ]);
    }
    const names = (await client.listTools()).map(({ name }) => name);
    assertEquals([names, takeFaults().length], [["asked"], 1]);
  }
});

behaviour("prompts and resources can ask the client too", async (connect) => {
  const ask = async (ctx: Context) => (await ctx.elicit("x", { message: "?", schema: yesNo })).action;
  const handlers = [
    prompt({ name: "p", run: (_input, ctx) => ask(ctx) }),
    resource({ uri: "x://r", name: "r", ttlMs: 60_000, read: (_uri, ctx) => ask(ctx) }),
  ];
  const { client } = await connect({ handlers }, { onElicit: () => ({ action: "decline" }) });
  const { messages } = await client.getPrompt("p");
  assertEquals(messages, [{ role: "user", content: { type: "text", text: "decline" } }]);
  const { contents, ttlMs } = await client.readResource("x://r");
  assertEquals(contents[0].text, "decline");
  if (ttlMs !== undefined) assertEquals(ttlMs, 0, "the result of a call with answers cannot be cached");
});

const order = tool({
  name: "order",
  input: z.object({ item: z.string().default("tea"), more: z.unknown().optional() }),
  run: async ({ item }, ctx) => {
    const { action } = await ctx.elicit("confirm", { message: `Order ${item}?`, schema: yesNo });
    return `${item} ${action}`;
  },
});
const yes = { confirm: accept({ ok: true }) };

behaviour(
  "the state of a question is refused if it was changed, or if it comes from another call or caller",
  async (connect, { transport }) => {
    const other = tool({ name: "other", run: (_input, ctx) => order.run({ item: "tea" }, ctx) as Promise<string> });
    const capabilities = { elicitation: {} };
    const { client, join } = await connect({ handlers: [order, other] }, { capabilities, principal: { id: "ada" } });
    const args = { item: "tea", more: { a: 1, b: 2 } };
    const first = await client.callTool("order", args, { rounds: false });
    assertEquals([first.resultType, Object.keys(Object(first.inputRequests))], ["input_required", ["confirm"]]);
    const requestState = String(first.requestState);
    const good = { name: "order", arguments: args, inputResponses: yes, requestState };
    const flip = (at: number) =>
      requestState.slice(0, at) + (requestState[at] === "A" ? "B" : "A") + requestState.slice(at + 1);
    const bad = [
      { ...good, requestState: `${requestState}-TAMPERED` },
      { ...good, requestState: flip(0) },
      { ...good, requestState: flip(20) },
      { ...good, requestState: flip(requestState.length - 5) },
      { ...good, requestState: "" },
      { ...good, requestState: 5 },
      { ...good, requestState: "x".repeat(500_000) },
      { ...good, arguments: { ...args, item: "gold" } },
      { ...good, arguments: {} },
      { ...good, name: "other" },
      { ...good, inputResponses: [yes] },
    ];
    for (const params of bad) {
      const error = await assertRejects(() => client.request("tools/call", params), McpError);
      assertEquals(error.code, -32602, JSON.stringify(params).slice(0, 200));
      assertEquals(error.status, transport === "pipe" ? undefined : 400);
    }
    for (const principal of [{ id: "bob" }, undefined]) {
      const thief = await join({ capabilities, principal });
      assertEquals((await assertRejects(() => thief.request("tools/call", good), McpError)).code, -32602);
    }
    // The repeated call can list its arguments in another order.
    const turned = { ...good, arguments: { more: { b: 2, a: 1 }, item: "tea" } };
    assertEquals((await client.request("tools/call", turned)).content, [{ type: "text", text: "tea accept" }]);
  },
  { eras: ["modern"] },
);

behaviour("responses that answer no question are ignored", async (connect) => {
  const { client } = await connect({ handlers: [order] }, { capabilities: { elicitation: {} } });
  const send = (more: object) =>
    client.request("tools/call", { name: "order", arguments: {}, ...more }, { rounds: false });
  const { requestState } = await send({});
  const responses = JSON.parse(
    '{"__proto__":{"action":"accept"},"toString":1,"other":{"action":"accept","content":{}}}',
  );
  assertEquals((await send({ requestState, inputResponses: responses })).resultType, "input_required");
  assertEquals((await send({ inputResponses: responses })).resultType, "input_required");
  assertEquals((await send({ requestState })).resultType, "input_required");
  const done = await send({ requestState, inputResponses: { ...responses, ...yes } });
  assertEquals(done.resultType, "complete");
}, { eras: ["modern"] });

behaviour("the number of rounds of a call is limited", async (connect) => {
  const endless = plainTool("endless", async (ctx) => {
    for (let i = 0;; i++) await ctx.elicit(`q${i}`, { message: `${i}?`, schema: yesNo });
  });
  const { client } = await connect({ handlers: [endless], limits: testLimits({ calls: { rounds: 3 } }) }, {
    onElicit: () => accept({ ok: true }),
  });
  const error = await assertRejects(() => client.callTool("endless"), McpError);
  assertEquals(error.code, -32602);
  assertEquals(error.message, sentence("calls.rounds"));
  assertEquals(countCalls(client), 4);
}, { eras: ["modern"] });

behaviour("the size of the data sent with a question is limited", async (connect) => {
  const heavy = plainTool(
    "heavy",
    async (ctx) => (await ctx.elicit("q", { message: "?".repeat(5000), schema: yesNo })).action,
  );
  const handlers = [heavy, order];
  const { client, takeFaults } = await connect({ handlers, limits: testLimits({ calls: { stateBytes: 3000 } }) }, {
    onElicit: () => accept({ ok: true }),
  });
  assertEquals((await assertRejects(() => client.callTool("heavy"), McpError)).code, -32603);
  assertStringIncludes(String(takeFaults()[0].error), "calls.stateBytes");
  assertEquals(textOf(await client.callTool("order")), "tea accept");
}, { eras: ["modern"] });

behaviour("values of ctx.once can use half of calls.stateBytes, with and without a question", async (connect) => {
  // The text has two bytes per character, because the limit counts bytes.
  const keep = tool({
    name: "keep",
    input: { type: "object" },
    async run({ size, asks }: Record<string, unknown>, ctx) {
      for (const key of ["one", "two"]) await ctx.once(key, () => "é".repeat(Number(size) / 4));
      if (!asks) return "kept";
      // A quotation mark that is escaped in JSON must not count twice.
      await ctx.once("quotes", () => ['"'.repeat(100)]);
      return (await ctx.elicit("q", { message: "?", schema: yesNo })).action;
    },
  });
  const { client, takeFaults } = await connect({ handlers: [keep] }, { onElicit: () => accept({ ok: true }) });
  for (const asks of [true, false]) {
    assertEquals(textOf(await client.callTool("keep", { size: 32_000, asks })), asks ? "accept" : "kept");
    for (const size of [33_000, 60_000]) {
      assertEquals((await client.callTool("keep", { size, asks })).isError, true);
      const [{ error }, ...others] = takeFaults();
      assertEquals(others, []);
      assertEquals(String(error), sentence("RangeError", 'ctx.once("two")', "calls.stateBytes", 65_536));
    }
  }
});

behaviour("the server stops waiting for a client that never answers", async (connect) => {
  const { client } = await connect({ handlers: [order], limits: { calls: { answerMs: 40 } } }, {
    onElicit: () => new Promise(() => {}),
  });
  const error = await assertRejects(() => client.callTool("order"), McpError);
  assertEquals(error.code, -32602);
  assertStringIncludes(error.message, "calls.answerMs");
  assertEquals(
    client.received.map(({ method }) => method),
    ["notifications/cancelled"],
    "the server sends the client a cancellation of the question",
  );
}, { eras: ["legacy"] });

behaviour("a cancelled call stops waiting for its answer", async (connect) => {
  const stop = new AbortController();
  const { client } = await connect({ handlers: [order] }, {
    onElicit() {
      turn().then(() => stop.abort());
      return new Promise(() => {});
    },
  });
  await assertRejects(() => client.callTool("order", {}, { signal: stop.signal }), DOMException);
  assertEquals((await client.listTools()).length, 1);
}, { eras: ["legacy"] });

Deno.test("the state of a question expires", async () => {
  const clock = fakeClock();
  await using server = createServer({
    name: "s",
    version: "1",
    handlers: [order],
    clock,
    limits: testLimits({ calls: { stateMs: 1000 } }),
  });
  await using client = await connectTo(server, { transport: "pipe", capabilities: { elicitation: {} } });
  const { requestState } = await client.callTool("order", {}, { rounds: false });
  const again = { name: "order", arguments: {}, inputResponses: yes, requestState };
  await clock.advance(900);
  assertEquals((await client.request("tools/call", again)).resultType, "complete");
  await clock.advance(200);
  const error = await assertRejects(() => client.request("tools/call", again), McpError);
  assertEquals(error.code, -32602);
  assertEquals(error.message, sentence("requestState", "calls.stateMs"));
});

Deno.test("instances that share a secret can continue each other's calls, even after the secret was rotated", async () => {
  const [old, young] = ["o".repeat(32), "y".repeat(32)];
  const secrets = [[old], [old], [young, old], [young], undefined];
  const [first, ...others] = await Promise.all(secrets.map(async (secret) => {
    const server = createServer({ name: "s", version: "1", handlers: [order], secret });
    return { server, client: await connectTo(server, { capabilities: { elicitation: {} } }) };
  }));
  const { requestState } = await first.client.callTool("order", {}, { rounds: false });
  const again = { name: "order", arguments: {}, inputResponses: yes, requestState };
  const outcomes = await Promise.all(
    others.map(({ client }) =>
      client.request("tools/call", again).then(({ resultType }) => resultType, ({ code }) => code)
    ),
  );
  assertEquals(outcomes, ["complete", "complete", -32602, -32602]);
  for (const { client, server } of [first, ...others]) {
    await client.close();
    await server.close();
  }
});

Deno.test("the client cannot read the state of a question", async () => {
  const secretive = plainTool("secretive", async (ctx) => {
    await ctx.once("key", () => "hunter2");
    return (await ctx.elicit("q", { message: "?", schema: yesNo })).action;
  });
  await using server = createServer({ name: "s", version: "1", handlers: [secretive] });
  await using client = await connectTo(server, { capabilities: { elicitation: {} } });
  const { requestState } = await client.callTool("secretive", {}, { rounds: false });
  const text = String(requestState).replaceAll("-", "+").replaceAll("_", "/");
  assert(!atob(text.padEnd(Math.ceil(text.length / 4) * 4, "=")).includes("hunter2"));
});
