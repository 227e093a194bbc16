// The recipes in examples/: guarded files, one server in five files, and the validators valibot and arktype.
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { connectTest, type ConnectTestOptions } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";
import { withEnvironment } from "../support/environment.ts";
import { sentence } from "../support/messages.ts";

async function load(path: string) {
  return (await import(new URL(`../../examples/${path}`, import.meta.url).href)).default;
}

const WAYS: readonly ConnectTestOptions[] = (["modern", "legacy"] as const).flatMap((era) =>
  (["http", "pipe"] as const).map((transport) => ({ era, transport }))
);

for (const options of WAYS) {
  const way = `${options.era} over ${options.transport}`;

  Deno.test(`validators.ts checks arguments with valibot and arktype (${way})`, async () => {
    const server = await load("validators.ts");
    await using client = await connectTest(server, options);
    const tools = await client.listTools();
    assertEquals(tools.map(({ inputSchema }) => inputSchema.type), ["object", "object"]);
    assertEquals(textOf(await client.callTool("order", { item: "tea" })), "Ordered 1 × TEA");
    assertEquals((await client.callTool("order", { item: "tea", count: 50 })).isError, true);
    const route = await client.callTool("route", { from: "Rome", to: "Oslo", stops: ["Wien"] });
    assertEquals(route.structuredContent, { km: 0, stops: 1 });
    assertEquals((await client.callTool("route", { from: "" })).isError, true);
  });

  Deno.test(`desk/ is one server in five files (${way})`, async () => {
    const server = await load("desk/server.ts");
    await using guest = await connectTest(server, options);
    await using ada = await connectTest(server, { ...options, principal: { id: "ada" } });
    const names = async (client: typeof ada) => (await client.listTools()).map(({ name }) => name).sort();
    assertEquals([await names(guest), await names(ada)], [["notes_write"], ["notes_remove", "notes_write"]]);
    const title = `t${crypto.randomUUID().slice(0, 8)}`;
    await guest.callTool("notes_write", { title, text: "Milk" });
    assertEquals((await guest.listResources()).some(({ uri }) => uri === `note://${title}`), true);
    const { messages } = await guest.getPrompt("notes_summarize", { title });
    assertStringIncludes(JSON.stringify(messages), "Milk");
    await assertRejects(() => guest.callTool("notes_remove", { title }), Error, sentence("notes_remove"));
    assertEquals(textOf(await ada.callTool("notes_remove", { title })), `Removed ${title}.`);
    await assertRejects(() => guest.getPrompt("notes_summarize", { title }), Error, sentence());
  });
}

Deno.test("files.ts reads only files inside its folder, and redacts keys", async () => {
  const outside = await mkdtemp("/tmp/mcp-outside-");
  const folder = await mkdtemp("/tmp/mcp-folder-");
  try {
    await writeFile(`${outside}/secret.txt`, "secret");
    await writeFile(`${folder}/a.txt`, "The key is sk-1234567890abcdef.");
    await symlink(`${outside}/secret.txt`, `${folder}/link.txt`);
    const server = await withEnvironment({ FOLDER: folder }, () => load("files.ts"));
    for (const options of WAYS) {
      await using client = await connectTest(server, options);
      const { structuredContent } = await client.callTool("list_files");
      assertEquals(structuredContent, { files: ["a.txt"] });
      const read = await client.callTool("read_file", { path: "a.txt" });
      assertEquals(read.structuredContent, { path: "a.txt", text: "The key is [hidden]." });
      assertEquals(JSON.stringify(read).includes("1234567890"), false);
      const paths = ["../secret.txt", `${outside}/secret.txt`, "link.txt", "none.txt", "/etc/passwd", "a.txt/../../x"];
      for (const path of paths) {
        const refused = await client.callTool("read_file", { path });
        assertEquals([refused.isError, textOf(refused).startsWith("There is no ")], [true, true], path);
      }
    }
  } finally {
    await rm(outside, { recursive: true });
    await rm(folder, { recursive: true });
  }
});
