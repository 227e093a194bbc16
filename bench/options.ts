// Reads the command-line options of long-running tasks. Rejects unknown options before the task begins, and prints all
// options for `--help`.
import { readOptions } from "../tests/support/options.ts";

/** A task with its options and their help texts. */
export interface Task {
  /** The name of the task in deno.json. */
  readonly name: string;
  /** A summary in one sentence. */
  readonly summary: string;
  /** Help texts of options with a value, keyed by the option and its value, such as `"--only W1,W5"`. */
  readonly values?: Readonly<Record<string, string>>;
  readonly flags?: Readonly<Record<string, string>>;
}

/**
 * Reads `--name value`, `--name=value` and flags. The value of a flag is the empty string. Exits after `--help`. Exits
 * with code 2 for an unknown option.
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
  // Remove `--`, which separates a task from its options, because some versions of Deno pass `--` on.
  if (words[0] === "--") words.shift();
  return orUsageError(() => readOptions(words, { values: names, flags: Object.keys(flags) }));
}

/** Calls a function that reads options. If the function throws, prints the error message and exits with code 2. */
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
