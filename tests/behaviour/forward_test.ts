// Handlers that forward requests to an upstream server. The upstream server's questions are sent to the handler's
// client.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { createServer, extension, McpError, prompt, resource, tool } from "../../mod.ts";
import type { Context, Server, ServerOptions } from "../../mod.ts";
import { type Client, connect } from "../../src/client/client.ts";
import { taskClient } from "../../src/extensions/tasks/client/tasks.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import type { Layer } from "../../src/layers/layers.ts";
import { behaviour, raise, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { closeAtEnd, stackAtEnd } from "../support/running.ts";

const form = { type: "object", properties: { value: { type: "string" } }, required: ["value"] };
const ANSWERS = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

function createUpstream(runs: { count: number }) {
  const book = tool({
    name: "book",
    async run(_input, ctx) {
      runs.count++;
      const ask = async (key: string) =>
        String(Object((await ctx.elicit(key, { message: key, schema: form })).content).value);
      const [from, to] = await Promise.all([ask("from"), ask("to")]);
      const seat = await ask("seat");
      const [root] = await ctx.roots();
      return `${from}-${to} ${seat} ${root.uri}`;
    },
  });
  const refuse = tool({
    name: "refuse",
    run: () => raise(new McpError(-31_401, "Sign in first", { realm: "archive" })),
  });
  const plain = tool({ name: "plain", run: () => "plain" });
  return createServer({ name: "upstream", version: "1.0.0", handlers: [book, refuse, plain] });
}

function createForwarding(upstream: Client, names: readonly string[]): Pick<ServerOptions, "handlers"> {
  const forward = (name: string) =>
    tool({
      name,
      run: (input, ctx) =>
        ctx.forward((retry, options) => upstream.request("tools/call", { name, arguments: input, ...retry }, options), {
          key: name,
        }),
    });
  const twice = tool({
    name: "twice",
    async run(_input, ctx) {
      const send = (key: string) =>
        ctx.forward((retry, options) => upstream.request("tools/call", { name: "book", ...retry }, options), { key });
      const [first, second] = [await send("first"), await send("second")];
      return [first, second].map((result) => textOf({ content: Object(result).content })).join(", ");
    },
  });
  return { handlers: [...names.map(forward), twice] };
}

async function open(runs = { count: 0 }): Promise<Client> {
  const server = createUpstream(runs);
  return stackAtEnd().use(await connect(closeAtEnd(server), { era: "modern", capabilities: ANSWERS }));
}

const roots = [{ uri: "file:///home" }];

behaviour(
  "questions from the upstream server reach the client, and the answers are returned to the upstream server",
  async (join) => {
    const runs = { count: 0 };
    const asked: string[] = [];
    const { client } = await join(createForwarding(await open(runs), ["book", "plain"]), {
      roots,
      onElicit({ message }) {
        asked.push(message);
        return { action: "accept", content: { value: message.toUpperCase() } };
      },
    });
    assertEquals(textOf(await client.callTool("book")), "FROM-TO SEAT file:///home");
    assertEquals(asked, ["from", "to", "seat"]);
    // The client is asked once per round of the upstream server: first two questions, then one question, then a roots
    // request.
    assertEquals(runs.count, 4);
    assertEquals(textOf(await client.callTool("plain")), "plain");
  },
);

behaviour("a handler can forward several requests that cause the same questions", async (join) => {
  let count = 0;
  const { client } = await join(createForwarding(await open(), []), {
    roots,
    onElicit: ({ message }) => ({ action: "accept", content: { value: `${message}${++count}` } }),
  });
  assertEquals(textOf(await client.callTool("twice")), "from1-to2 seat3 file:///home, from4-to5 seat6 file:///home");
});

behaviour("forward throws the upstream server's error", async (join) => {
  const { client } = await join(createForwarding(await open(), ["refuse"]));
  const error = await assertRejects(() => client.callTool("refuse"), McpError, "Sign in first");
  assertEquals([error.code, error.data], [-31_401, { realm: "archive" }]);
});

behaviour("a question that the client cannot answer is refused before it is sent", async (join, { era }) => {
  const { client } = await join(createForwarding(await open(), ["book"]), { roots });
  if (era === "legacy") {
    const result = await client.callTool("book");
    assertEquals([result.isError, textOf(result)], [true, sentence("elicitation")]);
    return;
  }
  const error = await assertRejects(() => client.callTool("book"), McpError, sentence("elicitation"));
  assertEquals(error.code, -32021);
});

behaviour("another server cannot ask the client's users without end", async (join) => {
  let rounds = 0;
  let asked = 0;
  const greedy = tool({
    name: "greedy",
    run: (_input, ctx) =>
      ctx.forward(() => {
        const question = { method: "elicitation/create", params: { message: "?", requestedSchema: form } };
        const inputRequests = Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`q${at}`, question]));
        return { resultType: "input_required", inputRequests, requestState: `${rounds++}` };
      }, { key: "k" }),
  });
  const { client, takeFaults } = await join({ handlers: [greedy] }, {
    maxAnswers: Infinity,
    onElicit: () => (asked++, { action: "accept", content: { value: "x" } }),
  });
  const result = await client.callTool("greedy").catch(() => ({ isError: true }));
  assertEquals([result.isError, asked], [true, 30]);
  assertEquals(takeFaults().map(({ error }) => String(error)), [`Error: ${sentence(32)}`]);
});

behaviour("an invalid forwarded result is reported as a fault", async (join) => {
  const asks = (inputRequests: unknown) => ({ resultType: "input_required", inputRequests, requestState: "s" });
  const wrong: readonly unknown[] = [
    undefined,
    "text",
    [],
    asks({ a: { method: "tools/call" } }),
    asks({ a: 5 }),
    asks({ a: { method: "elicitation/create", params: { mode: "url", url: "javascript:1", message: "m" } } }),
  ];
  const handlers = wrong.map((value, i) =>
    tool({ name: `t${i}`, run: (_input, ctx) => ctx.forward(() => value as object, { key: "k" }) })
  );
  const { client, takeFaults } = await join({ handlers }, { capabilities: ANSWERS });
  for (const { name } of handlers) {
    assertEquals((await client.callTool(name)).isError, true);
    assertEquals(String(takeFaults()[0].error), sentence());
  }
});

behaviour("the client gets the upstream server's state only in sealed form", async (join) => {
  const state = "state-of-the-other-server";
  const question = { method: "elicitation/create", params: { message: "?", requestedSchema: form } };
  const asks = { resultType: "input_required", inputRequests: { q: question }, requestState: state };
  const seen: unknown[] = [];
  const forwards = tool({
    name: "forwards",
    run: (_input, ctx) =>
      ctx.forward((retry) => {
        seen.push(retry);
        return retry.requestState === undefined ? asks : { content: [{ type: "text", text: "done" }] };
      }, { key: "k" }),
  });
  const { client } = await join({ handlers: [forwards] }, { capabilities: ANSWERS });
  const result = await client.callTool("forwards", {}, { rounds: false });
  assertEquals([result.resultType, Object.keys(Object(result.inputRequests))], ["input_required", ["q"]]);
  assertEquals(JSON.stringify(result).includes(state), false);
  const params = {
    name: "forwards",
    arguments: {},
    inputResponses: { q: { action: "accept", content: { value: "x" } } },
    requestState: result.requestState,
  };
  assertEquals(textOf(await client.request("tools/call", params) as typeof result), "done");
  const answer = { q: { action: "accept", content: { value: "x" } } };
  assertEquals(seen, [{}, { inputResponses: answer, requestState: state }]);
}, { eras: ["modern"] });

// Upstream servers with a large requestState, and servers of this library behind one and two proxies.

const onElicit = () => ({ action: "accept" as const, content: { value: "yes" } });

/** Creates a proxy for the tool `large` of another server. */
async function proxy(target: Server, stack: AsyncDisposableStack) {
  const upstream = stack.use(await connect(target, { era: "modern", capabilities: { elicitation: { form: {} } } }));
  const [listed] = await upstream.listTools();
  return tool.from(
    listed,
    (input, ctx) =>
      ctx.forward(
        (retry, options) => upstream.request("tools/call", { name: listed.name, arguments: input, ...retry }, options),
        { key: "large" },
      ),
  );
}

for (const characters of [1000, 26_000, 32_000]) {
  behaviour(
    `a server that keeps ${characters} characters works directly, and through one and two proxies`,
    async (join) => {
      await using stack = new AsyncDisposableStack();
      const large = tool({
        name: "large",
        async run(_input, ctx) {
          const text = await ctx.once("text", () => "x".repeat(characters));
          for (const key of ["first", "second", "third"]) await ctx.elicit(key, { message: key, schema: form });
          return `${text.length}`;
        },
      });
      const upstream = createServer({ name: "upstream", version: "1.0.0", handlers: [large] });
      stack.defer(() => upstream.close());
      const direct = await join({ handlers: [large] }, { onElicit });
      assertEquals(textOf(await direct.client.callTool("large")), `${characters}`);
      const handlers = [await proxy(upstream, stack)];
      const near = await join({ handlers }, { onElicit });
      assertEquals(textOf(await near.client.callTool("large")), `${characters}`);
      const middle = createServer({ name: "middle", version: "1.0.0", handlers });
      stack.defer(() => middle.close());
      const far = await join({ handlers: [await proxy(middle, stack)] }, { onElicit });
      assertEquals(textOf(await far.client.callTool("large")), `${characters}`);
    },
  );
}

/** A handler that forwards to a server whose state has the given number of characters. */
const createLarge = (characters: number) =>
  tool({
    name: "large",
    run: (_input, ctx) =>
      ctx.forward(({ requestState }) =>
        requestState === undefined
          ? {
            resultType: "input_required",
            inputRequests: { q: { method: "elicitation/create", params: { message: "?", requestedSchema: form } } },
            requestState: "x".repeat(characters),
          }
          : { content: [{ type: "text", text: `${String(requestState).length}` }] }, { key: "large" }),
  });

behaviour("the largest state of this library fits", async (join) => {
  const { client } = await join({ handlers: [createLarge(65_536)] }, { onElicit });
  assertEquals(textOf(await client.callTool("large")), "65536");
});

behaviour("a state that is too large to seal is a fault that names the limit", async (join, { era }) => {
  const { client, takeFaults } = await join({ handlers: [createLarge(100_000)] }, { onElicit });
  // In a session, the state stays in this process.
  if (era === "legacy") return assertEquals(textOf(await client.callTool("large")), "100000");
  await client.callTool("large").catch(() => {});
  assertEquals(String(takeFaults()[0].error), sentence("calls.forwardedStateBytes"));
});

// One call forwards requests to several upstream servers: from the handler, from middleware and layers around it,
// and from resources that it reads. Each server gets only its own state and the answers to its own questions.

const consent = { type: "object", properties: { ok: { type: "boolean" } } } as const;

/** Two upstream servers, each of which asks one question, and what they have received. */
function openUpstreams() {
  const received: string[] = [];
  const send = (name: string): Parameters<Context["forward"]>[0] => ({ requestState = "-", inputResponses }) => {
    const answers = Object.entries(inputResponses ?? {}).map(([key, value]) => `${key}=${Object(value).content.by}`);
    received.push([name, requestState, ...answers].join(" "));
    if (inputResponses) return { content: [{ type: "text", text: `${name} done` }] };
    const inputRequests = { q: { method: "elicitation/create", params: { message: name, requestedSchema: consent } } };
    return { resultType: "input_required", requestState: `state-of-${name}`, inputRequests };
  };
  return { received, send };
}

/** A client that answers each question with the text of the question. */
const answering = { onElicit: ({ message }: { readonly message: string }) => accept(message) };
const accept = (by: string) => ({ action: "accept" as const, content: { ok: true, by } });

/** What an upstream server receives if no other server's state or answer reaches it. */
const alone = (name: string) => [`${name} -`, `${name} state-of-${name} q=${name}`];

/** Returns what a server has received, without repetitions, because a further run repeats a request. */
const of = (received: readonly string[], name: string) => [
  ...new Set(received.filter((each) => each.startsWith(`${name} `))),
];

behaviour("a request in ctx.once, a question and a further request do not share answers", async (join) => {
  const { received, send } = openUpstreams();
  const pay = tool({
    name: "pay",
    async run(_input, ctx) {
      await ctx.once("login", () => ctx.forward(send("auth"), { key: "auth login" }));
      await ctx.elicit("sure", { message: "sure", schema: consent });
      return await ctx.forward(send("bank"), { key: "bank payment" });
    },
  });
  const { client } = await join({ handlers: [pay] }, answering);
  assertEquals(textOf(await client.callTool("pay")), "bank done");
  assertEquals(received, [...alone("auth"), ...alone("bank")]);
});

behaviour("a run that asks another server than the run before does not send it answers", async (join, { era }) => {
  const { received, send } = openUpstreams();
  let runs = 0;
  const choose = async (ctx: Context) => {
    const name = runs++ ? "bank" : "auth";
    return textOf({ content: Object(await ctx.forward(send(name), { key: name })).content });
  };
  const handlers = [
    tool({ name: "pay", run: (_input, ctx) => choose(ctx) }),
    prompt({ name: "pay", run: (_input, ctx) => choose(ctx) }),
    resource({ uri: "pay://x", name: "pay", read: (_uri, ctx) => choose(ctx) }),
  ];
  const { client } = await join({ handlers }, answering);
  for (
    const run of [() => client.callTool("pay"), () => client.getPrompt("pay"), () => client.readResource("pay://x")]
  ) {
    runs = received.length = 0;
    await run();
    // In a session, the handler runs once.
    const expected = era === "legacy" ? alone("auth") : ["auth -", ...alone("bank")];
    assertEquals(received, expected);
  }
});

behaviour("a further run sends a request that has ended with its own state again", async (join, { era }) => {
  const { received, send } = openUpstreams();
  const both = tool({
    name: "both",
    async run(_input, ctx) {
      const first = await ctx.forward(send("auth"), { key: "auth" });
      await ctx.elicit("sure", { message: "sure", schema: consent });
      return [first, await ctx.forward(send("bank"), { key: "bank" })].map((each) =>
        textOf({ content: Object(each).content })
      ).join(", ");
    },
  });
  const { client } = await join({ handlers: [both] }, answering);
  assertEquals(textOf(await client.callTool("both")), "auth done, bank done");
  const [first, last] = alone("auth");
  const again = era === "legacy" ? [] : [last, last];
  assertEquals(received.filter((each) => each.startsWith("auth")), [first, last, ...again]);
  assertEquals(of(received, "bank"), alone("bank"));
});

const gate = extension({ id: "com.example/gate" });
const other = extension({ id: "com.example/other" });
const plain = () => other.layer({ around: (_call, next) => next() });

/** Handlers whose layers forward a request before the handler does. */
function makeHandlers(
  forwards: { readonly before: (ctx: Context) => unknown; readonly after: (ctx: Context) => object },
) {
  const forwarding = () =>
    gate.layer({
      async around(call, next) {
        await forwards.before(call.ctx);
        return await next();
      },
    });
  const named = (name: string, use: readonly Layer[]) => tool({ name, use, run: (_input, ctx) => forwards.after(ctx) });
  const text = async (ctx: Context) => textOf({ content: Object(await forwards.after(ctx)).content });
  return [
    named("outside", [forwarding(), plain()]),
    named("inside", [plain(), forwarding()]),
    named("far", [forwarding(), plain(), task({ after: 60_000 })]),
    named("early", [forwarding(), task({ after: 0 })]),
    tool({
      name: "late",
      use: [forwarding(), plain(), task({ after: 0 }), plain()],
      async run(_input, ctx) {
        // A task asks after the response, so the handler is detached when the answer arrives.
        await ctx.elicit("sure", { message: "sure", schema: consent });
        return await forwards.after(ctx);
      },
    }),
    tool({
      name: "middleware",
      use: [plain(), async (ctx, next) => {
        await forwards.before(ctx);
        return await next();
      }],
      run: (_input, ctx) => forwards.after(ctx),
    }),
    resource({ uri: "gate://x", name: "gate", use: [forwarding(), plain()], read: (_uri, ctx) => text(ctx) }),
    tool({
      name: "reader",
      use: [plain()],
      run: async (_input, ctx) => (await ctx.readResource("gate://x"))[0].text,
    }),
    ...[gate, other, tasks()],
  ];
}

const NAMES = ["outside", "inside", "far", "early", "late", "middleware", "reader"];

behaviour("layers, middleware and handlers forward requests to different servers", async (join) => {
  const { received, send } = openUpstreams();
  const handlers = makeHandlers({
    before: (ctx) => ctx.forward(send("auth"), { key: "auth" }),
    after: (ctx) => ctx.forward(send("bank"), { key: "bank" }),
  });
  const { client } = await join({ handlers }, { ...answering, extensions: [taskClient()] });
  for (const name of NAMES) {
    received.length = 0;
    assertEquals(textOf(await client.callTool(name)), "bank done", name);
    assertEquals(of(received, "auth"), alone("auth"), name);
    assertEquals(of(received, "bank"), alone("bank"), name);
  }
});

behaviour("no second request in a call has the same key, whichever layer forwards it", async (join) => {
  const { received, send } = openUpstreams();
  const handlers = makeHandlers({
    before: (ctx) => ctx.forward(send("auth"), { key: "seats" }),
    after: (ctx) => ctx.forward(send("bank"), { key: "seats" }),
  });
  const { client, takeFaults } = await join({ handlers }, { ...answering, extensions: [taskClient()] });
  for (const name of NAMES) {
    received.length = 0;
    const isError = await client.callTool(name).then((result) => result.isError, () => true);
    assertEquals([isError, of(received, "bank")], [true, []], name);
    assertEquals(String(takeFaults()[0].error), sentence("seats"));
  }
});

// Errors from an upstream server that a handler calls.

const CODE = -31_401;
const DATA = { realm: "archive" };
const SECRET = "Cannot open the archive: token-of-ada has expired";

function createFailing(): Server {
  const open = tool({ name: "open", run: () => raise(new McpError(CODE, SECRET, DATA)) });
  return closeAtEnd(createServer({ name: "upstream", version: "1.0.0", handlers: [open] }));
}

/** Creates a handler of each kind that calls the upstream server and passes its error to `handle`. */
function createHandlers(upstream: Server, handle: (error: unknown) => never) {
  const open = async (): Promise<never> => {
    await using client = await connect(upstream);
    return await client.callTool("open").then(() => handle(new Error("the call did not fail")), handle);
  };
  return [
    tool({ name: "open", run: open }),
    prompt({ name: "open", run: open }),
    resource({ uri: "archive://1", name: "archive", read: open }),
  ];
}

const passOn = (error: unknown): never => raise(error instanceof McpError ? error.asOwn() : error);

behaviour("an upstream error that a handler does not catch becomes an internal error with an id", async (connectTo) => {
  const upstream = createFailing();
  const { client, takeFaults } = await connectTo({ handlers: createHandlers(upstream, raise) });
  const result = await client.callTool("open");
  const [fault] = takeFaults();
  assertEquals(result.isError, true);
  assert(textOf(result).includes(fault.id), textOf(result));
  assert(fault.error instanceof McpError && fault.error.remote && fault.error.code === CODE);
  for (const send of [() => client.getPrompt("open"), () => client.readResource("archive://1")]) {
    const error = await assertRejects(send, McpError);
    assertEquals(error.code, -32603);
    assertEquals(Object(error.data).errorId, takeFaults()[0].id);
  }
});

behaviour("a handler can throw an upstream error as its own error", async (connectTo) => {
  const upstream = createFailing();
  const { client } = await connectTo({ handlers: createHandlers(upstream, passOn) });
  const calls = [
    () => client.callTool("open"),
    () => client.getPrompt("open"),
    () => client.readResource("archive://1"),
  ];
  for (const send of calls) {
    const error = await assertRejects(send, McpError, SECRET);
    assertEquals([error.code, error.data, error.remote], [CODE, DATA, true]);
  }
});

Deno.test("in production, the client does not get the message of an upstream error", async () => {
  await using stack = new AsyncDisposableStack();
  const upstream = createFailing();
  const server = createServer({
    name: "proxy",
    version: "1.0.0",
    handlers: createHandlers(upstream, raise),
    observer: { fault: () => {} },
  });
  stack.defer(() => server.close());
  await using client = await connect(server);
  assertEquals(JSON.stringify(await client.callTool("open")).includes("token-of-ada"), false);
  for (const send of [() => client.getPrompt("open"), () => client.readResource("archive://1")]) {
    const error = await assertRejects(send, McpError);
    assertEquals(JSON.stringify([error.message, error.data]).match(/token-of-ada|archive/), null);
  }
});

Deno.test("an upstream response that is not a JSON-RPC message is an internal error", () => {
  const error = new McpError(0, "Cannot read the response", undefined, { status: 502 });
  assertEquals([error.remote, error.status], [true, 502]);
  const own = error.asOwn();
  assertEquals([own.code, own.remote, own.status, own.cause], [-32603, false, undefined, error]);
  assertEquals(own.asOwn(), own);
});
