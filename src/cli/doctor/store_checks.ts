/**
 * Checks a server's store with operations on keys of its own: whether the store responds, writes atomically, notifies
 * subscribers, expires values on time, and returns values unchanged.
 */
import type { UsedStore } from "../../host.ts";
import type { Store } from "../../stores/stores.ts";
import { deadline, delay } from "../../core/kit/deadline.ts";
import { type Check, createReport, type Finding, toReason } from "./report.ts";

/** Milliseconds after which the keys of an examination expire, in case the examination cannot remove them. */
const TTL_MS = 60_000;
/** Number of rounds of each atomicity check. */
const ROUNDS = 25;
/** Number of concurrent writers in each round. */
const WRITERS = 8;
/** Number of operations of each kind for measuring the latency. */
const OPERATIONS = 30;
/** Number of entries to publish. */
const RINGS = 10;
/** Maximum time in which each entry should reach the subscriber, in milliseconds. */
const RING_MS = 500;
/** Milliseconds after which an entry counts as lost. */
const DEAF_MS = 3000;
/** Time to live of the values that the expiry check writes, in milliseconds. */
const SHORT_MS = 2000;
/** Number of milliseconds by which a value may expire too early. */
const EARLY_MS = 300;
/** Number of milliseconds by which a value may expire too late. */
const LATE_MS = 500;
/** Milliseconds after which the expiry check stops waiting for a value to expire. */
const KEPT_MS = 10_000;
/** Number of attempts at the first operation, because each attempt waits for the connection only until its timeout. */
const CONNECT_ATTEMPTS = 5;
/** Number of values to write for checking that the store does not evict values. */
const VALUES = 50;

/** The store, opened twice as if by two processes, and the keys of the examination. */
interface Bench {
  readonly used: UsedStore;
  readonly stores: readonly [Store, Store];
  /** Returns a key with the prefix of this examination. */
  key(name: string): string;
}

/** Examines a store. The keys of the examination begin with `doctor-` and are removed at the end. */
export async function examineStore(used: UsedStore, signal?: AbortSignal): Promise<readonly Finding[]> {
  const report = createReport(signal);
  if (!used.isShared) {
    report.at("shared").note(
      "the store is in memory, so only this process can reach it",
      "use redisStore, postgresStore, sqliteStore or denoKvStore if the server runs in several processes",
    );
  }
  const stores = [used.reopen(), used.reopen()] as const;
  const prefix = `doctor-${crypto.randomUUID()}-`;
  const bench: Bench = { used, stores, key: (name) => prefix + name };
  try {
    if (!await checkReachable(bench, report.at("reachable"))) return report.findings;
    for (const [name, run] of CHECKS) {
      if (signal?.aborted) break;
      const check = report.at(name);
      await run(bench, check).catch((error) => check.problem(`an operation failed: ${toReason(error)}`, FAILED));
    }
    await removeKeys(bench, prefix);
  } finally {
    await Promise.all(stores.map((store) => store.close()));
  }
  return report.findings;
}

const FAILED = "read the log of the store's engine around this time, and run doctor again";

type Run = (bench: Bench, check: Check) => Promise<void>;

const CHECKS: readonly (readonly [name: string, run: Run])[] = [
  ["latency", checkLatency],
  ["atomic values", checkValues],
  ["atomic logs", checkLogs],
  ["rings", checkRings],
  ["value size", checkSize],
  ["expiry", checkExpiry],
  ["eviction", checkEviction],
];

// Checks whether the store responds. Also writes the values that the eviction check reads later.
async function checkReachable({ stores: [a, b], key }: Bench, check: Check): Promise<boolean> {
  try {
    await connect(a, key("reachable"));
    await connect(b, key("connected"));
    for (let i = 0; i < VALUES; i++) await a.set(key(`kept-${i}`), `${i}`, { ttlMs: TTL_MS });
    if ((await b.get(key("reachable")))?.value === "doctor") {
      check.ok("another connection can read a value that one connection wrote");
      return true;
    }
    check.problem(
      "another connection cannot read a value that one connection wrote",
      "connect all processes to the same data: the same host, database, file and prefix, and not a replica that lags behind",
    );
  } catch (error) {
    check.problem(
      `the store cannot be used: ${toReason(error)}`,
      "start the store's engine, and check the client's address, password and permissions",
    );
  }
  return false;
}

// Retries the first operation, because it waits for the connection, and connecting may take longer than the operation's
// timeout.
async function connect(store: Store, key: string): Promise<void> {
  const errors: unknown[] = [];
  while (errors.length < CONNECT_ATTEMPTS) {
    try {
      return void await store.set(key, "doctor", { ttlMs: TTL_MS });
    } catch (error) {
      errors.push(error);
    }
  }
  // Throw the first error, because later errors state only that an earlier operation failed.
  throw errors[0];
}

async function checkLatency({ used: { timeoutMs }, stores: [store], key }: Bench, check: Check): Promise<void> {
  const times: number[] = [];
  const time = async (run: () => unknown) => {
    const since = performance.now();
    await run();
    times.push(performance.now() - since);
  };
  for (let i = 0; i < OPERATIONS; i++) {
    await time(() => store.set(key("latency"), `${i}`, { ttlMs: TTL_MS }));
    await time(() => store.get(key("latency")));
    await time(() => store.append(key("latency-log"), `${i}`, { ttlMs: TTL_MS, max: 100 }));
  }
  times.sort((a, b) => a - b);
  const [median, slowest] = [times[times.length >> 1], times[times.length - 1]];
  const message = `the median time of ${times.length} operations is ${toMs(median)}, the longest ${toMs(slowest)}`;
  if (slowest <= timeoutMs / 2) return check.ok(message);
  check.note(
    `${message}; an operation fails after ${timeoutMs} ms`,
    "run the engine closer to the server, or increase the store's timeoutMs",
  );
}

async function checkValues({ stores, key }: Bench, check: Check): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const name = key(`value-${round}`);
    for (const version of [null, undefined]) {
      const known = version === null ? null : (await stores[0].get(name))?.version;
      const done = await Promise.all(
        Array.from(
          { length: WRITERS },
          (_, i) => stores[i % 2].set(name, `${i}`, { ttlMs: TTL_MS, version: known }),
        ),
      );
      const winners = done.flatMap((version, index) => version === undefined ? [] : [{ version, value: `${index}` }]);
      const found = await stores[1].get(name);
      if (winners.length === 1 && winners[0].version === found?.version && winners[0].value === found.value) continue;
      return check.problem(
        `of ${WRITERS} concurrent writes that require the same version, ${winners.length} succeeded` +
          (winners.length === 1 ? ", but the store then returned a different value" : ""),
        "in the engine's set(), compare the version and write in one atomic step, such as a script or a transaction",
      );
    }
  }
  check.ok(
    `of ${WRITERS} concurrent writes that require the same version, exactly one succeeds (tested ${2 * ROUNDS} times)`,
  );
}

async function checkLogs({ stores, key }: Bench, check: Check): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const [log, options] = [key(`log-${round}`), { ttlMs: TTL_MS, max: 100 }];
    const add = (i: number) => stores[i % 2].append(log, `${i % 4}`, { ...options, token: `token-${i % 4}` });
    const ids = await Promise.all(Array.from({ length: WRITERS }, (_, i) => add(i)));
    ids.push(await add(0));
    const { entries } = await stores[1].read(log, { limit: 100 });
    const isOnce = entries.length === 4 && new Set(ids).size === 4 &&
      entries.every(({ id }, index) => id === index + 1) && ids[0] === ids[4] && ids[0] === ids[WRITERS];
    if (isOnce) continue;
    return check.problem(
      `${ids.length} appends with 4 tokens created ${entries.length} entries with ${new Set(ids).size} ids`,
      "in the engine's append(), look up the token, assign the id and write the entry in one atomic step",
    );
  }
  check.ok(`an entry with a token is appended only once, even by concurrent writers (tested ${ROUNDS} times)`);
}

async function checkRings({ used, stores: [writer], key }: Bench, check: Check): Promise<void> {
  const canListen = await used.canListen();
  // Turn off polling if the engine can notify, so that the entry can arrive only through a notification.
  const listener = canListen ? used.reopen({ pollMs: TTL_MS }) : used.reopen();
  const topic = key("topic");
  let heard: (text: string) => void = () => {};
  try {
    const stop = await listener.subscribe(topic, (text) => heard(text));
    let slowest = 0;
    for (let i = 0; i < RINGS; i++) {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      heard = (text) => text === `${i}` && resolve(true);
      const since = performance.now();
      await writer.append(topic, `${i}`, { ttlMs: TTL_MS, max: 100 });
      if (!await deadline(promise, { ms: DEAF_MS, onTimeout: () => false })) {
        return check.problem(
          `an entry did not reach another connection within ${DEAF_MS} ms`,
          canListen
            ? "check that the client is allowed to subscribe, that its subscriber reconnects, and that both " +
              "connections reach the same server"
            : "check that both connections reach the same server",
        );
      }
      slowest = Math.max(slowest, performance.now() - since);
    }
    stop();
    const message = `another connection received ${RINGS} entries, the slowest after ${toMs(slowest)}`;
    if (slowest > RING_MS) {
      check.note(`${message}; an entry should take less than ${RING_MS} ms`, "run the engine closer to the server");
    } else if (canListen) check.ok(message);
    else check.ok(`${message}; the engine does not notify, so the store reads every topic at an interval (pollMs)`);
  } finally {
    await listener.close();
  }
}

async function checkSize({ used: { valueBytes }, stores: [a, b], key }: Bench, check: Check): Promise<void> {
  const text = "✓".repeat(Math.floor(valueBytes / 3));
  try {
    await a.set(key("large"), text, { ttlMs: TTL_MS });
  } catch (error) {
    if (error instanceof RangeError) {
      return check.ok(`the engine rejects a value of ${valueBytes} bytes: ${toReason(error)}`);
    }
    return check.problem(
      `a value of ${valueBytes} bytes cannot be written: ${toReason(error)}`,
      "decrease the store's valueBytes, or increase the engine's size limit or memory",
    );
  }
  const isWhole = (await b.get(key("large")))?.value === text;
  await a.delete(key("large"));
  if (isWhole) return check.ok(`a value of ${valueBytes} bytes is returned unchanged`);
  check.problem(
    `a value of ${valueBytes} bytes is returned changed or not at all`,
    "decrease the store's valueBytes, and use UTF-8 as the engine's text encoding",
  );
}

async function checkExpiry({ stores: [a, b], key }: Bench, check: Check): Promise<void> {
  const name = key("short");
  const before = performance.now();
  await a.set(name, "1", { ttlMs: SHORT_MS });
  const written = performance.now();
  let present = before;
  for (;;) {
    const asked = performance.now();
    const isThere = await b.get(name) !== undefined;
    const answered = performance.now();
    if (!isThere && answered - before < SHORT_MS - EARLY_MS) {
      return check.problem(
        `a value with a time to live of ${SHORT_MS} ms was missing after ${toMs(answered - before)}`,
        "synchronize the clocks of the engine and this machine, and check that the engine does not evict values",
      );
    }
    if (!isThere) break;
    present = asked;
    if (present - written > KEPT_MS) break;
    await delay(50);
  }
  const kept = present - written;
  if (kept > SHORT_MS + LATE_MS) {
    const state = kept > KEPT_MS ? `still existed after ${toMs(kept)}` : `expired only after ${toMs(kept)}`;
    return check.problem(
      `a value with a time to live of ${SHORT_MS} ms ${state}`,
      "synchronize the clocks of the engine and this machine, and check the deadline in the engine's get()",
    );
  }
  check.ok(`a value with a time to live of ${SHORT_MS} ms expires on time`);
}

async function checkEviction({ stores: [, store], key }: Bench, check: Check): Promise<void> {
  const found = await Promise.all(Array.from({ length: VALUES }, (_, i) => store.get(key(`kept-${i}`))));
  const lost = found.filter((each, i) => each?.value !== `${i}`).length;
  if (lost) {
    return check.problem(
      `${lost} of ${VALUES} values were lost before they expired`,
      "give the engine more memory, and configure it to reject writes instead of evicting values (Redis: " +
        "maxmemory-policy noeviction)",
    );
  }
  check.ok(
    `all ${VALUES} values still existed at the end; if the engine can evict values, configure it to reject ` +
      "writes instead (Redis: maxmemory-policy noeviction)",
  );
}

async function removeKeys({ stores: [store] }: Bench, prefix: string): Promise<void> {
  try {
    for (let left = 10; left; left--) {
      const found = await store.list(prefix, { limit: 1000 });
      if (!found.length) break;
      for (const { key } of found) await store.delete(key);
    }
    const logs = ["latency-log", "topic", ...Array.from({ length: ROUNDS }, (_, i) => `log-${i}`)];
    for (const log of logs) await store.trim(prefix + log, (await store.read(prefix + log, { limit: 0 })).last + 1);
  } catch {
    // Ignore the error, because the keys expire.
  }
}

function toMs(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}
