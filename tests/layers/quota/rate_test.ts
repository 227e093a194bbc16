// Token buckets for rate limits: refilling, limits, and clients.
import { assert, assertEquals, assertThrows } from "@std/assert";
import { createServer, tool } from "../../../mod.ts";
import { quota } from "../../../src/layers/layers.ts";
import { Buckets } from "../../../src/layers/quota/rate.ts";
import { connectTest, fakeClock } from "../../../src/testing/testing.ts";
import { BOUNDS } from "../../support/limits.ts";
import { sentence } from "../../support/messages.ts";
import { ask, readReply } from "../../support/requests.ts";
import { openServer } from "../../support/servers.ts";

/** Number of new clients per period that have their own bucket. */
const MAX = BOUNDS.rates.clients;

Deno.test("a bucket refills with time, up to its burst", () => {
  const buckets = new Buckets({ calls: 2, perMs: 1000, burst: 3 }, MAX);
  assertEquals([1, 2, 3].map(() => buckets.consume("a", 0)), [0, 0, 0]);
  assertEquals(buckets.consume("a", 0), 500);
  assertEquals(buckets.consume("a", 200), 300);
  assertEquals(buckets.consume("a", 500), 0);
  assertEquals(buckets.consume("a", 500), 500);
  assertEquals(buckets.consume("b", 500), 0);
  assertEquals([1, 2, 3, 4].map(() => buckets.consume("a", 60_000)), [0, 0, 0, 500]);
});

Deno.test("no client can exceed its rate, whenever it calls", () => {
  let seed = 7;
  const random = () => (seed = seed * 16_807 % 2_147_483_647) / 2_147_483_647;
  for (let round = 0; round < 50; round++) {
    const rate = {
      calls: 1 + Math.floor(random() * 9),
      perMs: 100 + random() * 900,
      burst: 1 + Math.floor(random() * 5),
    };
    const buckets = new Buckets(rate, MAX);
    const taken: number[] = [];
    for (let now = 0; now < 20_000; now += random() * 200) {
      const wait = buckets.consume("a", now);
      if (!wait) taken.push(now);
      else assertEquals(buckets.consume("a", now + wait), 0, "the wait was too short");
      if (wait) {
        now += wait;
        taken.push(now);
      }
    }
    for (const [i, from] of taken.entries()) {
      const last = taken.length - 1;
      for (const to of [i + 5, i + 20, last].filter((to) => to <= last)) {
        const most = rate.burst + (taken[to] - from) * rate.calls / rate.perMs;
        assert(to - i + 1 <= most + 1e-6, `${to - i + 1} calls; at most ${most} are allowed`);
      }
    }
  }
});

Deno.test("the number of buckets is limited, and clients beyond the limit share one bucket", () => {
  const buckets = new Buckets({ calls: 1, perMs: 60_000 }, MAX);
  for (let i = 0; i < 10_000; i++) assertEquals(buckets.consume(`client ${i}`, 0), 0);
  assertEquals(buckets.consume("late", 0), 0);
  assertEquals(buckets.consume("later", 0), 60_000);
  assertEquals(buckets.consume("client 1", 1), 59_999);
  assertEquals(buckets.consume("later", 120_001), 0);
});

Deno.test("clients that return in each period do not make the number of buckets grow without limit", () => {
  const buckets = new Buckets({ calls: 1, perMs: 1000 }, MAX);
  for (let period = 0; period < 6; period++) {
    // New clients call first, followed by all earlier clients.
    for (let i = 10_000 * (period + 1) - 1; i >= 0; i--) buckets.consume(`client ${i}`, period * 1500);
  }
  assert(buckets.size <= 45_000, `${buckets.size} buckets`);
});

Deno.test("callers with many addresses do not affect the rate of principals, and many principals do not affect addresses", () => {
  const toAddress = (i: number) => `peer 2001:db8:${(i >> 8).toString(16)}:${((i % 256) << 8).toString(16)}`;
  const toPrincipal = (i: number) => `principal ${i}`;
  for (const [toMany, few] of [[toAddress, toPrincipal], [toPrincipal, toAddress]] as const) {
    const buckets = new Buckets({ calls: 1, perMs: 60_000 }, MAX);
    for (let i = 0; i < MAX + 6; i++) buckets.consume(toMany(i), 0);
    assert(buckets.consume(toMany(MAX + 7), 0) > 0, "the attack had no effect");
    for (let i = 0; i < 3; i++) {
      assertEquals(buckets.consume(few(i), 0), 0);
      assertEquals(buckets.consume(few(i), 1), 59_999);
    }
  }
});

Deno.test("an IPv6 /56 network counts as one client of a rate", async () => {
  const handlers = [tool({ name: "t", use: [quota({ rate: { calls: 2, perMs: 60_000 } })], run: () => "t" })];
  const server = openServer({ handlers });
  const statusOf = async (hostname: string) => {
    const from = { fetch: (request: Request) => server.fetch(request, { remoteAddr: { hostname } }) };
    return (await ask(from, "tools/call", { name: "t" })).status;
  };
  const within = ["2001:db8:7:4200::1", "2001:db8:7:42ff:1:2:3:4", "2001:db8:7:4217::9"];
  assertEquals(await Promise.all(within.map(statusOf)), [200, 200, 429]);
  const beside = ["2001:db8:7:4300::1", "2001:db8:7:41ff::1", "192.0.2.1", "192.0.2.2"];
  assertEquals(await Promise.all(beside.map(statusOf)), [200, 200, 200, 200]);
});

Deno.test("HTTP clients without an address share a rate, and a refused client is told when to retry", async () => {
  const clock = fakeClock();
  const handlers = [tool({ name: "t", use: [quota({ rate: { calls: 1, perMs: 3500 } })], run: () => "t" })];
  await using server = {
    ...createServer({ name: "x", version: "1", clock, handlers }),
    [Symbol.asyncDispose]: async () => await server.close(),
  };
  const post = () =>
    server.fetch(
      new Request("http://localhost/mcp", {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": "2025-11-25",
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "t" } }),
      }),
    );
  const first = await post();
  assertEquals(first.status, 200);
  await first.text();
  const second = await post();
  assertEquals([second.status, second.headers.get("retry-after")], [429, "4"]);
  assertEquals((await readReply(second)).error.data, { retryAfterMs: 3500 });
  await clock.advance(3500);
  const third = await post();
  assertEquals(third.status, 200);
  await third.text();
});

Deno.test("each server counts calls separately", async () => {
  const handlers = [tool({ name: "t", use: [quota({ rate: { calls: 1, perMs: 60_000 } })], run: () => "t" })];
  for (let i = 0; i < 2; i++) {
    const server = openServer({ handlers });
    await using client = await connectTest(server);
    await client.callTool("t");
  }
});

Deno.test("invalid limits are refused", () => {
  for (
    const [options, message] of [
      [{ timeoutMs: 0 }, sentence("timeoutMs", 0)],
      [{ concurrency: 0.5 }, sentence("concurrency.calls", 0.5)],
      [{ concurrency: { calls: 1, waiting: -1 } }, sentence("concurrency.waiting", -1)],
      [{ rate: { calls: 0, perMs: 1 } }, sentence("rate.calls", 0)],
      [{ rate: { calls: 0.5, perMs: 1 } }, sentence("burst")],
      [{ rate: { calls: 1, perMs: NaN } }, sentence("rate.perMs", NaN)],
      [{ resultBytes: -1 }, sentence("resultBytes", -1)],
    ] as const
  ) assertThrows(() => quota(options), TypeError, message);
  // The casts pass values that the types do not allow.
  assertThrows(
    () => quota({ onLarge: "drop" as "cut" }),
    TypeError,
    sentence("onLarge", "drop", "refuse", "cut", "link"),
  );
});
