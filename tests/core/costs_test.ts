// What inner calls, lists and endpoints of tenants cost in comparison with plain requests.
import { assert, assertEquals } from "@std/assert";
import { createServer, type Server, tool } from "../../mod.ts";
import { compareCosts } from "../support/cost.ts";
import { readReply, toRequest } from "../support/requests.ts";

const repeat = async (times: number, run: (time: number) => Promise<unknown>) => {
  for (let time = 0; time < times; time++) await run(time);
};

/** Compares costs like {@linkcode compareCosts}, but only once the engine has compiled the code of all runs. */
const compareWarm: typeof compareCosts = async (runs, isFine, options) => {
  await repeat(WARM_UP, async () => {
    for (const run of Object.values<() => unknown>(runs)) await run();
  });
  return await compareCosts(runs, isFine, options);
};

/** The number of runs before the comparison. */
const WARM_UP = 20;

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
  const costs = await compareWarm(
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
  const costs = await compareWarm(
    { requests: () => repeat(55, () => call("add")), inner: () => call("many") },
    (costs) => costs.inner <= costs.requests,
  );
  assertEquals(costs, undefined);
});

const add = tool({ name: "add", run: () => "3" });

/** Returns a function that makes a call as a listener passes it on, with the header `Host`. */
async function toCaller(server: Server): Promise<(host: string, path?: string) => Promise<void>> {
  const request = toRequest("tools/call", { name: "add" });
  const { method } = request;
  const headers = Object.fromEntries(request.headers);
  const body = await request.text();
  return async (host, path = "/mcp") => {
    const init = { method, headers: { ...headers, host }, body };
    const response = await server.fetch(new Request(`http://${host}${path}`, init));
    await response.text();
    assertEquals(response.status, 200);
  };
}

Deno.test("a call costs about the same with 1,000 hosts as with one host", async () => {
  const hosts = Array.from({ length: 1000 }, (_, at) => `t${at}.example.com`);
  const create = () => createServer({ name: "calc", version: "1.0.0", handlers: [add], hosts });
  await using one = create();
  await using many = create();
  const [callOne, callMany] = [await toCaller(one), await toCaller(many)];
  const costs = await compareWarm(
    {
      one: () => repeat(1000, () => callOne(hosts[0])),
      many: () => repeat(1000, (time) => callMany(hosts[time])),
    },
    (costs) => costs.many <= 1.25 * costs.one,
  );
  assertEquals(costs, undefined);
});

Deno.test("a call of a path with a parameter costs little more than a call of a path without one", async () => {
  await using plain = createServer({ name: "calc", version: "1.0.0", handlers: [add] });
  await using tenants = createServer({ name: "calc", version: "1.0.0", handlers: [add], path: "/tenants/:tenant/mcp" });
  const [callPlain, callTenant] = [await toCaller(plain), await toCaller(tenants)];
  const costs = await compareWarm(
    {
      plain: () => repeat(500, () => callPlain("localhost")),
      tenants: () => repeat(500, (time) => callTenant("localhost", `/tenants/t${time % 5}/mcp`)),
    },
    (costs) => costs.tenants <= 1.3 * costs.plain,
  );
  assertEquals(costs, undefined);
});
