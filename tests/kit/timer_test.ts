// Timers that decide that something has not responded, and processes that are blocked meanwhile.
import { startResponseTimer, type TimerSource } from "../../src/core/kit/timer.ts";
import { connect } from "../../src/client/client.ts";
import { fakeClock } from "../../src/testing/fake_clock.ts";
import { raise, textOf } from "../support/behaviour.ts";
import { startHttpProcess } from "../support/http_process.ts";
import { startStore } from "../support/store_client.ts";
import { assertEquals } from "../support/std.ts";
import { withTimersOn } from "../support/timers.ts";

/** Milliseconds of the timeouts, during which a response arrives even on a loaded machine. */
const TIMEOUT_MS = 1500;

/** Blocks this process until every timeout that is running is due. */
function block(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * TIMEOUT_MS);
}

/** A clock that is blocked at will: then, no timer fires until `advance` is called with the whole time. */
function blockable() {
  const jobs = new Set<{ readonly due: number; readonly job: () => void }>();
  let now = 0;
  const source: TimerSource = {
    now: () => now,
    start(job, ms) {
      const entry = { due: now + ms, job };
      jobs.add(entry);
      return () => void jobs.delete(entry);
    },
  };
  function advance(ms: number): void {
    now += ms;
    for (const entry of jobs) {
      if (entry.due > now) continue;
      jobs.delete(entry);
      entry.job();
    }
  }
  return { source, advance, jobs };
}

Deno.test("a response timer that fires late waits for as long as it is late, but at most for its own time", () => {
  // Milliseconds of the timer, by which it is late, and which it then waits.
  for (const [ms, late, left] of [[1000, 0, 0], [1000, 49, 0], [1000, 50, 50], [1000, 400, 400], [100, 5000, 100]]) {
    const { source: clock, advance, jobs } = blockable();
    let fired = 0;
    startResponseTimer(ms, () => fired++, { clock });
    advance(ms + late);
    assertEquals(fired, left ? 0 : 1);
    if (!left) continue;
    advance(left - 1);
    assertEquals(fired, 0);
    // The timer waits only once more, so that a machine that is always late cannot delay it forever.
    advance(1 + late);
    assertEquals([fired, jobs.size], [1, 0]);
  }
});

Deno.test("a response timer can be cancelled before and after it is late, and never fires after Infinity", () => {
  const { source: clock, advance, jobs } = blockable();
  const fail = () => raise(new Error("the timer has fired"));
  startResponseTimer(1000, fail, { clock })();
  const stop = startResponseTimer(1000, fail, { clock });
  startResponseTimer(Infinity, fail, { clock });
  advance(3000);
  assertEquals(jobs.size, 1);
  stop();
  advance(3000);
  assertEquals(jobs.size, 0);
});

Deno.test("a timer on a fake clock is never late, however much real time passes", async () => {
  const clock = fakeClock();
  let fired = 0;
  await withTimersOn(clock, 20, async () => {
    startResponseTimer(20, () => fired++);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
    await clock.advance(20);
  });
  assertEquals(fired, 1);
});

Deno.test("a store that responds while this process is blocked has responded in time", async () => {
  await using process = await startStore();
  const store = process.open({}, { timeoutMs: TIMEOUT_MS });
  await store.set("a", "1", { ttlMs: 60_000 });
  const reading = store.get("a");
  block();
  assertEquals((await reading)?.value, "1");
  await store.close();
});

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`a server that responds while the client's process is blocked has responded in time (${era})`, async () => {
    await using process = await startHttpProcess(new URL("../client/library_http.ts", import.meta.url));
    await using client = await connect(`${process.origin}/mcp`, { era });
    const calling = client.callTool("echo", { text: "a" }, { timeoutMs: TIMEOUT_MS });
    block();
    assertEquals(textOf(await calling), "a");
  });
}
