// Sends all cases concurrently to a server with 512 MB of memory. The server must survive, and must still serve another
// client.
import { quantile, readRss, type Runtime, sleep } from "../processes.ts";
import { all, atMost, type Figure } from "../figure.ts";
import { costCases, type Known, modern, plain, type Sent } from "./cases.ts";
import { MOST, openKnown, send } from "./cost.ts";
import { heldCases, Opened } from "./held.ts";
import { type Abused, readPeak, startAbused } from "./server.ts";
import { watchApart, type Watched } from "./watch.ts";

const HEAP_MB = 512;
/** Number of clients that send costly requests, and of connections that send plain calls. */
const ATTACKERS = 16;
const CONNECTIONS = 64;
const SMALL = 65_536;

/** Sends requests sequentially, each as soon as the previous response has arrived. */
async function attack(server: Abused, next: (n: number) => Sent, signal: AbortSignal, seed: number): Promise<number> {
  let count = 0;
  for (let n = seed; !signal.aborted && !server.isDead; n += 7) {
    const stop = AbortSignal.any([signal, AbortSignal.timeout(10_000)]);
    await send(server.url, next(n), stop).catch(() => sleep(10));
    count++;
  }
  return count;
}

/**
 * Runs the cases of `heldCases` one after another until the run ends. Each case makes the server hold memory for a few
 * seconds, and then releases the memory.
 */
async function hold(server: Abused, signal: AbortSignal, begun: string[]): Promise<void> {
  while (!signal.aborted && !server.isDead) {
    for (const each of heldCases) {
      begun.push(each.name);
      const open = new Opened();
      const limit = Math.min(each.count, 60);
      const until = performance.now() + 3000;
      const begin = async () => {
        for (let i = 0; i < limit && !signal.aborted && !server.isDead && performance.now() < until; i++) {
          await each.begin(server, open, i);
        }
      };
      await Promise.race([begin().catch(() => {}), sleep(3500)]);
      open.close();
      if (signal.aborted || server.isDead) return;
    }
  }
}

interface Phase {
  readonly seconds: number;
  readonly connections: number;
  readonly next?: (n: number) => Sent;
  /** If set, every case holds memory, and the name of each case that has started is added to this list. */
  readonly holds?: string[];
}

async function run(
  server: Abused,
  { seconds, connections, next, holds }: Phase,
): Promise<Watched & { readonly sent: number }> {
  const stop = AbortSignal.timeout(seconds * 1000);
  const attackers = next ? Array.from({ length: connections }, (_, i) => attack(server, next, stop, i)) : [];
  const [watched, counts] = await Promise.all([
    watchApart(server.port, seconds * 1000),
    Promise.all(attackers),
    holds ? hold(server, stop, holds) : undefined,
  ]);
  return { ...watched, sent: counts.reduce((sum, each) => sum + each, 0) };
}

/** Builds the requests once, because building them during the attack would slow down the clients. */
function toRequests(known: Known, size: number): readonly Sent[] {
  return costCases.filter(({ name }) => !name.startsWith("too")).map((each) =>
    each.make(Math.min(each.most, size), known)
  );
}

/**
 * Returns the figure for the peak resident memory. On Deno, 512 MB is the limit of the heap, and the process exits when
 * it exceeds the limit.
 */
function toMemory(runtime: Runtime, bytes: number): Figure {
  const figure = atMost("the same: most resident memory", bytes / 2 ** 20, HEAP_MB, "MiB");
  return runtime === "bun" ? figure : { what: figure.what, aim: "–", value: figure.value };
}

/** Sends the worst cases for a few seconds, and measures another client's calls. */
export async function survive(runtime: Runtime, seconds: number): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  {
    await using server = await startAbused(runtime, HEAP_MB);
    const known = await openKnown(server.url);
    await run(server, { seconds: 2, connections: CONNECTIONS, next: () => plain() });
    const share = Math.max(3, seconds / 6);
    const beside = await run(server, { seconds: share, connections: CONNECTIONS, next: () => plain() });
    const small = toRequests(known, SMALL - 2000).filter(({ body }) => body.length <= SMALL);
    for (const connections of [1, 8, CONNECTIONS]) {
      const { times, sent } = await run(server, { seconds: share, connections, next: (n) => small[n % small.length] });
      const p99 = (list: readonly number[]) => quantile(list, 0.99);
      figures.push(
        atMost(
          `bodies up to 64 KiB over ${connections} connections (${sent} requests): slowest 1 % of another client, to beside ${CONNECTIONS} of plain calls (${
            p99(beside.times).toFixed(1)
          } ms)`,
          p99(times) / p99(beside.times),
          1.5,
          "×",
          2,
        ),
        atMost("the same: slowest call of that client", Math.max(...times), MOST.block, "ms"),
      );
    }
  }
  await using server = await startAbused(runtime, HEAP_MB);
  const known = await openKnown(server.url);
  const whole = [...toRequests(known, 4_100_000), modern("tools/call", { name: "big", arguments: { kb: 4096 } }, "")];
  const costly = await run(server, {
    seconds: seconds / 2,
    connections: ATTACKERS,
    next: (n) => whole[n % whole.length],
  });
  figures.push(
    atMost(
      `costly requests over ${ATTACKERS} connections (${costly.sent}): slowest call of another client`,
      Math.max(...costly.times),
      MOST.block,
      "ms",
    ),
    all("the same: survived", Number(!server.isDead), 1),
  );
  if (!server.isDead) figures.push(toMemory(runtime, readPeak(server.pid)));
  await using other = await startAbused(runtime, HEAP_MB);
  let most = 0;
  const begun: string[] = [];
  const timer = setInterval(() => {
    if (!other.isDead) most = Math.max(most, readRss(other.pid) || 0); // An exiting process reports no resident memory.
  }, 20);
  const held = await run(other, { seconds: seconds / 2, connections: 0, holds: begun });
  clearInterval(timer);
  figures.push(
    {
      what: `everything that is held, case by case (${begun.length} begun): survived`,
      aim: "all",
      value: other.isDead ? `died of "${begun.at(-1)}"` : "yes",
      holds: !other.isDead,
    },
    toMemory(runtime, most),
    all("the same: calls of another client that were answered", held.times.length, held.times.length + held.lost),
    atMost("the same: slowest of these", Math.max(0, ...held.times), MOST.block, "ms"),
  );
  return figures;
}
