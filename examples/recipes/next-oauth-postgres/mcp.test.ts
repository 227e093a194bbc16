import { deepEqual } from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { connectTest } from "@x/mcp/testing";
import { mcp } from "./lib/mcp.ts";

const skip = process.env.DATABASE_URL ? false : "DATABASE_URL is not set";

test("a user sees only their own notes", { skip }, async () => {
  const text = `Buy milk ${crypto.randomUUID()}`;
  const open = (id: string) => connectTest(mcp, { principal: { id, scopes: ["notes:read", "notes:write"] } });
  const ada = await open("ada");
  await ada.callTool("add_note", { text });
  const read = async (client: typeof ada) => (await client.callTool("list_notes")).structuredContent;
  deepEqual(Object(await read(ada)).notes[0], text);
  const bob = await open("bob");
  deepEqual(Object(await read(bob)).notes.includes(text), false);
  await ada.close();
  await bob.close();
  await mcp.close();
  process.exit(); // the pool of connections keeps the process alive
});
