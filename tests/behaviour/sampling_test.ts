// Sampling requests. The server sends them only if the client declared the capability, and only with messages in an
// order that every provider accepts.
import { assertEquals, assertRejects } from "@std/assert";
import type { ClientCapabilities, SamplingMessage } from "../../mod.ts";
import type { SamplingContent } from "../../src/types.ts";
import { McpError } from "../../src/testing/testing.ts";
import { behaviour, plainTool, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const text: SamplingContent = { type: "text", text: "x" };
const use = (id: string): SamplingContent => ({ type: "tool_use", id, name: "n", input: {} });
const result = (toolUseId: string): SamplingContent => ({ type: "tool_result", toolUseId, content: [] });
const user = (...content: SamplingContent[]): SamplingMessage => ({ role: "user", content });
const assistant = (...content: SamplingContent[]): SamplingMessage => ({ role: "assistant", content });

const GOOD: readonly (readonly SamplingMessage[])[] = [
  [],
  [user(text)],
  [user(text), user(text), assistant(text), assistant(text)],
  [{ role: "user", content: text }, { role: "assistant", content: use("a") }, { role: "user", content: result("a") }],
  [user(text), assistant(text, use("a"), text, use("b")), user(result("b"), result("a")), assistant(text)],
  [assistant(use("a")), user(result("a")), assistant(use("a")), user(result("a")), user(text)],
];

const BAD: readonly (readonly [at: number, messages: readonly SamplingMessage[]])[] = [
  [1, [assistant(use("a"))]],
  [1, [assistant(use("a")), user(text)]],
  [1, [assistant(use("a")), user(text), user(result("a"))]],
  [1, [assistant(use("a")), assistant(text), user(result("a"))]],
  [2, [user(text), assistant(use("a"), use("b")), user(result("a"))]],
  [1, [assistant(use("a"), use("b")), user(result("a")), user(result("b"))]],
  [1, [assistant(use("a")), user(result("b"))]],
  [1, [assistant(use("a")), user(result("a"), result("b"))]],
  [1, [assistant(use("a")), user(result("a"), result("a"))]],
  [1, [assistant(use("a"), use("b")), user(result("a"), result("a"))]],
  [1, [assistant(use("a")), user(result("a"), text)]],
  [1, [assistant(use("a")), user(text, result("a"))]],
  [1, [assistant(use("a")), assistant(result("a"))]],
  [0, [user(result("a"))]],
  [1, [user(text), user(result("a"))]],
  [0, [user(use("a")), user(result("a"))]],
  [0, [assistant(use("a"), use("a")), user(result("a"))]],
  [0, [assistant(use("a"), result("a"))]],
  [1, [assistant(use("a")), user(result("a"), use("b")), user(result("b"))]],
  [1, [assistant(use("a")), user()]],
];

behaviour("a sampling request that has tool uses without their results is refused", async (connect) => {
  let messages: readonly SamplingMessage[] = [];
  const asked: unknown[] = [];
  const ask = plainTool("ask", async (ctx) => (await ctx.sample("q", { messages, maxTokens: 1 })).model);
  const { client, takeFaults } = await connect({ handlers: [ask] }, {
    answer(request) {
      asked.push(request);
      return { role: "assistant", content: text, model: "m" };
    },
  });
  for (messages of GOOD) assertEquals(textOf(await client.callTool("ask")), "m", JSON.stringify(messages));
  assertEquals(asked.length, GOOD.length);
  for (const [at, each] of BAD) {
    messages = each;
    assertEquals((await client.callTool("ask")).isError, true, JSON.stringify(messages));
    const [{ error }] = takeFaults();
    assertEquals(String(error), sentence("TypeError", '"q"', `messages[${at}]`), JSON.stringify(messages));
  }
  assertEquals(asked.length, GOOD.length);
});

behaviour(
  "messages with tool uses are sent only to clients that support tools in sampling, even if the request offers no tool",
  async (connect, { era }) => {
    const ask = plainTool("ask", async (ctx) => {
      const messages = [{ role: "assistant", content: use("a") }, { role: "user", content: result("a") }] as const;
      return (await ctx.sample("q", { messages, maxTokens: 1 })).model;
    });
    const answer = () => ({ role: "assistant", content: text, model: "m" });
    const { client, join } = await connect({ handlers: [ask] }, { capabilities: { sampling: {} }, answer });
    if (era === "legacy") assertEquals((await client.callTool("ask")).isError, true);
    else {
      const error = await assertRejects(() => client.callTool("ask"), McpError);
      assertEquals(error.data, { requiredCapabilities: { sampling: { tools: {} } } });
    }
    const able = await join({ capabilities: { sampling: { tools: {} } }, answer });
    assertEquals(textOf(await able.callTool("ask")), "m");
  },
);

behaviour(
  "server context is requested only from a client that declared the sampling.context capability",
  async (connect) => {
    const contexts = ["none", "thisServer", "allServers", undefined] as const;
    const ask = plainTool("ask", async (ctx) => {
      for (const [i, includeContext] of contexts.entries()) {
        await ctx.sample(`q${i}`, { messages: [user(text)], maxTokens: 1, includeContext });
      }
    });
    const { join } = await connect({ handlers: [ask] });
    const cases: [ClientCapabilities, unknown[]][] = [
      [{ sampling: { context: {} } }, [...contexts]],
      [{ sampling: {} }, ["none", undefined, undefined, undefined]],
      [{ sampling: { tools: {} } }, ["none", undefined, undefined, undefined]],
      [JSON.parse('{"sampling":{"context":true}}'), ["none", undefined, undefined, undefined]],
    ];
    for (const [capabilities, wanted] of cases) {
      const asked: unknown[] = [];
      const client = await join({
        capabilities,
        answer({ params }) {
          assertEquals(Object.keys(params).sort(), [
            ...params.includeContext ? ["includeContext"] : [],
            "maxTokens",
            "messages",
          ]);
          asked.push(params.includeContext);
          return { role: "assistant", content: text, model: "m" };
        },
      });
      await client.callTool("ask");
      assertEquals(asked, wanted);
    }
  },
);
