// One call forwards requests to several upstream servers: from the handler, from middleware and layers around it,
// and from resources that it reads. Each server gets only its own state and the answers to its own questions.
import { assertEquals } from "@std/assert";
import { type Context, extension, prompt, resource, tool } from "../../mod.ts";
import type { Layer } from "../../src/layers/layers.ts";
import { taskClient } from "../../src/extensions/tasks/client/tasks.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { behaviour, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const form = { type: "object", properties: { ok: { type: "boolean" } } } as const;

/** Two upstream servers, each of which asks one question, and what they have received. */
function openUpstreams() {
  const received: string[] = [];
  const send = (name: string): Parameters<Context["forward"]>[0] => ({ requestState = "-", inputResponses }) => {
    const answers = Object.entries(inputResponses ?? {}).map(([key, value]) => `${key}=${Object(value).content.by}`);
    received.push([name, requestState, ...answers].join(" "));
    if (inputResponses) return { content: [{ type: "text", text: `${name} done` }] };
    const inputRequests = { q: { method: "elicitation/create", params: { message: name, requestedSchema: form } } };
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
      await ctx.elicit("sure", { message: "sure", schema: form });
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
      await ctx.elicit("sure", { message: "sure", schema: form });
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
        await ctx.elicit("sure", { message: "sure", schema: form });
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
