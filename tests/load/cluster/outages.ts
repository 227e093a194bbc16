// Makes a store's engine unavailable to two instances. Calls that do not need the store must never fail, and must not
// become slower. Other calls must fail with an error message, and must succeed again within two seconds after the
// engine is available.
//
// deno task load:outages [--engine redis|postgres|sqlite|denokv] [--runtime deno|bun|mixed] [--seconds N]
import { DatabaseSync } from "node:sqlite";
import { type Client, connect } from "../../../src/client/client.ts";
import { readOptions } from "../../support/options.ts";
import type { PostgresServer } from "../../support/postgres/server.ts";
import type { RedisServer } from "../../support/redis/server.ts";
import { type Cluster, type Engine, ENGINES, MISSING, type Place, RUNTIMES, startCluster } from "./instances.ts";

/**
 * Maximum recovery time in milliseconds. Operations retry once per second, and after them the listener retries once per
 * second.
 */
const RECOVERY_MS = 3000;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A way to make an engine unavailable. */
interface Outage {
  readonly name: string;
  /** Makes the engine unavailable. Returns a function that makes the engine available again. */
  begin(cluster: Cluster): Promise<() => unknown>;
  /** Whether the outage lasts for `--seconds`. If not, the outage ends immediately. */
  readonly lasts: boolean;
  /** Whether the second instance is restarted, so that requests from its clients are refused during the restart. */
  readonly restarts?: boolean;
}

/** A database server that can be killed and suspended. */
type Killable = Pick<RedisServer | PostgresServer, "kill" | "start" | "pause" | "resume"> | undefined;

/** The outages of a server. `name` and `begin` are those of the last one, which loses the data and ends immediately. */
const failing = (find: (place: Place) => Killable, name: string, begin: (place: Place) => unknown): Outage[] => [
  {
    name: "killed and restarted",
    lasts: true,
    async begin({ place }) {
      await find(place)?.kill();
      return () => find(place)?.start();
    },
  },
  {
    name: "paused",
    lasts: true,
    begin({ place }) {
      find(place)?.pause();
      return Promise.resolve(() => find(place)?.resume());
    },
  },
  {
    name,
    lasts: false,
    async begin({ place }) {
      await begin(place);
      return () => {};
    },
  },
];

const redis = failing(
  (place) => place.redis,
  "flushed",
  (place) => new Deno.Command("redis-cli", { args: ["-s", place.redis?.socket ?? "", "flushall"] }).output(),
);
const postgres = failing(
  (place) => place.postgres,
  "emptied",
  (place) => place.postgres?.run("set client_min_messages = error; drop schema mcp cascade"),
);

const file: readonly Outage[] = [
  {
    name: "locked",
    lasts: true,
    begin({ place }) {
      const database = new DatabaseSync(place.path ?? "");
      database.exec("PRAGMA busy_timeout = 5000; BEGIN EXCLUSIVE");
      return Promise.resolve(() => {
        database.exec("ROLLBACK");
        database.close();
      });
    },
  },
  {
    name: "replaced",
    lasts: false,
    restarts: true,
    async begin({ place, instances: [, there] }) {
      for (const end of ["", "-wal", "-shm"]) {
        await Deno.rename(`${place.path}${end}`, `${place.path}.old${end}`).catch(() => {});
      }
      // After its restart, the second instance opens another file than the first instance still has open.
      await there.end("SIGTERM");
      await there.start();
      return () => {};
    },
  },
];

const OUTAGES: Readonly<Record<Engine, readonly Outage[]>> = { redis, postgres, sqlite: file, denokv: file };

/** What a client has observed for one kind of call. */
interface Heard {
  ms: number[];
  results: number;
  errors: Map<string, number>;
}

const median = (numbers: readonly number[]) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1] ?? NaN;

async function runOutage(engine: Engine, runtime: string, outage: Outage, seconds: number): Promise<readonly string[]> {
  await using cluster = await startCluster({ engine, runtimes: RUNTIMES[runtime], count: 2 });
  const faults: string[] = [];
  const open = (era: "modern" | "legacy", at: number) =>
    connect(`${cluster.instances[at].origin}/mcp`, { era, onWarning: () => {}, timeoutMs: 20_000 });
  const clients: Client[] = [];
  const plain: Heard = { ms: [], results: 0, errors: new Map() };
  const needing: Heard = { ms: [], results: 0, errors: new Map() };
  let isOver = false;
  const attempt = async <T>(heard: Heard, run: () => Promise<T>): Promise<T | undefined> => {
    const began = performance.now();
    try {
      const result = await run();
      heard.results++;
      return result;
    } catch (error) {
      const text = (error instanceof Error ? error.message : `${error}`).replace(/\(\w{8}\)/, "(…)");
      heard.errors.set(text, (heard.errors.get(text) ?? 0) + 1);
    } finally {
      heard.ms.push(performance.now() - began);
    }
  };
  const repeat = async (ms: number, run: () => Promise<unknown>) => {
    while (!isOver) await Promise.all([run(), pause(ms)]);
  };
  const loops: Promise<void>[] = [];
  for (const era of ["modern", "legacy"] as const) {
    for (const at of [0, 1]) {
      const client = await open(era, at);
      clients.push(client);
      loops.push(repeat(10, () => attempt(plain, () => client.callTool("test_simple_text"))));
    }
  }
  const [here, there] = clients;
  const subscription = await here.subscribe({ resourceSubscriptions: ["test://watched-resource"] });
  let changes = 0;
  const listening = (async () => {
    for await (const _ of subscription) changes++;
  })().catch(() => {});
  const count = (client: Client, key: string) =>
    attempt(needing, async () => {
      const { content: [first], isError } = await client.callTool("cluster_count", { key });
      const text = "text" in first ? String(first.text) : "";
      if (isError) throw new Error(text);
      return text;
    });

  await pause(3000);
  const before = median(plain.ms.splice(0));
  const restore = await outage.begin(cluster);
  const ends = performance.now() + (outage.lasts ? seconds * 1000 : 0);
  let slowest = 0;
  while (performance.now() < ends) {
    const began = performance.now();
    await count(here, crypto.randomUUID());
    slowest = Math.max(slowest, performance.now() - began);
    await pause(200);
  }
  const [failedMeanwhile, hadResults] = [[...needing.errors.values()].reduce((a, b) => a + b, 0), needing.results];
  const during = median(plain.ms.splice(0));
  restore();
  const restored = performance.now();
  // Wait until the instances again share counts and receive each other's changes.
  let recovered = Infinity;
  while (performance.now() - restored < 15_000) {
    const key = crypto.randomUUID();
    const known = changes;
    const [first, second] = [await count(here, key), await count(there, key)];
    await there.callTool("cluster_touch");
    for (let i = 0; i < 20 && changes === known; i++) await pause(10);
    if (first !== undefined && first === second && changes > known) {
      recovered = performance.now() - restored;
      break;
    }
    await pause(20);
  }
  isOver = true;
  await Promise.all(loops);
  for (const client of clients) await client.close().catch(() => {});
  await listening;
  if (plain.errors.size && !outage.restarts) faults.push(`calls without the store failed: ${[...plain.errors]}`);
  if (recovered > RECOVERY_MS) faults.push(`recovered after ${Math.round(recovered)} ms`);
  const times = `${before.toFixed(1)} → ${during.toFixed(1)} ms`;
  const needed = `${failedMeanwhile} refused, ${hadResults} answered, slowest ${Math.round(slowest)} ms`;
  console.log(
    `${engine} ${outage.name}, ${runtime}: ${plain.results} calls, median ${times}; that need it: ${needed}; recovered after ${
      Math.round(recovered)
    } ms`,
  );
  for (const [text, times] of needing.errors) console.log(`  ${times} × ${text}`);
  for (const { errors } of cluster.instances) {
    if (/Unhandled|Uncaught|panicked/.test(errors())) faults.push(`an instance: ${errors()}`);
  }
  for (const fault of faults) console.log(`FAULT ${fault}`);
  return faults;
}

const values = readOptions(Deno.args, { values: ["--engine", "--runtime", "--seconds"], flags: [] });
const seconds = Number(values.get("--seconds") ?? 30);
let [passed, failed] = [0, 0];
for (const engine of ENGINES.filter((each) => (values.get("--engine") ?? each) === each)) {
  const missing = MISSING[engine];
  if (missing) {
    console.log(`Skipped on ${engine}: ${missing}`);
    if (Deno.env.get("REQUIRE_ALL")) failed++;
    continue;
  }
  const runtime = engine === "denokv" ? "deno" : values.get("--runtime") ?? "mixed";
  for (const outage of OUTAGES[engine]) {
    if ((await runOutage(engine, runtime, outage, seconds)).length) failed++;
    else passed++;
  }
}
console.log(`${passed} passed, ${failed} failed`);
Deno.exit(failed ? 1 : 0);
