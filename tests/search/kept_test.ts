// What a search keeps for later queries: at most a fixed number of matches, and equal queries are ranked once.
import { assertEquals } from "@std/assert";
import { tool } from "../../mod.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { ToolIndex } from "../../src/ready/search/tool_index.ts";
import { ToolSet } from "../../src/ready/search/tool_set.ts";
import { compareCosts } from "../support/cost.ts";
import { readAnswer, toRequest } from "../support/requests.ts";
import { testServer } from "../support/test_server.ts";
import { readCatalogue } from "./catalogues.ts";

Deno.test("a set that nobody searches any more forgets its matches too", () => {
  const index = new ToolIndex(1000);
  const words = ["get", "list", "find", "merge", "issue", "label"];
  const tools = Array.from(
    { length: 100 },
    (_, at) => index.add({ name: `${words.join("_")}_${at}`, title: "", description: "", args: [], about: [] }),
  );
  const [idle, busy] = [new ToolSet(index, tools.slice(0, 50)), new ToolSet(index, tools.slice(50))];
  assertEquals(idle.find("get").places.length, 50);
  assertEquals(index.memoryOf(idle).matches.size, 1);
  for (let at = 50; at < 100 && index.memoryOf(idle).matches.size; at++) {
    for (const word of words) busy.find(word);
    busy.find(`${at}`);
  }
  assertEquals(index.memoryOf(idle).matches.size, 0);
  assertEquals(idle.find("get").places.length, 50);
});

Deno.test("equal queries that arrive together are ranked once", async () => {
  const tools = (await readCatalogue("github")).slice(0, 1000).map(({ name, title, description, inputSchema }) =>
    tool({ name, title, description, input: { ...inputSchema }, run: () => "called" })
  );
  const server = testServer({ handlers: [...tools, toolSearch()] });
  let count = 0;
  const search = async (query: string) => {
    const request = toRequest("tools/call", { name: "search_tools", arguments: { query } });
    const { result } = await readAnswer(await server.fetch(request, { principal: { id: "ada" } }));
    return result.content[0].text;
  };
  const common = "get list find show read set update edit create add delete";
  const many = (toQuery: (at: number) => string) =>
    Promise.all(Array.from({ length: 20 }, (_, at) => search(toQuery(at))));
  const costs = await compareCosts({
    equal: () => many(((query) => () => query)(`${common} ${count++}`)),
    different: () => many(() => `${common} ${count++}`),
  }, ({ equal, different }) => 1.5 * equal <= different);
  assertEquals(costs, undefined);
});
