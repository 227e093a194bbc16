import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { connectTest } from "@x/mcp/testing";
import { create } from "./tickets.ts";

test("each user calls the API with their own key", async () => {
  const seen: (string | null)[] = [];
  const send = (request: Request) => {
    seen.push(request.headers.get("x-api-key"));
    return Promise.resolve(Response.json([]));
  };
  const users = {
    ada: { key: "ada-2f6c1e0b9d4a7853", apiKey: "key-of-ada" },
    bob: { key: "bob-7d1e5a3c9b2f4068", apiKey: "key-of-bob" },
  };
  const server = await create({ users, baseUrl: "https://api.example.com", fetch: send });
  for (const { key } of Object.values(users)) {
    const client = await connectTest(server, { headers: { authorization: `Bearer ${key}` } });
    await client.callTool("list_tickets");
    await client.close();
  }
  deepEqual(seen, ["key-of-ada", "key-of-bob"]);
});
