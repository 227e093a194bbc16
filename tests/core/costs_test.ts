// What inner calls, lists and endpoints of tenants cost in comparison with plain requests.
import { assert, assertEquals } from "@std/assert";
import { createServer, type Server, tool } from "../../mod.ts";
import { compareCosts } from "../support/cost.ts";
import { readReply, toRequest } from "../support/requests.ts";

const repeat = async (times: number, run: (time: number) => Promise<unknown>) => {
  for (let time = 0; time < times; time++) await run(time);
};

/** The number of tools in a list of several pages. */
const TOOLS = 1000;

function listTools(allow?: () => boolean): Server {
  const input = { type: "object", properties: { text: { type: "string", description: "What to look for" } } } as const;
  const handlers = Array.from(
    { length: TOOLS },
    (_, at) =>
      tool({ name: `search_${at}`, description: `Searches the archive ${at}`, input, allow, run: () => "found" }),
  );
  return createServer({ name: "archives", version: "1.0.0", handlers });
}

/** Reads all pages of the list. Does not parse them, because that would take longer than what is measured. */
async function readList(server: Server): Promise<number> {
  let length = 0;
  let cursor: string | undefined;
  do {
    const response = await server.fetch(toRequest("tools/list", cursor === undefined ? {} : { cursor }));
    const text = await response.text();
    length += text.length;
    cursor = /"nextCursor":"([^"]*)"/.exec(text)?.[1];
  } while (cursor !== undefined);
  return length;
}

Deno.test("a list of 1,000 tools with allow costs at most three times as much as one without", async () => {
  await using open = listTools();
  await using decided = listTools(() => true);
  const length = await readList(open);
  // The cache scopes differ.
  const read = (server: Server) => async () => assert(Math.abs(await readList(server) - length) < 100);
  const costs = await compareCosts(
    { open: read(open), decided: read(decided) },
    (costs) => costs.decided <= 3 * costs.open,
  );
  assertEquals(costs, undefined);
});

Deno.test("100 inner calls cost at most as much as 55 requests", async () => {
  const add = tool({ name: "add", run: () => "3" });
  const many = tool({
    name: "many",
    run: async (_input, ctx) => {
      await repeat(100, () => ctx.callTool("add"));
      return "done";
    },
  });
  await using server = createServer({ name: "calc", version: "1.0.0", handlers: [add, many] });
  const call = async (name: string) => {
    const { result } = await readReply(await server.fetch(toRequest("tools/call", { name })));
    assert(!result.isError);
  };
  const costs = await compareCosts(
    { requests: () => repeat(55, () => call("add")), inner: () => call("many") },
    (costs) => costs.inner <= costs.requests,
  );
  assertEquals(costs, undefined);
});
