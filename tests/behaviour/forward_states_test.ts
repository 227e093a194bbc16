// Upstream servers with a large requestState, and servers of this library behind one and two proxies.
import { assertEquals } from "@std/assert";
import { createServer, type Server, tool } from "../../mod.ts";
import { connect } from "../../src/client/client.ts";
import { behaviour, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const form = { type: "object", properties: { value: { type: "string" } }, required: ["value"] };
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
const createForwarding = (characters: number) =>
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
  const { client } = await join({ handlers: [createForwarding(65_536)] }, { onElicit });
  assertEquals(textOf(await client.callTool("large")), "65536");
});

behaviour("a state that is too large to seal is a fault that names the limit", async (join, { era }) => {
  const { client, takeFaults } = await join({ handlers: [createForwarding(100_000)] }, { onElicit });
  // In a session, the state stays in this process.
  if (era === "legacy") return assertEquals(textOf(await client.callTool("large")), "100000");
  await client.callTool("large").catch(() => {});
  assertEquals(String(takeFaults()[0].error), sentence("calls.forwardedStateBytes"));
});
