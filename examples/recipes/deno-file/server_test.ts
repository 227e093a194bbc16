import { connectTest } from "@x/mcp/testing";
import server from "./server.ts";

Deno.test("a note can be read after it was written", async () => {
  await using client = await connectTest(server);
  await client.callTool("write_note", { title: "todo", text: "Buy milk" });
  const { content: [block] } = await client.callTool("read_note", { title: "todo" });
  if (block.type !== "text" || block.text !== "Buy milk") throw new Error(JSON.stringify(block));
});
