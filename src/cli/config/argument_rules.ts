/**
 * The rule for arguments of a tool call in a command. The rule ensures that a call can choose values, but not the
 * options, files, hosts and code that a program uses.
 *
 * A program gets its words unchanged, and no shell interprets the words. But a program may read a word or its standard
 * input as an option, a file, a host or code, and no table can list what all programs do. Therefore an argument must be
 * a whole word, and a listed value, a boolean, a number that is not negative, or a path in the working directory. The
 * config file must name every other argument in `unsafe`.
 */

/** An argument of a tool call in a word of a command. */
export interface WordArgument {
  readonly name: string;
  /** Whether the word contains text in addition to the argument. */
  readonly isPartial: boolean;
  /** Whether the argument can be any text, and not only a path, a number, a boolean or a listed value. */
  readonly isText: boolean;
  /** Whether the argument can be a negative number. */
  readonly isSigned: boolean;
}

export function toRemedy(name: string): string {
  return `add "unsafe": [${JSON.stringify(name)}] if no value of the argument can do harm`;
}

/** Explains why a word must not contain its argument. Returns `undefined` if the argument is allowed. */
export function explainArgument({ name, isPartial, isText, isSigned }: WordArgument): string | undefined {
  if (isPartial) {
    return `the argument ${name} is only part of this word; make the argument a separate word, or ${toRemedy(name)}`;
  }
  if (isText) {
    return `the argument ${name} is free text, so a call can name any file, host or command that the program accepts; ` +
      `limit ${name} with enum or "format": "path", or ${toRemedy(name)}`;
  }
  if (!isSigned) return;
  return `the argument ${name} can be negative, so the program may read it as an option; add "minimum": 0 to ${name}, ` +
    `or ${toRemedy(name)}`;
}

/** Explains why the standard input must not contain an argument that is a text or a path. */
export function explainInput(name: string): string {
  return `the argument ${name} is free text or a path, and programs such as shells and database clients run their ` +
    `standard input as code; limit ${name} with enum, or ${toRemedy(name)}`;
}

/** Whether a word is an option that may take the next word as its value, even if that word is `--`. */
export function mayTakeValue(text: string): boolean {
  return /^-./s.test(text) && text !== "--" && !/^--[^=]+=/.test(text);
}
