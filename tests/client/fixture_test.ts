// The client with the server of the official conformance suite, in both eras over every transport.
import { assert, assertEquals } from "@std/assert";
import everything from "../../examples/everything.ts";
import { connect } from "../../src/client/client.ts";
import { startHttpServer, toCommand } from "../../src/testing/http_server.ts";
import { textOf } from "../support/behaviour.ts";

/** Returns the command that serves the server over stdio. */
function toProcess() {
  const [command] = toCommand("");
  const { pathname } = new URL("./everything_stdio.ts", import.meta.url);
  return { command, args: [...typeof Deno === "undefined" ? [] : ["run", "-q", "-A", "--no-check"], pathname] };
}

for (const era of ["modern", "legacy"] as const) {
  for (const transport of ["http", "stdio", "memory"] as const) {
    Deno.test(`the client works with the conformance suite's server (${era} over ${transport})`, async () => {
      await using stack = new AsyncDisposableStack();
      const host = transport === "http" ? startHttpServer(everything.fetch) : undefined;
      if (host) stack.defer(host.stop);
      const asked: string[] = [];
      const client = stack.use(
        await connect(host ? `${host.origin}/mcp` : transport === "stdio" ? toProcess() : everything, {
          era,
          probeMs: 30_000,
          onElicit({ message }) {
            asked.push(message);
            return { action: "accept", content: { name: "Alice", color: "red", ok: true } };
          },
          onSample: () => ({ role: "assistant", model: "m", content: { type: "text", text: "Paris" } }),
          roots: [],
        }),
      );
      const tools = await client.listTools();
      assert(tools.length > 10 && tools.every(({ name, description }) => name && description));
      assertEquals(textOf(await client.callTool("test_simple_text")), "This is a simple text response for testing.");
      const { isError } = await client.callTool("test_error_handling");
      assertEquals(isError, true);
      const steps: number[] = [];
      await client.callTool("test_tool_with_progress", {}, { onProgress: ({ progress }) => void steps.push(progress) });
      assertEquals(steps, [0, 50, 100]);
      const hello = await client.callTool("test_input_required_result_elicitation");
      assertEquals(textOf(hello), "Hello, Alice!");
      await client.callTool("test_input_required_result_multi_round");
      assertEquals(asked.length, 3);
      const resources = await client.listResources();
      const { contents: [first] } = await client.readResource(resources[0].uri);
      assert(first.text ?? first.blob);
      const { contents: [filled] } = await client.readResource("test://template/123/data");
      assertEquals(JSON.parse(filled.text ?? "").id, "123");
      const prompt = await client.getPrompt("test_prompt_with_arguments", { arg1: "one", arg2: "two" });
      assert(textOf({ content: [prompt.messages[0].content] }).includes("arg1='one'"));
    });
  }
}
