/**
 * The words of a command, with the arguments of a call marked in them.
 *
 * @module
 */
import { toBaseName } from "../path.ts";

/** Marks an argument of the call in the text of a word. */
export const ARGUMENT = "\0";

/** A word of a command. */
export interface CommandWord {
  /** Its text, with {@linkcode ARGUMENT} in the place of each argument. */
  readonly text: string;
  /** Whether a call can leave it out. */
  readonly isOptional: boolean;
}

/** A word into which a call may be able to write code. */
export interface CodeRisk {
  /** `error` if the program is known to read code there; `warning` if the program is unknown. */
  readonly level: "error" | "warning";
  /** The index of the word; `undefined` for standard input. */
  readonly word?: number;
  readonly state: string;
}

/** The command that is checked, and the risks found so far. */
export interface CommandScan {
  readonly words: readonly CommandWord[];
  readonly stdin: string;
  readonly risks: CodeRisk[];
  readonly addError: (word: number, state: string) => void;
  readonly addWarning: (word: number) => void;
}

/** How a wrapper such as `xargs` passes standard input on to the program it runs. */
export interface InputUse {
  /** Whether standard input becomes words of the command. */
  readonly isAppended: boolean;
  /** The text in the command's words that standard input replaces. */
  readonly placeholder?: string;
}

/** Whether the text of a word holds an argument of the call. */
export function hasArgument(text = ""): boolean {
  return text.includes(ARGUMENT);
}

/** Whether a word holds an argument beside other text. */
export function hasPartialArgument(text: string): boolean {
  return hasArgument(text) && text !== ARGUMENT;
}

/** The name of an option without its value. */
export function toOptionName(text: string): string {
  return text.split("=", 1)[0];
}

/** The name of a program without its folder and its suffix. */
export function toProgramName(text: string): string {
  return toBaseName(text.replaceAll("\\", "/")).toLowerCase().replace(/\.(exe|cmd|bat|com)$/, "");
}

/** Finds a program in a table, by its name or by its name without a version number. */
export function findProgram<T>(table: readonly (readonly [RegExp, T])[], name: string): T | undefined {
  const unversioned = name.replace(/(?<=[a-z])[-_.]?\d[\d._-]*$/, "");
  return table.find(([names]) => names.test(name))?.[1] ?? table.find(([names]) => names.test(unversioned))?.[1];
}
