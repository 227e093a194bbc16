// Runs the checks and tests of the project:
//
// deno task ok [--slow | --long | --weekly] [--only STEP,STEP] [--slowest N]
//
// Runs the fast tier. With --slow, runs the slow tier after the fast tier. With --long or --weekly, runs only this tier,
// and writes its figures into tests/load. The task prints the running steps. At the end, it prints the name of each
// failed test with the command that runs the test alone. The last line is `N passed, N failed`, which may be followed by
// `, N skipped`. The exit code is 1 if a step failed.
import { runRepeatedly } from "./flaky.ts";
import { readLastRun, recordStep, toAge } from "./last_run.ts";
import { runInLanes } from "./lanes.ts";
import { readOptions } from "./options.ts";
import { endSteps, type Step, toExplanation, type Verdict } from "./steps.ts";
import { listSteps, type TierStep } from "./step_list.ts";
import type { Tier } from "./tiers.ts";

/** Seconds between two lines that name the running steps. */
const PROGRESS_SECONDS = 10;

const options = readOptions(Deno.args, { values: ["--only", "--slowest"], flags: ["--slow", "--long", "--weekly"] });
const only = options.get("--only")?.split(",");
const all = await listSteps();
for (const name of only ?? []) {
  if (all.some((step) => step.name === name)) continue;
  throw new Error(
    `Cannot run "${name}": there is no such step; choose from ${all.map((step) => step.name).join(", ")}`,
  );
}
const tiers: readonly Tier[] = options.has("--weekly")
  ? ["weekly"]
  : options.has("--long")
  ? ["long"]
  : options.has("--slow")
  ? ["fast", "slow"]
  : ["fast"];
const steps = all.filter(({ name, tier }) => only ? only.includes(name) : tiers.includes(tier));

function listNames(tier: Tier): readonly string[] {
  return all.filter((step) => step.tier === tier).map(({ name }) => name);
}

const begin = performance.now();
const running = new Map<Step, { readonly since: number; tests: number }>();
const verdicts = new Map<Step, Verdict>();

function toSeconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(0)} s`;
}

function printProgress(): void {
  const parts = [...running].map(([{ name }, { since, tests }]) =>
    `${name} (${toSeconds(since)}${tests ? `, ${tests} tests` : ""})`
  );
  if (parts.length) console.log(`… ${toSeconds(begin)}: ${parts.join(", ")}`);
}

/** Counts the tests that have ended, by the dots that both test runners print. */
function countDots(output: string): number {
  const dots = output.split(" ERRORS ", 1)[0].match(/^[.,!]+$/gm) ?? [];
  return dots.reduce((sum, { length }) => sum + length, 0);
}

async function run(step: TierStep): Promise<void> {
  const state = { since: performance.now(), tests: 0 };
  running.set(step, state);
  const verdict = await runRepeatedly(step, (output) => {
    if (step.kind === "report") state.tests = countDots(output);
  });
  running.delete(step);
  verdicts.set(step, verdict);
  const { name, tier } = step;
  if (tier === "long" || tier === "weekly") await recordStep(tier, name, { verdict, names: listNames(tier) });
  const { passed, skipped, failures, seconds } = verdict;
  const counts = step.kind === "check" ? "" : `: ${toCounts(passed, failures.length, skipped)}`;
  console.log(`${failures.length ? "FAILED" : "ok"} ${step.name} (${seconds.toFixed(1)} s)${counts}`);
  if (failures.length) console.log(`\n${toExplanation(step, verdict)}\n`);
}

function toCounts(passed: number, failed: number, skipped: number): string {
  return `${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ""}`;
}

function interrupt(): void {
  console.log(`\nInterrupted in ${[...running.keys()].map(({ name }) => name).join(" and ") || "no step"}`);
  endSteps();
  Deno.exit(130);
}
for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, interrupt);

const ticking = setInterval(printProgress, PROGRESS_SECONDS * 1000);
const tested = only ? [...new Set(steps.map(({ tier }) => tier))] : tiers;
for (const each of tested) {
  const ofTier = steps.filter(({ tier }) => tier === each);
  await runInLanes(ofTier.filter(({ isAlone }) => !isAlone), run);
  for (const step of ofTier.filter(({ isAlone }) => isAlone)) await run(step);
}
clearInterval(ticking);

const ended = steps.flatMap((step) => verdicts.get(step) ?? []);
const slowest = Number(options.get("--slowest") ?? 0);
if (slowest) {
  for (const step of steps.filter(({ kind }) => kind === "report")) printSlowest(step, verdicts.get(step)?.cases ?? []);
}

function printSlowest(step: Step, cases: Verdict["cases"]): void {
  const files = new Map<string, number>();
  for (const { file, seconds } of cases) files.set(file, (files.get(file) ?? 0) + seconds);
  console.log(`\n${step.name}: seconds taken by the slowest files`);
  for (const [file, seconds] of [...files].sort(([, a], [, b]) => b - a).slice(0, slowest)) {
    console.log(`${seconds.toFixed(1).padStart(7)}  ${file}`);
  }
}

const skips = new Set(ended.flatMap(({ skips }) => skips).filter((name) => name.includes("(skipped: ")));
for (const name of skips) console.log(`skipped ${name.replace("(skipped: ", "(")}`);
const failures = ended.flatMap(({ failures }) => failures);
for (const name of new Set(failures)) console.log(`FAILED ${name}`);
const flaky = ended.flatMap(({ flaky }) => flaky);
for (const { name, line, outputs: [failed, repeated] } of flaky) {
  console.log(`\nFLAKY ${name}\nThe failed run:\n${failed}\nA repetition:\n${repeated}`);
  console.log(`Add this line to tests/flaky.md, or repair the test:\n${line}`);
}
const sum = (name: "passed" | "skipped") => ended.reduce((sum, verdict) => sum + verdict[name], 0);
const counts = toCounts(sum("passed"), failures.length, sum("skipped"));

if (!only && steps.length > 10) {
  console.log("\nMinutes of each step:");
  for (const [{ name }, { seconds }] of [...verdicts].sort(([, a], [, b]) => b.seconds - a.seconds)) {
    console.log(`${(seconds / 60).toFixed(1).padStart(6)}  ${name}`);
  }
}
if (!only && options.has("--slow")) console.log(`\n${toAge(await readLastRun("long"), listNames("long"))}`);
console.log(`\n${steps.length} steps in ${toSeconds(begin)}`);
console.log(counts);
Deno.exit(failures.length ? 1 : 0);
