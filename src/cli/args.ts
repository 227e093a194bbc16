/**
 * Splits the arguments of the command line into options and operands.
 *
 * @module
 */
import { UsageError } from "./cli_error.ts";
import { importModule } from "./lazy_modules.ts";

/** The options of a command by name: `true` if the option takes a value, `"repeatable"` if it takes several values. */
export type Flags = Readonly<Record<string, boolean | "repeatable">>;

/** The parsed arguments. */
export interface Args {
  /** The arguments that are not options. */
  readonly operands: readonly string[];
  /** The value of each option by name. The empty string for an option without a value. */
  readonly flags: Readonly<Record<string, string>>;
  /**
   * All values of each option in the order of the command line, for options that may be repeated. `flags` contains only
   * the last value.
   */
  readonly all: Readonly<Record<string, readonly string[]>>;
  /** The arguments after `--`. `undefined` if there is no `--`. */
  readonly rest?: readonly string[];
}

/**
 * Parses `--name`, `--name value` and `--name=value`, in any order with operands. Arguments after `--` are not parsed:
 * these arguments are for the served file or for the command that starts a server.
 *
 * @throws {UsageError} for an unknown option, a missing or empty value, a second value of an option that is not
 * repeatable, or a value of an option without values.
 */
export async function readArgs(words: readonly string[], known: Flags): Promise<Args> {
  const operands: string[] = [];
  const flags: Record<string, string> = {};
  const all: Record<string, string[]> = {};
  const end = words.indexOf("--");
  for (let i = 0; i < words.length && words[i] !== "--"; i++) {
    const word = SHORT.get(words[i]) ?? words[i];
    if (!word.startsWith("-")) {
      operands.push(word);
      continue;
    }
    const [flag, ...rest] = word.split("=");
    const name = toKnownName(flag, known);
    if (name === undefined) {
      const { rejectOption } = await importModule<typeof import("./misspellings.ts")>("./misspellings.ts");
      return rejectOption(flag, Object.keys(known));
    }
    if (!known[name] && rest.length) {
      throw new UsageError(`Cannot read ${word}: ${flag} takes no value; remove the value`);
    }
    const value = !known[name] ? "" : rest.length ? rest.join("=") : words[++i];
    // Treat an empty value as missing, because it usually comes from a shell variable that is not set.
    const isMissing = value === undefined || value === "" || !rest.length && value.startsWith("--");
    if (known[name] && isMissing) {
      throw new UsageError(`Cannot read ${flag}: it needs a value; write ${flag} VALUE`);
    }
    if (known[name] === true && (flags[name] ?? value) !== value) {
      throw new UsageError(`Cannot use ${flag} twice: it takes one value; remove one`);
    }
    flags[name] = value;
    (all[name] ??= []).push(value);
  }
  return { operands, flags, all, ...end >= 0 && { rest: words.slice(end + 1) } };
}

/** The short forms of options. */
const SHORT = new Map([["-h", "--help"], ["-A", "--allow-all"]]);

/**
 * Rejects arguments after `--`, which the command `name` would ignore.
 *
 * @throws {UsageError} if there are such arguments.
 */
export function rejectRest({ rest }: Args, name: string): void {
  if (!rest) return;
  const words = ["--", ...rest].join(" ");
  throw new UsageError(`Cannot use ${words}: ${name} takes no arguments after --; remove them`);
}

/** The name of an option without its dashes. Returns `undefined` if the command has no such option. */
function toKnownName(flag: string, known: Flags): string | undefined {
  const name = flag.slice(2);
  return flag.startsWith("--") && Object.hasOwn(known, name) ? name : undefined;
}
