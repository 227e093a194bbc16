/**
 * Rejects unknown commands and options, and suggests similar names.
 */
import { findSuggestion } from "../core/kit/suggestions.ts";
import { UsageError } from "./cli_error.ts";
import { platform } from "./platform.ts";

/**
 * Checks a first argument that is not a command. The argument counts as a target if a file with this name exists, or if
 * the argument does not resemble a command.
 *
 * @throws {UsageError} if the argument resembles a command, and no such file exists.
 */
export async function rejectMisspelling(word: string, commands: readonly string[]): Promise<void> {
  const suggestion = findSuggestion(word, commands);
  if (suggestion === undefined || await platform.findKind(platform.toPath(word)).catch(() => true)) return;
  throw new UsageError(`Cannot run ${word}: there is no such command, and no such file; did you mean ${suggestion}?`);
}

/**
 * Rejects an argument of `mcp help` that is not a command.
 *
 * @throws {UsageError} always.
 */
export function rejectTopic(word: string, commands: readonly string[]): never {
  const suggestion = findSuggestion(word, commands);
  const remedy = suggestion === undefined ? `the commands are ${commands.join(", ")}` : `did you mean ${suggestion}?`;
  throw new UsageError(`Cannot print the help of ${word}: there is no such command; ${remedy}`);
}

/** The length of the shortest argument with one dash that counts as the ID of a task. */
const ID_LENGTH = 16;

/**
 * Checks an argument that begins with a dash and is not an option of the command. The IDs of tasks that a server makes
 * may begin with a dash. `names` are the options of the command.
 *
 * @throws {UsageError} if the argument begins with two dashes, is short, or resembles an option.
 */
export function checkOperand(word: string, flag: string, names: readonly string[]): void {
  const suggestion = findSuggestion(flag.replace(/^--?/, ""), names);
  if (suggestion === undefined && /^-[^-]/.test(word) && word.length >= ID_LENGTH) return;
  const listed = names.map((each) => `--${each}`).join(", ");
  const remedy = suggestion === undefined ? `the options are ${listed}` : `did you mean --${suggestion}?`;
  throw new UsageError(`Cannot read ${flag}: there is no such option; ${remedy}`);
}
