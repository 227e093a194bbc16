// One call forwards requests to several upstream servers: from the handler, from middleware and attributes around it,
// and from resources that it reads. Each server gets only its own state and the answers to its own questions.
import { assertEquals } from "@std/assert";
import { type Context, prompt, resource, tool } from "../../mod.ts";
import { behaviour, textOf } from "../support/behaviour.ts";

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
