// Finds out whether a failure happens by chance. Such a failure is neither a failure of the run nor hidden: the run
// reports it with a line for tests/flaky.md, and a person commits the line or repairs the test.
import { type Flaky, runStep, type Step, toExplanation, toFailure, type Verdict } from "./steps.ts";
import type { Case } from "./test_report.ts";

/** Number of times that a failed test is repeated. */
export const REPETITIONS = 10;
/** Number of repetitions that must pass. A test that fails more often is broken. */
export const MUST_PASS = 9;
/** Number of repetitions that run at the same time, so that they run under the load of the first run. */
const JOBS = 4;
/** If more tests of a step fail, a change broke them, and none is repeated. */
const MOST_TESTS = 5;

/** Folders and files about races: a failure is a fault of the product, until somebody shows otherwise. */
export const RACES: readonly string[] = [
  "tests/auth/",
  "tests/behaviour/idempotency_test.ts",
  "tests/behaviour/quotas_test.ts",
  "tests/cli/sign_in/token_folder_test.ts",
  "tests/eras/single_use_test.ts",
  "tests/hostile/",
  "tests/layers/quota/",
  "tests/stores/",
  "tests/tasks/",
];

/** Tests whether a test is about races, also if it only says that something happens exactly once. */
export function isAboutRaces({ file, name }: Pick<Case, "file" | "name">): boolean {
  return RACES.some((path) => file.startsWith(path)) || /\b(?:once|twice)\b/.test(name);
}

/** Runs a step, and repeats what failed, if this is allowed. */
export async function runRepeatedly(step: Step, progress?: (output: string) => void): Promise<Verdict> {
  const verdict = await runStep(step, progress);
  if (!verdict.failures.length || !step.isRepeated) return verdict;
  return step.kind === "report" ? await repeatTests(step, verdict) : await repeatStep(step, verdict);
}

async function repeatStep(step: Step, verdict: Verdict): Promise<Verdict> {
  const again = await runStep(step);
  if (again.failures.length) return verdict;
  const line = toLine(step.again, "passed when it was repeated");
  const flaky = [{ name: step.name, line, outputs: [verdict.output, again.output] as const }];
  return { ...again, seconds: verdict.seconds + again.seconds, flaky };
}

async function repeatTests(step: Step, verdict: Verdict): Promise<Verdict> {
  const failed = verdict.cases.filter(({ state }) => state === "failed");
  if (!failed.length || failed.length > MOST_TESTS) return verdict;
  const flaky: Flaky[] = [];
  const failures: string[] = [];
  for (const test of failed) {
    const found = isAboutRaces(test) ? undefined : await repeatTest(step, { test, verdict });
    if (found) flaky.push(found);
    else failures.push(toFailure(step, test));
  }
  return { ...verdict, failures, flaky, passed: verdict.passed + flaky.length };
}

async function repeatTest(
  step: Step,
  { test, verdict }: { readonly test: Case; readonly verdict: Verdict },
): Promise<Flaky | undefined> {
  const verdicts: Verdict[] = [];
  const single = toSingle(step, test);
  await Promise.all(Array.from({ length: JOBS }, async (_, lane) => {
    for (let i = lane; i < REPETITIONS; i += JOBS) verdicts.push(await runStep(single));
  }));
  const bad = verdicts.filter(({ failures }) => failures.length);
  const passed = REPETITIONS - bad.length;
  if (passed < MUST_PASS) return undefined;
  const { runtime = "Deno" } = step;
  const line = toLine(`${test.file}: "${test.name}" on ${runtime}`, `passed ${passed} of ${REPETITIONS} repetitions`);
  return { name: test.name, line, outputs: [toExplanation(step, verdict), (bad[0] ?? verdicts[0]).output] };
}

/** Returns the step that runs one test of a step. */
function toSingle(step: Step, { name, file }: Case): Step {
  const pattern = `^${RegExp.escape(name)}$`;
  const options = step.command.filter((word) => word.startsWith("-") && !/^--(?:parallel|filter)/.test(word));
  const commands = {
    Deno: ["deno", "test", ...options, "--filter", `/${pattern}/`, file],
    Bun: ["bun", "test", ...options, "-t", pattern, `./${file}`],
    Node: [...step.command, "--filter", `/${pattern}/`, file],
  };
  return { ...step, command: commands[step.runtime ?? "Deno"], minutes: 5, files: [file] };
}

function toLine(what: string, outcome: string): string {
  return `- ${what} (${new Date().toISOString().slice(0, 10)}; ${outcome})`;
}
