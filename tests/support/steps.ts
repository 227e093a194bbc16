// Runs the steps of `deno task ok`, and records the output of their commands in the order in which it was written.
import { type Case, readCases } from "./test_report.ts";

/** A command that `deno task ok` runs. */
export interface Step {
  readonly name: string;
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /**
   * How to determine the outcome: a "check" passes or fails as a whole, a "report" writes a JUnit file, and a "count"
   * prints a last line such as `12 passed, 0 failed, 1 skipped`.
   */
  readonly kind: "check" | "report" | "count";
  /** The runtime of a "report". The default is Deno. */
  readonly runtime?: "Deno" | "Bun" | "Node";
  /** The test files of a step that writes a report. */
  readonly files?: readonly string[];
  /** The command that runs the step alone. */
  readonly again: string;
  /** Time in minutes after which the step is stopped and counts as failed. */
  readonly minutes: number;
  /** Whether the step needs all cores. Any other step can run at the same time as another. */
  readonly isAlone?: boolean;
  /**
   * Whether a failure is repeated, to find out if it happens by chance: a failed test of a "report", or any other step as
   * a whole. See flaky.ts.
   */
  readonly isRepeated?: boolean;
}

/** A test or a step that failed, and passed when it was repeated. */
export interface Flaky {
  readonly name: string;
  /** The line for tests/flaky.md. */
  readonly line: string;
  /** The output of the failed run, and the output of the repetitions. */
  readonly outputs: readonly [failed: string, repeated: string];
}

/** The outcome of a step. */
export interface Verdict {
  readonly passed: number;
  readonly skipped: number;
  /** The failures, each with the command that runs the failed test or step alone. */
  readonly failures: readonly string[];
  /** The names of skipped tests. */
  readonly skips: readonly string[];
  /** Reports of tests that failed by chance, which are no failures. */
  readonly flaky: readonly Flaky[];
  readonly output: string;
  readonly seconds: number;
  readonly cases: readonly Case[];
}

/** Returns the command with standard error redirected to standard output, which preserves the order of the lines. */
function toCommand(step: Step, report: string): Deno.Command {
  const words = step.command.map((word) => word.replace("REPORT", report));
  return new Deno.Command("sh", {
    args: ["-c", 'exec "$@" 2>&1', "sh", ...words],
    env: { NO_COLOR: "1", ...step.env },
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  });
}

const children = new Set<Deno.ChildProcess>();

/** Ends the running steps. */
export function endSteps(): void {
  for (const child of children) child.kill("SIGTERM");
}

/** Runs a step once. `progress` is called with each part of the output. */
export async function runStep(step: Step, progress: (output: string) => void = () => {}): Promise<Verdict> {
  const start = performance.now();
  const folder = await Deno.makeTempDir({ prefix: "ok-" });
  try {
    const child = toCommand(step, `${folder}/report.xml`).spawn();
    children.add(child);
    let isLate = false;
    const alarm = setTimeout(() => {
      isLate = true;
      child.kill("SIGKILL");
    }, step.minutes * 60_000);
    let output = "";
    const reading = (async () => {
      for await (const piece of child.stdout.pipeThrough(new TextDecoderStream())) progress(output += piece);
    })();
    const { success } = await child.status;
    children.delete(child);
    clearTimeout(alarm);
    // Do not wait for the end of the output for long, because the pipe stays open if the step has left a process
    // running.
    // Fixed wait: the output of a process that a step has left running does not end.
    await Promise.race([reading, new Promise((resolve) => setTimeout(resolve, 1000))]);
    if (isLate) output += `\nStopped after ${step.minutes} minutes\n`;
    const seconds = (performance.now() - start) / 1000;
    const report = await Deno.readTextFile(`${folder}/report.xml`).catch(() => "");
    return { output, seconds, flaky: [], ...judge(step, { success, output, report }) };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

type Judged = Pick<Verdict, "passed" | "skipped" | "failures" | "skips" | "cases">;

function judge(
  step: Step,
  { success, output, report }: { readonly success: boolean; readonly output: string; readonly report: string },
): Judged {
  const whole = `${step.name}: ${step.again}`;
  const none: Judged = { passed: 0, skipped: 0, failures: [], skips: [], cases: [] };
  if (step.kind === "check") return success ? { ...none, passed: 1 } : { ...none, failures: [whole] };

  if (step.kind === "count") {
    const [, passed, failed, skipped = "0"] =
      [...output.matchAll(/^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/gm)].at(-1) ?? [];
    const counts = { passed: Number(passed ?? 0), skipped: Number(skipped) };
    if (!passed || counts.passed + Number(failed) === 0) return { ...none, failures: [`${whole} (it ran no test)`] };
    if (success && failed === "0") return { ...none, ...counts };
    return { ...none, ...counts, failures: Array.from({ length: Math.max(1, Number(failed)) }, () => whole) };
  }

  const cases = readCases(report);
  const failures = cases.filter(({ state }) => state === "failed").map((each) => toFailure(step, each));
  const skips = cases.filter(({ state }) => state === "skipped").map(({ name }) => name);
  const passed = cases.length - failures.length - skips.length;
  if (!success && !failures.length) failures.push(whole);
  if (!passed && !failures.length) failures.push(`${whole} (it ran no test)`);
  return { passed, skipped: skips.length, failures, skips, cases };
}

/** The commands that run one test, up to its name. */
const ALONE = {
  Deno: "deno test -A --no-check --filter",
  Bun: "bun test -t",
  Node: "deno task test:node --filter",
} as const;

/** Returns the name of a failed test with the command that runs this test alone. */
export function toFailure(step: Step, { name, file }: Case): string {
  const words = ALONE[step.runtime ?? "Deno"];
  return `${step.name}: ${name}\n    ${words} ${JSON.stringify(name)} ${file}`;
}

/** Returns the part of a test runner's output that explains the failures, or the whole output of any other command. */
export function toExplanation({ kind, runtime = "Deno" }: Step, { output }: Verdict): string {
  if (kind !== "report" || runtime !== "Deno") return output.trim();
  const at = output.indexOf(" ERRORS ");
  return (at < 0 ? output : output.slice(at)).trim();
}
