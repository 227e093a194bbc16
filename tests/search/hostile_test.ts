// Attacks on a search: questions about a hidden tool, huge texts, and lists that differ for each caller.
import { assert, assertEquals } from "@std/assert";
import { type Handler, tool } from "../../mod.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";
import { startCost } from "../support/cost.ts";
import { testServer } from "../support/test_server.ts";

const isAda = ({ principal }: { readonly principal?: { readonly id: string } }) => principal?.id === "ada";

async function start(handlers: readonly Handler[], id?: string): Promise<Connection> {
  const server = testServer({ handlers: [...handlers, toolSearch()] });
  return await connectTest(server, id ? { principal: { id } } : {});
}

async function search(client: Connection, query: string): Promise<string> {
  return textOf(await client.callTool("search_tools", { query }));
}

Deno.test("ten thousand questions reveal nothing of a hidden tool", async () => {
  const shared = ["open issue", "close issue", "list tickets", "send report", "wipe cache", "make backup"].map((text) =>
    tool({ name: text.replace(" ", "_"), description: `${text} of the team, with a report`, run: () => text })
  );
  const hidden = tool({
    name: "wipe_disk_of_president",
    description: "Wipes the secret disk of the president, without a report to the team",
    about: ["nuke"],
    annotations: { readOnlyHint: true },
    allow: isAda,
    run: () => "wiped",
  });
  await using ada = await start([hidden, ...shared], "ada");
  assert((await search(ada, "president")).includes(hidden.name), "Ada finds the tool");
  await using eve = await start([hidden, ...shared], "eve");
  await using nobody = await start(shared, "eve");
  assertEquals(await eve.listTools(), await nobody.listTools());
  const words = ["wipe", "disk", "president", "nuke", "secret", "report", "team", "issue", "list", "the", "backup"];
  let at = 0;
  for (; at < 10_000; at += 20) {
    // Nine of ten questions have several words, in different orders.
    const queries = Array.from({ length: 20 }, (_, i) => {
      const n = at + i;
      return [1, 7, 31].slice(0, n % 10 ? 3 : 1).map((step) => words[(n * step + (n >> 4)) % words.length]).join(" ");
    });
    const ask = (client: Connection) => Promise.all(queries.map((query) => search(client, query)));
    assertEquals(await ask(eve), await ask(nobody));
  }
  for (const by of ["call_tool", "call_read_only_tool"]) {
    for (const name of [hidden.name, "wipe_disk", "open_issue"]) {
      const ask = async (client: Connection) => await client.callTool(by, { name });
      assertEquals(await ask(eve), await ask(nobody));
    }
  }
});

Deno.test("texts of 1 MB cost little time, and are cut", async () => {
  const long = "AbC1 ".repeat(200_000);
  const listed = (name: string, description: string, schema: object = {}) =>
    tool.from({ name, description, inputSchema: { type: "object", ...schema } }, () => "called");
  const properties = Object.fromEntries(
    Array.from({ length: 20_000 }, (_, at) => [`a${at}`, { description: "word ".repeat(9) }]),
  );
  const handlers = [
    listed("one", long),
    listed("two", "A".repeat(1_000_000)),
    listed("three", "word", { properties, required: Object.keys(properties) }),
    listed("four", "\u{1f600}词".repeat(300_000)),
    listed("five", "word", { properties: { word: { description: long } } }),
  ];
  await using client = await start(handlers);
  const cost = startCost();
  for (const query of ["abc", "word", "A".repeat(500), "词", "a1 ".repeat(166), "Ａｂｃ"]) {
    const found = await search(client, query);
    assert(found.length < 60_000, `the result has ${found.length} characters`);
  }
  assert(cost() < 5000, "searching takes less than 5 s");
  const refused = await client.callTool("search_tools", { query: long });
  assert(refused.isError);
  assert(textOf(refused).length < 1000);
});

Deno.test("tools that differ for each caller do not fill the memory, and each caller finds its own", async () => {
  const alphabet = Array.from({ length: 26 }, (_, at) => String.fromCharCode(97 + at));
  const words = (id: string, at: number) => alphabet.map((each) => `${each}${id}x${at}`).join(" ");
  const handlers = Array.from({ length: 60 }, (_, at) =>
    tool({
      name: `tool_${at}`,
      forCaller: ({ principal }) => ({ description: words(String(principal?.id), at) }),
      run: () => at,
    }));
  const server = testServer({ handlers: [...handlers, toolSearch()] });
  // 130 callers have 200,000 different words, more than the index has room for.
  for (let caller = 0; caller < 130; caller++) {
    await using client = await connectTest(server, { principal: { id: `p${caller}` } });
    const [, first] = (await search(client, `kp${caller}x7`)).split("\n");
    assertEquals(JSON.parse(first).name, "tool_7");
    if (caller) assertEquals((await search(client, "kp0x7")).startsWith("No tool"), true);
  }
});

Deno.test("searches of callers whose tools do not fit into one index do not wait for each other", async () => {
  const words = (id: string, at: number) =>
    Array.from({ length: 140 }, (_, i) => `${id}${(at * 7 + i) % 997}`).join(" ");
  const handlers = Array.from({ length: 300 }, (_, at) =>
    tool({
      name: `tool_${at}`,
      forCaller: ({ principal }) => ({ description: words(String(principal?.id), at) }),
      run: () => at,
    }));
  const server = testServer({ handlers: [...handlers, toolSearch()] });
  const ids = [..."abcdefghijkl"];
  const found = await Promise.all(ids.map(async (id) => {
    await using client = await connectTest(server, { principal: { id } });
    return (await search(client, `${id}5`)).slice(0, 4);
  }));
  assertEquals(found, ids.map(() => "The "));
});
