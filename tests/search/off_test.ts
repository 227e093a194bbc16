// Clients that ask for the list of all tools of a server with a search.
import { assertEquals } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { connect } from "../../src/client/client.ts";
import { toolSearch, type ToolSearchOptions } from "../../src/ready/search/search.ts";
import { toCommand } from "../../src/testing/http_server.ts";
import { readReply, toRequest } from "../support/requests.ts";

const add = tool({ name: "add", description: "Adds an item", run: () => "added" });

function start(options: ToolSearchOptions = {}) {
  return createServer({
    name: "fixture",
    version: "1.0.0",
    cacheScope: "public",
    ttlMs: 1000,
    handlers: [add, toolSearch(options)],
  });
}

/** Requests the list of tools with a query in the URL. Returns the names, and the cache scope. */
async function list(server: ReturnType<typeof start>, query: string) {
  const { url, headers, method, body } = toRequest("tools/list");
  const request = new Request(url + query, { headers, method, body: await new Response(body).text() });
  const { result } = await readReply(await server.fetch(request));
  return [result.tools.map(({ name }: { readonly name: string }) => name), result.cacheScope];
}

Deno.test("?search=off returns the list of all tools, which stays cacheable", async () => {
  await using server = start();
  assertEquals(await list(server, ""), [["search_tools", "call_tool"], "public"]);
  assertEquals(await list(server, "?search=off"), [["add"], "public"]);
  assertEquals(await list(server, "?a=1&search=OFF"), [["add"], "public"]);
  for (const query of ["?search=on", "?search", "?search=false", "?Search=off", "?search=on&search=off"]) {
    assertEquals(await list(server, query), [["search_tools", "call_tool"], "public"]);
  }
});

Deno.test("lists are private with the option when", async () => {
  await using server = start({ when: () => true });
  assertEquals(await list(server, ""), [["search_tools", "call_tool"], "private"]);
  assertEquals(await list(server, "?search=off"), [["add"], "private"]);
});

Deno.test("?search=off works in a session", async () => {
  await using server = start();
  for (const [query, names] of [["", ["search_tools", "call_tool"]], ["?search=off", ["add"]]] as const) {
    await using client = await connect(`http://localhost/mcp${query}`, {
      fetch: async (...given) => await server.fetch(new Request(...given)),
      era: "legacy",
    });
    assertEquals((await client.listTools()).map(({ name }) => name), [...names]);
  }
});

Deno.test("MCP_SEARCH=off returns the list of all tools over stdio", async () => {
  const words = toCommand(new URL("./stdio_server.ts", import.meta.url));
  const [command, ...args] = words.flatMap((word) => word === "--no-prompt" ? [word, "--allow-env=MCP_SEARCH"] : word);
  for (
    const [value, names] of [["false", ["search_tools", "call_tool"]], ["off", ["add"]], ["OFF", ["add"]]] as const
  ) {
    await using client = await connect({ command, args, env: { MCP_SEARCH: value } });
    assertEquals((await client.listTools()).map(({ name }) => name), [...names]);
  }
});
