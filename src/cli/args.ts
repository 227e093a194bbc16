/**
 * Splits the arguments of the command line into options and operands.
 */
import { UsageError } from "./cli_error.ts";
import { importModule } from "./lazy_modules.ts";

/**
 * The options of a command, keyed by name without the leading `--`. `true` if the option takes a value, `"repeatable"`
 * if it takes several values.
 */
export type Flags = Readonly<Record<string, boolean | "repeatable">>;

export interface Args {
  /** The arguments that are not options. */
  readonly operands: readonly string[];
  /** The last value of each option, keyed by name. The value of an option that takes no value is the empty string. */
  readonly flags: Readonly<Record<string, string>>;
  /** All values of each option, in the order of the command line. `flags` contains only the last value. */
  readonly all: Readonly<Record<string, readonly string[]>>;
  /** The arguments after `--`. `undefined` if there is no `--`. */
  readonly rest?: readonly string[];
}

/**
 * Parses `--name`, `--name value` and `--name=value`. Options and operands may come in any order. Arguments after `--`
 * are not parsed, because they belong to the served file, or form the command that starts a server.
 *
 * @throws {UsageError} if an option is unknown, lacks its value, or has a value that it does not take, or if an option
 * that is not repeatable has two values.
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
      const { checkOperand } = await importModule<typeof import("./misspellings.ts")>("./misspellings.ts");
      checkOperand(word, flag, Object.keys(known));
      operands.push(word);
      continue;
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
      throw new UsageError(`Cannot use ${flag} twice: the option takes one value; remove one of the two values`);
    }
    flags[name] = value;
    (all[name] ??= []).push(value);
  }
  return { operands, flags, all, ...end >= 0 && { rest: words.slice(end + 1) } };
}

/** The short forms of options. */
const SHORT = new Map([["-h", "--help"], ["-A", "--allow-all"]]);

/** @throws {UsageError} if there is a second operand. `limit` says what the command takes. */
export function rejectSecond(
  [first, second]: readonly string[],
  { verb, limit }: { readonly verb: string; readonly limit: string },
): void {
  if (second === undefined) return;
  throw new UsageError(`Cannot ${verb} ${first} and ${second}: ${limit}; remove one of the two`);
}

/** @throws {UsageError} if there are arguments after `--`, because the command `name` would ignore them. */
export function rejectRest({ rest }: Args, name: string): void {
  if (!rest) return;
  const words = ["--", ...rest].join(" ");
  throw new UsageError(`Cannot use ${words}: ${name} takes no arguments after --; remove them`);
}

/** Splits the values of a repeatable option at commas, and removes duplicates. */
export function toList(values: readonly string[] = []): readonly string[] {
  return [...new Set(values.flatMap((value) => value.split(",")).filter(Boolean))];
}

/** Returns the name of an option without the leading `--`, or `undefined` if the command has no such option. */
function toKnownName(flag: string, known: Flags): string | undefined {
  const name = flag.slice(2);
  return flag.startsWith("--") && Object.hasOwn(known, name) ? name : undefined;
}
