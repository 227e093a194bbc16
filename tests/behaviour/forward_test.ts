// Handlers that forward requests to an upstream server. The upstream server's questions are sent to the handler's
// client.
import { assertEquals, assertRejects } from "@std/assert";
import { createServer, McpError, type ServerOptions, tool } from "../../mod.ts";
import { type Client, connect } from "../../src/client/client.ts";
import { behaviour, raise, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

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

async function open(stack: AsyncDisposableStack, runs = { count: 0 }): Promise<Client> {
  const server = createUpstream(runs);
  stack.defer(() => server.close());
  return stack.use(await connect(server, { era: "modern", capabilities: ANSWERS }));
}

const roots = [{ uri: "file:///home" }];

behaviour(
  "questions from the upstream server reach the client, and the answers are returned to the upstream server",
  async (join) => {
    await using stack = new AsyncDisposableStack();
    const runs = { count: 0 };
    const asked: string[] = [];
    const { client } = await join(createForwarding(await open(stack, runs), ["book", "plain"]), {
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
  await using stack = new AsyncDisposableStack();
  let count = 0;
  const { client } = await join(createForwarding(await open(stack), []), {
    roots,
    onElicit: ({ message }) => ({ action: "accept", content: { value: `${message}${++count}` } }),
  });
  assertEquals(textOf(await client.callTool("twice")), "from1-to2 seat3 file:///home, from4-to5 seat6 file:///home");
});

behaviour("forward throws the upstream server's error", async (join) => {
  await using stack = new AsyncDisposableStack();
  const { client } = await join(createForwarding(await open(stack), ["refuse"]));
  const error = await assertRejects(() => client.callTool("refuse"), McpError, "Sign in first");
  assertEquals([error.code, error.data], [-31_401, { realm: "archive" }]);
});

behaviour("a question that the client cannot answer is refused before it is sent", async (join, { era }) => {
  await using stack = new AsyncDisposableStack();
  const { client } = await join(createForwarding(await open(stack), ["book"]), { roots });
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
  assertEquals([result.resultType, Object.keys(Object(result.inputRequests))], ["input_required", ['forward "k": q']]);
  assertEquals(JSON.stringify(result).includes(state), false);
  const params = {
    name: "forwards",
    arguments: {},
    inputResponses: { 'forward "k": q': { action: "accept", content: { value: "x" } } },
    requestState: result.requestState,
  };
  assertEquals(textOf(await client.request("tools/call", params) as typeof result), "done");
  const answer = { q: { action: "accept", content: { value: "x" } } };
  assertEquals(seen, [{}, { inputResponses: answer, requestState: state }]);
}, { eras: ["modern"] });
