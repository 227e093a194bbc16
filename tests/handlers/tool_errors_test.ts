import { assertEquals } from "@std/assert";
import { createServer, tool, ToolError } from "../../mod.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { sentence } from "../support/messages.ts";
import { throwing } from "../support/throwing.ts";
import { testClient } from "../support/test_server.ts";

const fail = tool({
  name: "fail",
  run: (): string => {
    throw new RangeError("the disk /dev/sda1 is full");
  },
});

async function callFailing(mapError?: (error: unknown) => string | ToolError | undefined): Promise<unknown> {
  const options = { name: "t", version: "1", handlers: [fail], observer: { fault() {} } };
  const server = createServer({ ...options, mapError, development: false });
  await using client = await connectTest(server, { era: "modern", transport: "memory" });
  const { content, isError } = await client.callTool("fail");
  await server.close();
  return { content, isError };
}

Deno.test("mapError can give the model a text for a tool's unexpected error", async () => {
  assertEquals(await callFailing((error) => error instanceof RangeError ? "Storage is full; try later." : undefined), {
    content: [{ type: "text", text: "Storage is full; try later." }],
    isError: true,
  });
  const blocks = [{ type: "text" as const, text: "one" }, { type: "text" as const, text: "two" }];
  assertEquals(await callFailing(() => new ToolError(blocks)), { content: blocks, isError: true });
});

Deno.test("if mapError returns undefined, the client does not see the error", async () => {
  for (const mapError of [undefined, () => undefined]) {
    const result = await callFailing(mapError);
    const [id] = /[0-9a-f]{8}/.exec(JSON.stringify(result)) ?? [];
    assertEquals(result, { content: [{ type: "text", text: `${sentence()} (${id})` }], isError: true });
  }
});

Deno.test("an error in mapError is reported only to the observer", async () => {
  const reported: unknown[] = [];
  await using client = await testClient({
    handlers: [fail],
    observer: { fault: ({ error }) => reported.push(error) },
    mapError: throwing(new Error("the mapping is wrong")),
  }, { era: "modern", transport: "memory" });
  const error = await client.callTool("fail").then(() => undefined, (error) => error);
  assertEquals(error?.code, -32603);
  assertEquals(reported.map(String), ["RangeError: the disk /dev/sda1 is full", "Error: the mapping is wrong"]);
});

for (const cacheScope of ["public", "private", undefined] as const) {
  Deno.test(`lists have the cacheScope ${cacheScope ?? "public by default"}`, async () => {
    await using client = await testClient({ handlers: [fail], cacheScope, ttlMs: 500 }, {
      era: "modern",
      transport: "memory",
    });
    const result = await client.request("tools/list");
    assertEquals([result.cacheScope, result.ttlMs], [cacheScope ?? "public", 500]);
  });
}
