// Keeps the figures of the last run of a tier that is run by hand, in tests/load/last_long_run.json and
// tests/load/last_weekly_run.json. A person commits the file.
const root = new URL("../../", import.meta.url);

/** Days after which a run is too old to say something about the current revision. */
const OLD_DAYS = 14;
const MS_PER_DAY = 86_400_000;

/** The last run of a tier. */
export interface LastRun {
  /** The day of the run, such as `2026-11-26`. */
  readonly date: string;
  /** The git revision; `-dirty` at its end if files had changed. */
  readonly revision: string;
  readonly machine: string;
  /** The last line of the run, such as `12 passed, 0 failed`. */
  readonly counts: string;
  readonly steps: Readonly<Record<string, StepFigures>>;
}

/** The figures of one step. */
export interface StepFigures {
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

/** Returns a sentence about the age of the last long run, which is a warning if the run is old. */
export function toAge(last: LastRun | undefined, now: number = Date.now()): string {
  const remedy = "run .ci/long before a change to stores, tasks, eras or transports is done";
  if (!last) return `Warning: the long series has no recorded run; ${remedy}`;
  const days = Math.floor((now - Date.parse(last.date)) / MS_PER_DAY);
  const text = `The long series last ran ${days} days ago, at ${last.revision}: ${last.counts}`;
  return days > OLD_DAYS ? `Warning: ${text}; ${remedy}` : text;
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

/** Writes the figures of a run. */
export async function writeLastRun(
  name: Name,
  { counts, figures }: {
    readonly counts: string;
    readonly figures: Readonly<Record<string, { readonly seconds: number; readonly output: string }>>;
  },
): Promise<void> {
  const steps = Object.entries(figures).map(([step, { seconds, output }]) => {
    // The file says nothing about the folders of the machine.
    const text = output.replaceAll(root.href, "").replaceAll(root.pathname, "").replaceAll(
      Deno.env.get("TMPDIR") ?? "/tmp",
      "…",
    );
    const lines = text.trim().split("\n").filter((line) => line.trim()).slice(-MOST_LINES);
    return [step, { seconds: Math.round(seconds), lines }] as const;
  });
  const run: LastRun = {
    date: new Date().toISOString().slice(0, 10),
    revision: await git("describe", "--always", "--dirty"),
    machine: await readMachine(),
    counts,
    steps: Object.fromEntries(steps),
  };
  await Deno.writeTextFile(toUrl(name), JSON.stringify(run, null, 2) + "\n");
}
