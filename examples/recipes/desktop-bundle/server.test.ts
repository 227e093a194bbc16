import { deepEqual, equal } from "node:assert/strict";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { connectTest } from "@x/mcp/testing";
import server from "./server.ts";

test("a note can be found and read, and files outside of the folder cannot", async () => {
  const folder = await mkdtemp(join(tmpdir(), "notes-"));
  await writeFile(join(folder, "todo.md"), "Buy milk");
  process.env.NOTES = folder;
  const client = await connectTest(server);
  deepEqual((await client.callTool("search_notes", { text: "MILK" })).structuredContent, { names: ["todo.md"] });
  deepEqual((await client.callTool("read_note", { name: "todo.md" })).content, [{ type: "text", text: "Buy milk" }]);
  equal((await client.callTool("read_note", { name: "../todo.md" })).isError, true);
  await client.close();
});
