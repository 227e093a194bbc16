import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { connectTest } from "@x/mcp/testing";
import { create } from "./server.ts";

const ada = "ada-2f6c1e0b9d4a7853";

for (const era of ["modern", "legacy"] as const) {
  test(`a fact is remembered for the caller after the user has agreed (${era})`, async () => {
    const stored: string[] = [];
    const facts = {
      add: (user: string, fact: string) => Promise.resolve(stored.push(`${user}: ${fact}`)),
      list: () => Promise.resolve(stored),
    };
    const server = create({ facts, keys: { ada }, secret: "a secret of at least thirty-two characters" });
    const client = await connectTest(server, {
      era,
      headers: { authorization: `Bearer ${ada}` },
      onElicit: () => ({ action: "accept", content: { sure: true } }),
    });
    await client.callTool("remember", { fact: "tea" });
    deepEqual((await client.callTool("list_facts")).structuredContent, { facts: ["apikey:ada: tea"] });
    await client.close();
    await server.close();
  });
}
