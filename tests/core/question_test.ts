import { assertEquals } from "@std/assert";
import { prompt, tool } from "../../mod.ts";
import { ask } from "../support/requests.ts";
import { testServer } from "../support/test_server.ts";

Deno.test("a question to the client is not reported to the observer as an error", async () => {
  const reported: unknown[] = [];
  const schema = { type: "object", properties: { name: { type: "string" } } };
  const server = testServer({
    observer: { fault: ({ error }) => reported.push(error) },
    handlers: [
      tool({ name: "who", run: async (_, ctx) => (await ctx.elicit("name", { message: "Who?", schema })).action }),
      prompt({ name: "who", run: async (_, ctx) => (await ctx.elicit("name", { message: "Who?", schema })).action }),
    ],
  });
  const _meta = { "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } };
  for (const method of ["tools/call", "prompts/get"]) {
    const { result } = await ask(server, method, { name: "who", _meta });
    assertEquals(Object.keys(result.inputRequests), ["name"], method);
  }
  assertEquals(reported, []);
});
