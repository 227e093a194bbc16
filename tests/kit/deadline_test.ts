import { Ticker } from "../../src/core/timers.ts";
import { deadline, delay } from "../../src/core/kit/deadline.ts";
import { fakeClock } from "../../src/testing/fake_clock.ts";
import { type Random, random } from "../support/random.ts";
import { assertEquals, assertRejects, assertStrictEquals } from "../support/std.ts";

type Event = "resolve" | "reject" | "abort";

/** What happens during one wait. The wait with `ms` ends after all events of the turn `ms - 1`. */
interface Plan {
  readonly events: readonly (readonly Event[])[];
  readonly ms: number;
  readonly throws: boolean;
}

const TURNS = 6;

function makePlan(source: Random): Plan {
  const events = Array.from({ length: TURNS }, (): Event[] => []);
  for (const event of ["resolve", "reject", "abort"] as const) {
    const at = source.below(TURNS * 2);
    if (at < TURNS) source.below(2) ? events[at].push(event) : events[at].unshift(event);
  }
  return { events, ms: source.pick([1, 2, 3, 5, Infinity]), throws: source.below(2) === 0 };
}

/** The model: the first event wins. Returns `undefined` if the wait does not end. */
function toEnd({ events, ms, throws }: Plan): string | undefined {
  for (const [at, turn] of events.entries()) {
    // Before the wait has begun, an abort cannot come before the result of the work.
    const [first] = at ? turn : [...turn].sort((a, b) => Number(a === "abort") - Number(b === "abort"));
    if (first) return first;
    if (at === ms - 1) return throws ? "timeout error" : "timeout";
  }
}

/** A signal that counts its listeners. */
function countedSignal() {
  const controller = new AbortController();
  const { signal } = controller;
  const counted = { controller, listeners: 0 };
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    counted.listeners++;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    counted.listeners--;
    remove(...args);
  };
  return counted;
}

async function run({ events, ms, throws }: Plan) {
  const clock = fakeClock();
  const abort = countedSignal();
  const work = Promise.withResolvers<string>();
  const happen = (event: Event) => {
    if (event === "abort") abort.controller.abort("abort");
    else if (event === "resolve") work.resolve("resolve");
    else work.reject("reject");
  };
  let ended: string | undefined;
  const note = (text: unknown) => void (ended = String(text));
  events[0].forEach(happen);
  const onTimeout = () => {
    if (throws) throw "timeout error";
    return "timeout";
  };
  deadline(work.promise, { ms, onTimeout, signal: abort.controller.signal, clock }).then(note, note);
  await clock.advance(1);
  for (const turn of events.slice(1)) {
    turn.forEach(happen);
    await clock.advance(1);
  }
  return { ended, timers: clock.waiting, listeners: abort.listeners };
}

Deno.test("deadline: the first of work, limit and signal ends the wait, and no timer or listener stays", async () => {
  const source = random(42);
  const plans = Array.from({ length: 1000 }, () => makePlan(source));
  const ends = await Promise.all(plans.map(run));
  for (const [i, plan] of plans.entries()) {
    const ended = toEnd(plan);
    const isOpen = ended === undefined;
    const expected = { ended, timers: isOpen && plan.ms !== Infinity ? 1 : 0, listeners: isOpen ? 1 : 0 };
    assertEquals(ends[i], expected, JSON.stringify(plan));
  }
});

Deno.test("deadline: without a limit, settles like the work, which can be a plain value", async () => {
  assertStrictEquals(await deadline(Promise.resolve(1), {}), 1);
  assertStrictEquals(await deadline(2, { signal: undefined }), 2);
  await assertRejects(() => deadline(Promise.reject(new Error("failed")), {}), Error, "failed");
});

Deno.test("deadline: passes the time and `background` to the clock, and shortens long times", async () => {
  const started: unknown[] = [];
  const clock = {
    now: () => 0,
    start(_job: () => void, ms: number, options?: { readonly background?: boolean }) {
      started.push([ms, options?.background]);
      return () => void started.push("stopped");
    },
  };
  const onTimeout = () => {};
  await deadline(1, { ms: 5, onTimeout, clock, background: true });
  await deadline(1, { ms: 2 ** 40, onTimeout, clock });
  await deadline(1, { ms: Infinity, onTimeout, clock });
  assertEquals(started, [[5, true], "stopped", [2 ** 31 - 1, undefined], "stopped"]);
});

Deno.test("deadline: the ticker of a server can start the timer", async () => {
  const clock = fakeClock();
  const ticker = new Ticker(clock);
  const waits = [10, 20].map((ms) => deadline(new Promise(() => {}), { ms, onTimeout: () => ms, clock: ticker }));
  assertStrictEquals(clock.waiting, 1);
  await clock.advance(20);
  assertEquals(await Promise.all(waits), [10, 20]);
  assertEquals([ticker.size, clock.waiting], [0, 0]);
});

Deno.test("deadline: uses the time of the system by default", async () => {
  assertStrictEquals(await deadline(new Promise(() => {}), { ms: 1, onTimeout: () => "late" }), "late");
});

Deno.test("delay: waits for its time, and rejects when its signal aborts", async () => {
  const clock = fakeClock();
  let isOver = false;
  delay(10, { clock }).then(() => isOver = true);
  await clock.advance(9);
  assertStrictEquals(isOver, false);
  await clock.advance(1);
  assertStrictEquals(isOver, true);
  const abort = countedSignal();
  const waiting = delay(10, { clock, signal: abort.controller.signal });
  abort.controller.abort(new Error("stopped"));
  await assertRejects(() => waiting, Error, "stopped");
  assertEquals([clock.waiting, abort.listeners], [0, 0]);
  await delay(1);
});
