// Keeps the figures of the last run of each step of a tier that is run by hand, in tests/load/last_long_run.json and
// tests/load/last_weekly_run.json. A run can be interrupted, or run only some steps. A person commits the file.
import type { Verdict } from "./steps.ts";

const root = new URL("../../", import.meta.url);

/** Days after which a run is too old to say something about the current revision. */
const OLD_DAYS = 14;
const MS_PER_DAY = 86_400_000;

/** The last runs of the steps of a tier. */
export interface LastRun {
  readonly machine: string;
  readonly steps: Readonly<Record<string, StepFigures>>;
}

/** The figures of one step. */
export interface StepFigures {
  /** The day of the run, such as `2026-11-26`. */
  readonly date: string;
  /** The git revision; `-dirty` at its end if files had changed. */
  readonly revision: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly seconds: number;
  /** The lines that the step printed before its counts, at most {@linkcode MOST_LINES}. */
  readonly lines: readonly string[];
}

const MOST_LINES = 12;

type Name = "long" | "weekly";

function toUrl(name: Name): URL {
  return new URL(`tests/load/last_${name}_run.json`, root);
}

/** Reads the last run of a tier; `undefined` if there is none. */
export async function readLastRun(name: Name): Promise<LastRun | undefined> {
  const text = await Deno.readTextFile(toUrl(name)).catch(() => undefined);
  return text === undefined ? undefined : JSON.parse(text);
}

/** Returns a sentence about the runs of the long series, whose steps are `names`. It is a warning if a run is old. */
export function toAge(last: LastRun | undefined, names: readonly string[], now: number = Date.now()): string {
  const remedy = "run .ci/long before a change to stores, tasks, eras or transports is done";
  const runs = names.flatMap((name) => last?.steps[name] ?? []);
  if (!runs.length) return `Warning: the long series has no recorded run; ${remedy}`;
  const oldest = runs.reduce((first, run) => run.date < first.date ? run : first);
  const days = Math.floor((now - Date.parse(oldest.date)) / MS_PER_DAY);
  const sum = (count: "passed" | "failed") => runs.reduce((sum, run) => sum + run[count], 0);
  const text = `${runs.length} of ${names.length} steps of the long series have run, the first ${days} days ago, at ` +
    `${oldest.revision}: ${sum("passed")} passed, ${sum("failed")} failed`;
  const isComplete = runs.length === names.length && !sum("failed");
  return days > OLD_DAYS || !isComplete ? `Warning: ${text}; ${remedy}` : text;
}

async function git(...args: readonly string[]): Promise<string> {
  const { stdout } = await new Deno.Command("git", { args: [...args], cwd: root.pathname, stderr: "null" }).output();
  return new TextDecoder().decode(stdout).trim();
}

async function readMachine(): Promise<string> {
  const info = await Deno.readTextFile("/proc/cpuinfo").catch(() => "");
  const model = /^model name\s*:\s*(.*)$/m.exec(info)?.[1] ?? Deno.build.arch;
  return `${navigator.hardwareConcurrency} cores, ${model}, ${Deno.build.os}; Deno ${Deno.version.deno}`;
}

async function readRevision(): Promise<string> {
  const [revision, changes] = await Promise.all([
    git("rev-parse", "--short", "HEAD"),
    git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!tests/load/last_*_run.json"),
  ]);
  return changes ? `${revision}-dirty` : revision;
}

/** Settles when the last step has been recorded. Steps are recorded one after another. */
let turn: Promise<void> = Promise.resolve();

/** Records the run of a step. Removes steps that the tier no longer has: `names` are its steps. */
export function recordStep(
  tier: Name,
  step: string,
  { verdict, names }: { readonly verdict: Verdict; readonly names: readonly string[] },
): Promise<void> {
  return turn = turn.then(async () => {
    const { passed, failures: { length: failed }, skipped, seconds, output } = verdict;
    // The file says nothing about the folders of the machine.
    const folders = [root.href, root.pathname];
    const text = folders.reduce((text, folder) => text.replaceAll(folder, ""), output)
      .replaceAll(Deno.env.get("TMPDIR") ?? "/tmp", "…");
    const lines = text.trim().split("\n").filter((line) => line.trim()).slice(-MOST_LINES);
    const run: StepFigures = {
      date: new Date().toISOString().slice(0, 10),
      revision: await readRevision(),
      ...{ passed, failed, skipped, seconds: Math.round(seconds), lines },
    };
    const known = { ...(await readLastRun(tier))?.steps, [step]: run };
    const steps = Object.fromEntries(names.flatMap((name) => name in known ? [[name, known[name]]] : []));
    const last: LastRun = { machine: await readMachine(), steps };
    await Deno.writeTextFile(toUrl(tier), JSON.stringify(last, null, 2) + "\n");
  });
}
