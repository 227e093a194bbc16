/**
 * Words of the command line to flags and operands.
 *
 * @module
 */
import { findSuggestion } from "./suggestions.ts";
import { UsageProblem } from "./problem.ts";

/** The flags of a command: `true` for one that takes a value, `false` for one that does not. */
export type Flags = Readonly<Record<string, boolean>>;

/** What the user wrote. */
export interface Args {
  /** Words that are no flags. */
  readonly operands: readonly string[];
  /** Values by the flag's name; of a flag without a value, the empty text. */
  readonly flags: Readonly<Record<string, string>>;
  /** All values of each flag in their order, for one that may be repeated; in `flags` is the last. */
  readonly all: Readonly<Record<string, readonly string[]>>;
  /** What follows `--`, if that is there. */
  readonly rest?: readonly string[];
}

/**
 * Reads `--name`, `--name value` and `--name=value`, in any order with operands. What follows `--` is not looked at:
 * it is for the file or the command that is run.
 *
 * @throws {Problem} for a flag that is not known, or has no value, or one too many.
 */
export function readArgs(words: readonly string[], known: Flags): Args {
  const operands: string[] = [];
  const flags: Record<string, string> = {};
  const all: Record<string, string[]> = {};
  const end = words.indexOf("--");
  for (let i = 0; i < words.length && words[i] !== "--"; i++) {
    const word = words[i] === "-h" ? "--help" : words[i];
    if (!word.startsWith("-")) {
      operands.push(word);
      continue;
    }
    const [flag, ...rest] = word.split("=");
    const name = flag.slice(2);
    if (!flag.startsWith("--") || !Object.hasOwn(known, name)) {
      const near = findSuggestion(name, Object.keys(known));
      const names = Object.keys(known).map((name) => `--${name}`).join(", ");
      const hint = near === undefined ? `there are ${names}` : `did you mean --${near}?`;
      throw new UsageProblem(`Cannot read ${flag}: there is no such flag; ${hint}`);
    }
    if (!known[name] && rest.length) {
      throw new UsageProblem(`Cannot read ${word}: ${flag} takes no value; write it alone`);
    }
    const value = !known[name] ? "" : rest.length ? rest.join("=") : words[++i];
    if (value === undefined || (known[name] && !rest.length && value.startsWith("--"))) {
      throw new UsageProblem(`Cannot read ${flag}: it needs a value; write ${flag} VALUE`);
    }
    flags[name] = value;
    (all[name] ??= []).push(value);
  }
  return { operands, flags, all, ...end >= 0 && { rest: words.slice(end + 1) } };
}
