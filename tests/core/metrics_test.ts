// Metrics that use only the published observer count the operations of a random workload exactly.
import { assert, assertEquals } from "@std/assert";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { random } from "../support/random.ts";
import { until } from "../support/behaviour.ts";
import { metrics, type Totals } from "./metrics.ts";
import { createCounted } from "./metrics_server.ts";

/** An operation, with the keys of the counts that it increases. */
interface Operation {
  readonly run: (client: Connection) => Promise<unknown>;
  readonly call?: string;
  readonly refusal?: string;
  readonly limit?: string;
  readonly fault?: boolean;
}

const operations: readonly Operation[] = [
  { run: (client) => client.callTool("fine"), call: "tools/call result" },
  { run: (client) => client.callTool("later"), call: "tools/call result" },
  { run: (client) => client.callTool("progress", {}, { onProgress: () => {} }), call: "tools/call result" },
  { run: (client) => client.callTool("wrong"), call: "tools/call tool_error" },
  { run: (client) => client.callTool("error"), call: "tools/call error" },
  { run: (client) => client.callTool("fault"), call: "tools/call tool_error", fault: true },
  { run: (client) => client.callTool("unknown"), refusal: "params" },
  { run: (client) => client.request("no/such", {}), refusal: "method" },
  { run: (client) => client.listTools(), call: "tools/list result" },
  { run: (client) => client.readResource("note:1"), call: "resources/read result" },
  {
    run: (client) => client.request("tools/list", { _meta: { progressToken: "x".repeat(300) } }),
    refusal: "limit",
    limit: "request.idCharacters",
  },
];

type Counts = Record<string, number>;

/** Runs random operations for a seed, several of them concurrently. Returns the expected counts. */
async function work(
  client: Connection,
  seed: number,
): Promise<{ calls: Counts; refusals: Counts; limits: Counts; faults: number }> {
  const { pick, below } = random(seed);
  const calls: Counts = client.era === "legacy" ? { "initialize result": 1 } : {};
  const refusals: Counts = {};
  const limits: Counts = {};
  let faults = 0;
  const add = (counts: Counts, key?: string) => key && (counts[key] = (counts[key] ?? 0) + 1);
  for (let round = 0; round < 12; round++) {
    const running = Array.from({ length: 1 + below(6) }, () => {
      const { run, call, refusal, limit, fault } = pick(operations);
      add(calls, call);
      add(refusals, refusal);
      add(limits, limit);
      if (fault) faults++;
      return run(client).catch(() => {});
    });
    await Promise.all(running);
  }
  return { calls, refusals, limits, faults };
}

function check(totals: Totals, expected: Awaited<ReturnType<typeof work>>): void {
  assertEquals(totals.calls, expected.calls);
  assertEquals(totals.refusals, expected.refusals);
  assertEquals(totals.limits, expected.limits);
  assertEquals([totals.faults, totals.running], [expected.faults, 0]);
  for (const [method, ms] of Object.entries(totals.durations)) assert(ms >= 0 && ms < 60_000, `${method}: ${ms}`);
  assertEquals([totals.sessions, totals.streams, totals.subscriptions], [0, 0, 0]);
}

for (const era of ["modern", "legacy"] as const) {
  for (const transport of ["http", "memory", "pipe"] as const) {
    Deno.test(`metrics count a random workload exactly (${era} over ${transport})`, async () => {
      for (const seed of [1, 2, 3]) {
        const observer = metrics();
        const server = createCounted(observer);
        const client = await connectTest(server, { era, transport });
        const expected = await work(client, seed);
        const session = era === "legacy" ? 1 : 0;
        assertEquals(observer.totals().sessions, session);
        await client.close();
        await server.close();
        await until(() => observer.totals().streams === 0, "all streams have ended");
        check(observer.totals(), expected);
      }
    });
  }

  Deno.test(`metrics count a random workload exactly (${era} over stdio)`, async () => {
    const client = await connectTest(new URL("./metrics_program.ts", import.meta.url), { era, transport: "stdio" });
    const expected = await work(client, 4);
    await client.close();
    const stderr = await client.child?.stderr ?? "";
    check(JSON.parse(stderr.trim().split("\n").at(-1) ?? ""), expected);
  });
}
