// Options of long-running tasks. Unknown options are rejected before the task begins, and `--help` lists all options.
import { readOptions } from "../tests/support/options.ts";

/** A task with its options and their explanations. */
export interface Task {
  /** The name in deno.json. */
  readonly name: string;
  /** A summary in one sentence. */
  readonly summary: string;
  /** Options with a value, such as `"--only W1,W5"`, with their explanations. */
  readonly values?: Readonly<Record<string, string>>;
  readonly flags?: Readonly<Record<string, string>>;
}

/**
 * Reads `--name value`, `--name=value` and flags. The value of a flag is the empty string. Ends the process after
 * `--help`, and with exit code 2 for an unknown option.
 */
export function readTaskOptions(args: readonly string[], task: Task): ReadonlyMap<string, string> {
  const { values = {}, flags = {} } = task;
  if (args.includes("--help")) {
    console.log(toHelp(task));
    Deno.exit(0);
  }
  const names = Object.keys(values).map((usage) => usage.split(" ")[0]);
  const words = args.flatMap((arg) => {
    const at = arg.indexOf("=");
    return at > 0 && names.includes(arg.slice(0, at)) ? [arg.slice(0, at), arg.slice(at + 1)] : [arg];
  });
  // Remove `--`, which separates a task from its options, because some versions of Deno pass it on.
  if (words[0] === "--") words.shift();
  return orUsageError(() => readOptions(words, { values: names, flags: Object.keys(flags) }));
}

/** Runs a check of options. If it throws, ends the process with its message and exit code 2. */
export function orUsageError<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    console.error(error.message);
    Deno.exit(2);
  }
}

function toHelp({ name, summary, values = {}, flags = {} }: Task): string {
  const options = Object.entries({ ...values, ...flags, "--help": "Print this help" });
  const width = Math.max(...options.map(([usage]) => usage.length));
  return [
    summary,
    `  deno task ${name} [options]`,
    options.map(([usage, text]) => `  ${usage.padEnd(width)}  ${text}`).join("\n"),
  ].join("\n\n");
}
