import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { connectTest } from "@x/mcp/testing";
import { create } from "./server.ts";

const ada = "ada-2f6c1e0b9d4a7853";

test("a note is stored after the user has confirmed it", async () => {
  const stored = new Map<string, string[]>();
  const storage = {
    get: (key: string) => Promise.resolve(stored.get(key)),
    put: (key: string, value: string[]) => Promise.resolve(void stored.set(key, value)),
  };
  const server = create({ keys: { ada }, secret: "a secret of at least thirty-two characters", storage });
  const client = await connectTest(server, {
    headers: { authorization: `Bearer ${ada}` },
    onElicit: () => ({ action: "accept", content: { sure: true } }),
  });
  await client.callTool("add_note", { text: "Buy milk" });
  deepEqual(stored.get("notes"), ["Buy milk"]);
  await client.close();
  await server.close();
});
