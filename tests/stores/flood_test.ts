// Clients that send many requests at once use up only their own share of a store. Another client loses nothing, the
// leases of the instances are renewed, and no living task runs a second time.
import { assert, assertEquals } from "@std/assert";
import { missingRedis, startRedis } from "../support/redis/server.ts";
import { needs, requireAll } from "../support/required.ts";
import { Flood, KINDS, type Site, startSite, Worker } from "./flood_site.ts";

/** Long enough for a machine under load, on which a renewal may take several seconds. */
const LEASE_MS = 15_000;

/** Number of requests in a burst from all attacking clients together. One client has room for 96 in the store. */
const BURST = 128;
/** Number of requests in progress without a pause. With more requests, the load of this process would delay the lease. */
const STEADY = 32;

/** Lets a client work during a flood. */
type Work = (worker: Worker, flood: Flood) => Promise<void>;

/** Measures how long this process could not run, because other processes used the processors. */
class Pauses implements Disposable {
  readonly #pauses: { readonly end: number; readonly ms: number }[] = [];
  #last = performance.now();
  readonly #timer = setInterval(() => {
    const end = performance.now();
    this.#pauses.push({ end, ms: Math.max(0, end - this.#last - TICK_MS) });
    this.#last = end;
  }, TICK_MS);

  /** Returns the milliseconds in which the process could not run between two times. */
  between(from: number, to: number): number {
    return this.#pauses.reduce((sum, { end, ms }) => end > from && end <= to ? sum + ms : sum, 0);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

const TICK_MS = 100;

/** Tests whether the lease of each instance was renewed in time. */
function assertRenewed({ instances }: Site, pauses: Pauses): void {
  for (const { renewals } of instances) {
    const gaps = renewals.slice(1).map((time, i) => time - renewals[i] - pauses.between(renewals[i], time));
    assert(Math.max(0, ...gaps) < LEASE_MS, `${gaps.map(Math.round)} ms between renewals`);
  }
}

/** Lets a client work during a flood of requests of one kind. */
async function runFlood(kind: string, clients: number, work: Work): Promise<void> {
  requireAll(missingRedis);
  using pauses = new Pauses();
  await using redis = startRedis();
  await using site = startSite(redis.socket, LEASE_MS);
  const worker = new Worker(site);
  await worker.start();
  await worker.work();
  assertEquals(worker.lost, [], "before the flood");
  await work(worker, new Flood(site, [KINDS[kind]], clients));
  site.finish();
  assert((await worker.finish()).includes("worked"));
  assertEquals([worker.lost, site.charged], [[], { runs: 1, charges: 1 }]);
  assertRenewed(site, pauses);
}

for (const clients of [1, 4, 16]) {
  for (const name of Object.keys(KINDS)) {
    const title = `a client loses nothing while ${clients} other clients flood a store: ${name}`;
    // Each request of the client competes with a new burst of requests.
    const work: Work = async (worker, flood) => await worker.work(() => flood.send(BURST));
    Deno.test({ ...needs(title, missingRedis), fn: () => runFlood(name, clients, work) });
  }
  for (const name of ["tasks/get", "subscriptions to 100 tasks"]) {
    const title =
      `within two lease durations, no living task runs twice while ${clients} clients flood a store: ${name}`;
    const work: Work = async (worker, flood) => {
      const stop = flood.start(STEADY);
      const since = performance.now();
      while (!worker.lost.length && performance.now() - since < 2 * LEASE_MS) await worker.work();
      await stop();
    };
    Deno.test({ ...needs(title, missingRedis), fn: () => runFlood(name, clients, work) });
  }
}
