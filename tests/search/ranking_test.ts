// The figures of the ranking, through the tools of a server: how many of 45 requests find a wanted tool, and at what cost.
import { assert, assertEquals } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";
import { compareCosts, startCost } from "../support/cost.ts";
import { type CatalogueTool, readCatalogue } from "./catalogues.ts";
import { measure, type Search } from "./measure.ts";
import { plainBm25 } from "./plain_bm25.ts";

/** Requests with a wanted tool among the first five. Raise this figure when the ranking gets better. */
const FLOOR = 22;

function toTools(tools: readonly CatalogueTool[]) {
  return tools.map(({ name, title, description, inputSchema }) =>
    tool({ name, title, description, input: { ...inputSchema }, run: () => "called" })
  );
}

function start(tools: readonly CatalogueTool[], limit?: number): Promise<Connection> {
  const handlers = [...toTools(tools), toolSearch({ limit })];
  return connectTest(createServer({ name: "fixture", version: "1.0.0", handlers }));
}

async function search(client: Connection, query: string): Promise<string> {
  return textOf(await client.callTool("search_tools", { query }));
}

Deno.test("the ranking finds more than a plain BM25 ranking", async () => {
  await using stack = new AsyncDisposableStack();
  const rank = (tools: readonly CatalogueTool[]): Search => {
    const opening = start(tools, 10).then((client) => stack.use(client));
    return async (query) => {
      const lines = (await search(await opening, query)).split("\n");
      return lines.flatMap((line) =>
        line.startsWith("{") ? [String(JSON.parse(line).name)] : /^- ([^\s:]+)/.exec(line)?.[1] ?? []
      );
    };
  };
  const { top1, top5, top10 } = await measure(rank);
  const plain = await measure(plainBm25);
  assert(
    top1 >= plain.top1 && top5 >= plain.top5 && top10 >= plain.top10,
    JSON.stringify({ top1, top5, top10, plain }),
  );
  assert(top5 >= FLOOR, `${top5} of 45 requests find a wanted tool, less than ${FLOOR}`);
});

Deno.test("a server with 1,223 tools has a short list, and finds each tool by its name", async () => {
  const tools = await readCatalogue("github");
  await using client = await start(tools);
  const list = JSON.stringify(await client.listTools());
  assert(list.length <= 2000, `the list has ${list.length} characters`);
  for (const { name } of tools.filter((_, at) => at % 100 === 0)) {
    const [, first] = (await search(client, name)).split("\n");
    assertEquals(JSON.parse(first).name, name);
  }
});

Deno.test("a search costs less than the list of all tools, once the index is made", async () => {
  await using client = await start(await readCatalogue("github"));
  const cost = startCost();
  await search(client, "add a label to an issue");
  const cold = cost();
  const costs = await compareCosts(
    { search: () => search(client, "add a label to an issue") },
    // 5 ms on a quiet machine, and a tenth of it without the compiler.
    ({ search }) => search <= Math.max(5, cold / 10),
  );
  assertEquals(costs, undefined, `cold ${cold} ms`);
});
