// Repeatedly kills one of two instances while it runs tasks, at random moments. Each task has three steps and a
// question between the steps. With `resume`, each task must complete once, and no recorded value of `ctx.once` may be
// computed again. Without `resume`, each task of the killed instance must fail within two lease periods.
//
// deno task load:tasks [--engine redis|postgres|sqlite|denokv] [--runtime deno|bun] [--mode resumes|fails] [--tasks N]
//
// `--tasks` is the number of tasks to kill in each run, which defaults to 20.
import { readOptions } from "../../support/options.ts";
import { type Engine, ENGINES, type Instance, RUNTIMES, startCluster } from "./instances.ts";
import { toReply, toRequest } from "../../support/requests.ts";

const LEASE_MS = 500;
const MODES = ["resumes", "fails"] as const;
type Mode = typeof MODES[number];

/** Number of tasks that are running on an instance when it is killed. */
const PER_KILL = 10;

interface Run {
  readonly engine: Engine;
  readonly runtime: string;
  readonly mode: Mode;
  readonly tasks: number;
}

function toRuns(args: readonly string[]): readonly Run[] {
  const values = readOptions(args, { values: ["--engine", "--runtime", "--mode", "--tasks"], flags: [] });
  const pick = <T extends string>(all: readonly T[], name: string) =>
    all.filter((each) => (values.get(name) ?? each) === each);
  const tasks = Number(values.get("--tasks") ?? 20);
  const runs = pick(ENGINES, "--engine").flatMap((engine) =>
    pick(engine === "denokv" ? ["deno"] : ["deno", "bun"], "--runtime").flatMap((runtime) =>
      pick(MODES, "--mode").map((mode) => ({ engine, runtime, mode, tasks }))
    )
  );
  if (runs.length && tasks > 0) return runs;
  throw new Error(
    "Cannot start: write --engine redis|postgres|sqlite|denokv --runtime deno|bun --mode resumes|fails --tasks N",
  );
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A task as its client sees it. */
interface Seen {
  readonly status: string;
  readonly result?: { readonly content: readonly { readonly text: string }[] };
  readonly error?: { readonly message: string };
}

/** Sends a request to one instance. Returns the result, or `undefined` if the instance has exited. */
async function send(instance: Instance, method: string, params: Record<string, unknown>): Promise<unknown> {
  const extensions = { "io.modelcontextprotocol/tasks": {} };
  const _meta = { "io.modelcontextprotocol/clientCapabilities": { elicitation: {}, extensions } };
  const request = toRequest(method, { ...params, _meta }, { "mcp-name": String(params.name ?? params.taskId) });
  try {
    const response = await fetch(new Request(`${instance.origin}/mcp`, request));
    const text = await response.text();
    const { result, error } = JSON.parse(toReply(text) || "{}");
    if (error && error.code !== -31503) throw new TypeError(`${method}: ${JSON.stringify(error)}`);
    return result;
  } catch (error) {
    if (error instanceof TypeError && error.message.startsWith(method)) throw error;
  }
}

/** A task that a client polls until the task ends. */
interface Followed {
  readonly id: string;
  readonly key: string;
  /** All final states that the client has received for the task. */
  readonly ends: Set<string>;
  killedAt?: number;
  endedAt?: number;
}

const answer = { name: { action: "accept", content: { name: "Ada" } } };

/** Requests a task's state from an instance, and answers the task's question. */
async function look(instance: Instance, task: Followed): Promise<void> {
  // The client's task ids are random and unique, so an error means that the task was lost.
  const seen = await send(instance, "tasks/get", { taskId: task.id }) as Seen | undefined;
  if (!seen) return;
  if (seen.status === "input_required") {
    await send(instance, "tasks/update", { taskId: task.id, inputResponses: answer });
  } else if (seen.status !== "working") {
    task.endedAt ??= performance.now();
    task.ends.add(JSON.stringify([seen.status, seen.result?.content, seen.error?.message]));
  }
}

interface Report {
  killed: number;
  kills: number;
  slowestMs: number;
  readonly faults: string[];
}

async function run({ engine, runtime, mode, tasks }: Run): Promise<Report> {
  const effects = await Deno.makeTempFile({ prefix: "mcp-effects-" });
  await using cluster = await startCluster({
    engine,
    runtimes: RUNTIMES[runtime],
    count: 2,
    file: "tasks_server.ts",
    env: { EFFECTS: effects, LEASE_MS: `${LEASE_MS}` },
  });
  const report: Report = { killed: 0, kills: 0, slowestMs: 0, faults: [] };
  const all: Followed[] = [];
  while (report.killed < tasks) {
    const [victim, other] = report.kills % 2 ? cluster.instances : cluster.instances.toReversed();
    const begun: Followed[] = [];
    const giveUp = performance.now() + 60_000;
    while (begun.length < PER_KILL) {
      if (performance.now() > giveUp) throw new Error(`an instance begins no task:\n${victim.errors()}`);
      const key = crypto.randomUUID();
      const handle = await send(victim, "tools/call", { name: mode, arguments: { key } });
      if (handle) begun.push({ id: String(Object(handle).taskId), key, ends: new Set() });
    }
    all.push(...begun);
    const until = performance.now() + Math.random() * 300;
    while (performance.now() < until) await Promise.all(begun.map((task) => look(other, task)));
    await victim.end("SIGKILL");
    const killedAt = performance.now();
    report.kills++;
    const deadline = killedAt + 20_000;
    while (begun.some(({ endedAt }) => endedAt === undefined) && performance.now() < deadline) {
      await Promise.all(begun.filter(({ endedAt }) => endedAt === undefined).map((task) => look(other, task)));
      await pause(20);
    }
    for (const task of begun) {
      if (task.endedAt === undefined) report.faults.push(`task ${task.id} did not end`);
      // A task that ended before the kill was not affected by it.
      else if (task.endedAt > killedAt) {
        report.killed++;
        report.slowestMs = Math.max(report.slowestMs, task.endedAt - killedAt);
      }
    }
    await victim.start();
  }
  // All instances must report the same final state, and the state must not change.
  for (const instance of cluster.instances) await Promise.all(all.map((task) => look(instance, task)));
  const lines = (await Deno.readTextFile(effects)).trim().split("\n");
  await Deno.remove(effects);
  checkEffects(lines, report.faults);
  for (const { id, ends } of all) {
    const [end] = ends;
    if (ends.size !== 1) report.faults.push(`task ${id} has ended as ${[...ends].join(" and ")}`);
    else if (mode === "resumes" && !end.startsWith('["completed"')) report.faults.push(`task ${id}: ${end}`);
    else if (
      mode === "fails" && !/^\["(?:completed"|failed",null,"The process that ran the task ended)/.test(end)
    ) {
      report.faults.push(`task ${id}: ${end}`);
    }
  }
  const leases = report.slowestMs / LEASE_MS;
  // The limit includes a margin for a loaded machine. The exact figure is printed.
  if (mode === "fails" && leases > 4) report.faults.push(`the slowest task failed after ${leases.toFixed(1)} leases`);
  for (const { errors } of cluster.instances) {
    if (/Unhandled|Uncaught|panicked/.test(errors())) report.faults.push(errors());
  }
  return report;
}

/**
 * Checks the recorded effects. A value that a handler has received from `ctx.once` must not be computed again, and
 * every run must get the same value.
 */
function checkEffects(lines: readonly string[], faults: string[]): void {
  const known = new Map<string, string>();
  for (const line of lines) {
    const [key, kind, step, value] = line.split(" ");
    const place = `${key} ${step}`;
    const before = known.get(place);
    if (kind === "make" && before !== undefined) faults.push(`${place} was made again`);
    if (kind !== "know") continue;
    if (before !== undefined && before !== value) faults.push(`${place} is ${value} and was ${before}`);
    known.set(place, value);
  }
}

let [passed, failed] = [0, 0];
for (const each of toRuns(Deno.args)) {
  const began = performance.now();
  const { killed, kills, slowestMs, faults } = await run(each).catch((error) => {
    // Shutting down the instances may have failed too, so report the first error.
    throw error instanceof SuppressedError ? error.suppressed : error;
  });
  const { engine, runtime, mode } = each;
  const seconds = Math.round((performance.now() - began) / 1000);
  const leases = (slowestMs / LEASE_MS).toFixed(1);
  console.log(
    `${engine}, ${runtime}, ${mode}: ${killed} killed tasks in ${kills} kills, ${seconds} s, slowest ${leases} leases`,
  );
  for (const fault of faults) console.log(`FAULT ${fault}`);
  if (faults.length) failed++;
  else passed++;
}
console.log(`${passed} passed, ${failed} failed`);
Deno.exit(failed ? 1 : 0);
