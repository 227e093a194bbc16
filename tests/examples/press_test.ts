// The task example, for clients with and without support for tasks.
import { assertEquals } from "@std/assert";
import server from "../../examples/press.ts";
import { clientExtension } from "../../src/client/client.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { textOf, until } from "../support/behaviour.ts";

Deno.test("the press returns a task to clients that support tasks, and the result to other clients", async () => {
  await using stack = new AsyncDisposableStack();
  stack.defer(() => server.close());
  const onElicit = () => ({ action: "accept", content: {} }) as const;
  const args = { title: "News", pages: 2 };
  for (const era of ["modern", "legacy"] as const) {
    const plain = stack.use(await connectTest(server, { era, onElicit }));
    assertEquals(textOf(await plain.callTool("publish", args)), "Published News-1.svg, News-2.svg");
  }
  const extensions = [clientExtension({ id: "io.modelcontextprotocol/tasks" })];
  const client = stack.use(await connectTest(server, { extensions, capabilities: { elicitation: {} } }));
  const call = { name: "publish", arguments: args };
  const { taskId, resultType } = await client.request("tools/call", call, { finish: false });
  assertEquals(resultType, "task");
  const headers = { "mcp-name": String(taskId) };
  const get = () => client.request("tasks/get", { taskId }, { headers });
  await until(async () => (await get()).status === "input_required", "the question");
  await client.request("tasks/update", { taskId, inputResponses: { publish: onElicit() } }, { headers });
  await until(async () => (await get()).status === "completed", "the end");
  assertEquals(textOf(Object((await get()).result)), "Published News-1.svg, News-2.svg");
});
