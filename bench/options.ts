// Options of long-running tasks: unknown ones are refused before the task begins, and `--help` lists all.
import { readOptions } from "../tests/support/options.ts";

/** A task and its options, each with its explanation. */
export interface Task {
  /** The name in deno.json. */
  readonly name: string;
  /** One sentence. */
  readonly summary: string;
  /** Options with a value: `"--only W1,W5"` and what it does. */
  readonly values?: Readonly<Record<string, string>>;
  readonly flags?: Readonly<Record<string, string>>;
}

/**
 * Reads `--name value`, `--name=value` and flags; flags have an empty text. Ends the process after `--help`, and with
 * exit code 2 for an unknown option.
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
  // Some versions of Deno pass on the `--` that separates a task from its options.
  if (words[0] === "--") words.shift();
  return orUsageError(() => readOptions(words, { values: names, flags: Object.keys(flags) }));
}

/** Runs a check of options; ends the process with its message and exit code 2 if it throws. */
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
