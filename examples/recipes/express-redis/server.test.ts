import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { connectTest } from "@x/mcp/testing";
import { create } from "./server.ts";

const ada = "ada-2f6c1e0b9d4a7853";

for (const era of ["modern", "legacy"] as const) {
  test(`a fact is remembered for the caller after the user has agreed (${era})`, async () => {
    const server = create({ keys: { ada }, secret: "a secret of at least thirty-two characters" });
    const client = await connectTest(server, {
      era,
      headers: { authorization: `Bearer ${ada}` },
      onElicit: () => ({ action: "accept", content: { sure: true } }),
    });
    const { content } = await client.callTool("remember", { fact: "tea" });
    deepEqual(content, [{ type: "text", text: "apikey:ada will remember it." }]);
    await client.close();
    await server.close();
  });
}
