// Limits that protect the client from a server: the rate of reconnects, and the duration and size of lists.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { connect } from "../../src/client/client.ts";
import { connectTest as connectTest } from "../../src/testing/testing.ts";
import { createServer } from "../../mod.ts";
import { agreed, discovered, fakeHttp, type Heard, ok, stream, url } from "./fakes.ts";
import { sentence } from "../support/messages.ts";
import { until } from "../support/behaviour.ts";

const tool = (name: string, description = "") => ({ name, description, inputSchema: { type: "object" } });

/** Creates a modern server that responds to `tools/list` with the result of `answer`. */
function listing(answer: (heard: Heard, page: number) => unknown) {
  let page = 0;
  return fakeHttp(async (heard) =>
    heard.method === "server/discover" ? discovered(heard) : ok(heard, Object(await answer(heard, page++)))
  );
}

Deno.test("a page of a list can have 300,000 items", async () => {
  const tools = Array.from({ length: 300_000 }, (_, i) => tool(`t${i}`));
  const { fetch } = listing(() => ({ resultType: "complete", tools }));
  await using client = await connect(url, { fetch });
  assertEquals((await client.listTools()).length, 300_000);
  const server = { ...createServer({ name: "large", version: "1.0.0" }), fetch };
  await using test = await connectTest(server);
  assertEquals((await test.listTools()).length, 300_000);
});

Deno.test("the total number of characters in all pages of a list is limited", async () => {
  const description = "x".repeat(16 * 1024 * 1024);
  const server = listing((_, page) => ({
    resultType: "complete",
    tools: [tool(`t${page}`, description)],
    nextCursor: `${page}`,
  }));
  await using client = await connect(url, { fetch: server.fetch });
  await assertRejects(() => client.listTools(), RangeError, sentence(67108864));
  assertEquals(server.heard.length, 1 + 4);
});

Deno.test("the total time for loading all pages of a list is limited", async () => {
  const server = listing(async (_, page) => {
    // Fixed wait: each page takes less time than the timeout of one request.
    await new Promise((resolve) => setTimeout(resolve, 40)); // Each page takes less time than the request timeout.
    return { resultType: "complete", tools: [], nextCursor: `${page}` };
  });
  await using client = await connect(url, { fetch: server.fetch });
  // Repeat the list, because on a busy machine a single page may exceed the timeout.
  await until(async () => {
    const started = performance.now();
    const { name } = await assertRejects(() => client.listTools({ timeoutMs: 100 }), DOMException);
    assertEquals(name, "TimeoutError");
    return performance.now() - started > 900;
  }, "a list that takes the maximum time");
});

Deno.test("a retry of 0 ms does not make the client reconnect without a delay", async () => {
  for (const retry of ["0", "00", "1"]) {
    let gets = 0;
    const server = fakeHttp((heard) => {
      if (heard.method === "initialize") {
        return Response.json({ jsonrpc: "2.0", id: heard.id, result: agreed }, { headers: { "mcp-session-id": "s" } });
      }
      if (heard.http === "GET") gets++;
      return heard.http === "DELETE" || heard.id === undefined && heard.http === "POST"
        ? undefined
        : stream([`id: 1\nretry: ${retry}\ndata:\n\n`]);
    });
    await using client = await connect(url, { fetch: server.fetch, revisions: ["2025-11-25"] });
    // Repeat the call, because on a busy machine the client may not reconnect twice in this time.
    await until(async () => {
      gets = 0;
      const started = performance.now();
      await assertRejects(() => client.callTool("endless", {}, { timeoutMs: 550 }), DOMException);
      const ms = performance.now() - started;
      assert(gets <= 1 + ms / 100, `${gets} times in ${ms} ms`);
      return gets >= 2;
    }, "two requests");
  }
});

Deno.test("a timeout that is not a positive number is refused", async () => {
  const server = listing(() => ({ resultType: "complete", tools: [] }));
  for (const ms of [NaN, 0, -1]) {
    await assertRejects(() => connect(url, { fetch: server.fetch, timeoutMs: ms }), RangeError, "timeoutMs");
    await assertRejects(() => connect(url, { fetch: server.fetch, probeMs: ms }), RangeError, "probeMs");
    await using client = await connect(url, { fetch: server.fetch });
    await assertRejects(() => client.listTools({ timeoutMs: ms }), RangeError, "timeoutMs");
    await assertRejects(() => client.callTool("t", {}, { timeoutMs: ms }), RangeError, "timeoutMs");
  }
});

Deno.test("a timeout does not expire immediately if it is Infinity or longer than a timer supports", async () => {
  const server = createServer({ name: "patient", version: "1.0.0" });
  for (const ms of [Infinity, 2 ** 40]) {
    await using client = await connect(server, { timeoutMs: ms, probeMs: ms });
    assertEquals(client.server.era, "modern");
    assertEquals(await client.listTools({ timeoutMs: ms }), []);
  }
});
