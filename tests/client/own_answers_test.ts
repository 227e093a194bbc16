// Callbacks such as `onElicit` in the options of a request answer only the questions of this request.
import { assertEquals, assertRejects } from "@std/assert";
import { createServer, type Server, tool } from "../../mod.ts";
import {
  type AnswerContext,
  type Client,
  connect,
  type ConnectOptions,
  type ElicitResult,
  McpError,
} from "../../src/client/client.ts";
import { startHttpServer } from "../../src/testing/http_server.ts";
import { textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const text = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };

function createAsking(): Server {
  const who = tool({
    name: "who",
    input: { type: "object", properties: { id: { type: "integer" } } },
    async run(_input, ctx) {
      const { content } = await ctx.elicit("name", { message: "Who are you?", schema: text });
      return String(Object(content).name);
    },
  });
  const where = tool({ name: "where", run: async (_input, ctx) => (await ctx.roots()).map(({ uri }) => uri).join() });
  const say = tool({
    name: "say",
    async run(_input, ctx) {
      const { content } = await ctx.sample("say", {
        messages: [{ role: "user", content: { type: "text", text: "?" } }],
        maxTokens: 9,
      });
      return String(Object([content].flat()[0]).text);
    },
  });
  return createServer({ name: "asking", version: "1.0.0", handlers: [who, where, say] });
}

type Join = (options?: ConnectOptions) => Promise<Client>;
const ALL = { elicitation: { form: {} }, sampling: {}, roots: {} };

for (const era of ["modern", "legacy"] as const) {
  for (const transport of ["http", "memory"] as const) {
    const everyWay = (name: string, run: (join: Join) => Promise<void>) =>
      Deno.test(`${name} (${era} over ${transport})`, async () => {
        await using stack = new AsyncDisposableStack();
        const server = createAsking();
        stack.defer(() => server.close());
        const host = transport === "http" ? startHttpServer(server.fetch) : undefined;
        if (host) stack.defer(host.stop);
        const target = host ? `${host.origin}/mcp` : server;
        await run(async (options) => stack.use(await connect(target, { era, capabilities: ALL, ...options })));
      });

    everyWay("the callbacks of a request answer the questions of the request", async (join) => {
      const client = await join({ onElicit: () => ({ action: "accept", content: { name: "connection" } }) });
      const own = await client.callTool("who", {}, {
        onElicit: () => ({ action: "accept", content: { name: "request" } }),
      });
      assertEquals([textOf(own), textOf(await client.callTool("who"))], ["request", "connection"]);
      assertEquals(textOf(await client.callTool("where", {}, { roots: [{ uri: "file:///own" }] })), "file:///own");
      const said = await client.callTool("say", {}, {
        onSample: () => ({ role: "assistant", model: "m", content: { type: "text", text: "own" } }),
      });
      assertEquals(textOf(said), "own");
    });

    everyWay(
      "a callback receives the key of the question and the request to which the question belongs",
      async (join) => {
        const client = await join();
        const contexts: AnswerContext[] = [];
        await client.callTool("who", { id: 7 }, {
          onElicit(_request, context) {
            contexts.push(context);
            return { action: "accept", content: { name: "x" } };
          },
        });
        await client.callTool("where", {}, {
          roots(context) {
            contexts.push(context);
            return [];
          },
        });
        const [first, second] = contexts;
        if (era === "modern") assertEquals(first.key, "name");
        else assertEquals(typeof first.key, "string");
        assertEquals(first.request, { method: "tools/call", params: { name: "who", arguments: { id: 7 } } });
        assertEquals(second.request?.params.name, "where");
      },
    );

    everyWay(
      "if requests run concurrently, each question is answered by the callbacks of its own request",
      async (join) => {
        const client = await join();
        const call = async (id: number) => {
          const result = await client.callTool("who", { id }, {
            onElicit: (_request, { request }) => {
              assertEquals(Object(request?.params.arguments).id, id);
              return { action: "accept", content: { name: `user ${id}` } };
            },
          });
          return textOf(result);
        };
        const calls = Array.from({ length: 20 }, (_, id) => call(id));
        // A list cannot ask, so it neither waits nor makes a question ambiguous.
        const [answers, tools] = await Promise.all([Promise.all(calls), client.listTools()]);
        assertEquals([answers, tools.length], [Array.from({ length: 20 }, (_, id) => `user ${id}`), 3]);
      },
    );

    everyWay("a request that waits for another request times out, and its signal ends it", async (join) => {
      const client = await join();
      const { promise: answer, resolve } = Promise.withResolvers<ElicitResult>();
      const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
      const options = { onElicit: () => (ask(), answer) };
      const first = client.callTool("who", {}, options);
      const stopped = new AbortController();
      const others = Promise.allSettled([
        client.callTool("who", {}, { ...options, timeoutMs: 20 }),
        client.callTool("who", {}, { ...options, signal: stopped.signal }),
      ]);
      await asked;
      stopped.abort(new Error("enough"));
      const [late, ended] = await others;
      assertEquals([late, ended].map((each) => each.status), ["rejected", "rejected"]);
      resolve({ action: "accept", content: { name: "Ada" } });
      assertEquals(textOf(await first), "Ada");
    });

    everyWay("a callback can send requests with callbacks of their own", async (join) => {
      const client = await join();
      const onElicit = () => ({ action: "decline" as const });
      const result = await client.callTool("who", {}, {
        async onElicit() {
          const { tools } = await client.request("tools/list", {}, { onElicit });
          await assertRejects(() => client.callTool("none", {}, { onElicit }), McpError);
          return { action: "accept", content: { name: String(Object(tools).length) } };
        },
      });
      assertEquals(textOf(result), "3");
    });
  }
}

Deno.test("a modern request declares the capabilities for its own callbacks only", async () => {
  const server = createAsking();
  await using client = await connect(server);
  await assertRejects(() => client.callTool("where"), McpError, sentence("roots"));
  assertEquals(textOf(await client.callTool("where", {}, { roots: [] })), "");
  await assertRejects(() => client.callTool("where"), McpError, sentence("roots"));
  await server.close();
});
