// Measures handlers in worker threads: their effect on other calls, their cancellation, and their crashes.
import { all, atMost, type Figure } from "./figure.ts";
import { type Loaded, ping, quantile, type Runtime, sleep, startLoaded, toCall } from "./processes.ts";

const SPIN_MS = 5000;
const STILL_RUNS_MS = 10_000;
/** Interval between two samples of the CPU time, in milliseconds. */
const LOOK_MS = 50;

async function runHeavy(server: Loaded, job: string, ms = 0, signal?: AbortSignal): Promise<string> {
  const response = await fetch(server.url, { ...toCall("heavy", { args: { job, ms } }), signal });
  return await response.text();
}

/** Returns the CPU time of each thread of a process, in milliseconds. */
function readThreads(pid: number): ReadonlyMap<string, number> {
  const threads = new Map<string, number>();
  for (const { name } of Deno.readDirSync(`/proc/${pid}/task`)) {
    try {
      const stat = Deno.readTextFileSync(`/proc/${pid}/task/${name}/stat`);
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      threads.set(name, (Number(fields[11]) + Number(fields[12])) * 10);
    } catch {
      // The thread has ended.
    }
  }
  return threads;
}

/** Makes plain calls sequentially for a given time. Returns the slowest 1 % in milliseconds. */
async function measureTail(url: string, ms: number): Promise<number> {
  const times: number[] = [];
  for (const end = performance.now() + ms; performance.now() < end;) {
    times.push(...await ping(url, 20));
    await sleep(2);
  }
  return quantile(times, 0.99);
}

async function measureBeside(server: Loaded, rounds: number) {
  const idle: number[] = [];
  const busy: number[] = [];
  const other: number[] = [];
  await measureTail(server.url, 1000);
  for (let i = 0; i < rounds; i++) {
    idle.push(await measureTail(server.url, SPIN_MS - 500));
    const spinning = runHeavy(server, "spin", SPIN_MS);
    await sleep(200);
    busy.push(await measureTail(server.url, SPIN_MS - 500));
    await spinning;
    // Occupies a CPU, because without a free CPU any other work would slow down the calls.
    const process = new Deno.Command("sh", { args: ["-c", "while :; do :; done"] }).spawn();
    await sleep(200);
    other.push(await measureTail(server.url, SPIN_MS - 500));
    process.kill("SIGKILL");
    await process.status;
  }
  return { idle: quantile(idle, 0.5), busy: quantile(busy, 0.5), other: quantile(other, 0.5) };
}

/**
 * Cancels a call whose handler blocks its thread. Returns the time until the thread was idle, and the time until the
 * next call ended.
 */
async function measureCancel(server: Loaded, job: string) {
  await runHeavy(server, "echo");
  const before = readThreads(server.pid);
  const abort = new AbortController();
  const spinning = runHeavy(server, job, 60_000, abort.signal).catch(() => {});
  await sleep(1500);
  const [[thread]] = [...readThreads(server.pid)].toSorted(([a, one], [b, other]) =>
    (other - (before.get(b) ?? 0)) - (one - (before.get(a) ?? 0))
  );
  const start = performance.now();
  abort.abort();
  await spinning;
  let nextMs = NaN;
  runHeavy(server, "echo").then(() => nextMs = performance.now() - start);
  // The thread counts as idle from the first sample with at most 10 ms of new work, because an idle event loop also
  // uses some CPU time.
  let workMs = readThreads(server.pid).get(thread) ?? 0;
  let restMs = LOOK_MS;
  for (let nowMs = 0; nowMs < STILL_RUNS_MS && nowMs < restMs + 2000;) {
    await sleep(LOOK_MS);
    nowMs = performance.now() - start;
    const now = readThreads(server.pid).get(thread) ?? 0;
    if (now <= workMs + 10) continue;
    workMs = now;
    restMs = nowMs;
  }
  while (Number.isNaN(nextMs)) await sleep(50);
  return { restMs, nextMs };
}

/** D23: handlers in worker threads. */
export async function workerThreads(runtime: Runtime, isQuick: boolean): Promise<readonly Figure[]> {
  await using server = await startLoaded(runtime);
  const rounds = isQuick ? 3 : 9;
  const { idle, busy, other } = await measureBeside(server, rounds);
  const polled = await measureCancel(server, "poll");
  const crashes: number[] = [];
  let refilled = 0;
  for (let i = 0; i < 10; i++) {
    const start = performance.now();
    const text = await runHeavy(server, "crash");
    crashes.push(text.includes("Internal error") ? performance.now() - start : Infinity);
    if ((await runHeavy(server, "echo")).includes("echo")) refilled++;
  }
  const blocked = await measureCancel(server, "spin");
  const hasEnded = blocked.restMs < STILL_RUNS_MS - 1000;
  return [
    atMost(
      `a thread that computes for 5 s: slowest 1 % of another tool, to without it (medians of ${rounds} turns of each)`,
      busy / idle,
      2,
      "×",
      2,
    ),
    { what: "the same with another process that computes", aim: "–", value: `${(other / idle).toFixed(2)} ×` },
    { what: "the same: that slowest 1 % without it", aim: "–", value: `${idle.toFixed(2)} ms` },
    atMost("a cancelled handler that looks at `signal`: its thread is at rest after", polled.restMs, 1000, "ms"),
    atMost("the same: the next call on the only thread has its result after", polled.nextMs, 1000, "ms"),
    {
      what: "a cancelled handler that never pauses: its thread is at rest after",
      aim: "≤ 1000 ms",
      value: hasEnded ? `${blocked.restMs.toFixed(0)} ms` : `over ${STILL_RUNS_MS / 1000} s`,
      holds: blocked.restMs <= 1000,
    },
    atMost("the same: the next call, on a new thread, has its result after", blocked.nextMs, 1000, "ms"),
    atMost("a thread that crashes: slowest of 10 errors", Math.max(...crashes), 1000, "ms"),
    all("the same: next calls that got their result", refilled, 10),
  ];
}
