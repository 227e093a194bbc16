/**
 * Rejects unknown commands and options, and suggests similar names.
 */
import { findSuggestion } from "../core/kit/suggestions.ts";
import { UsageError } from "./cli_error.ts";
import { suggestName } from "./client/name_lookup.ts";
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

/** @throws {UsageError} always, because the argument of `mcp help` is not a command. */
export function rejectTopic(word: string, commands: readonly string[]): never {
  const remedy = suggestName(word, commands, `the commands are ${commands.join(", ")}`);
  throw new UsageError(`Cannot print the help of ${word}: there is no such command; ${remedy}`);
}

/** Matches IDs of tasks that begin with a dash, which servers make with random text in Base64url. */
const DASHED_ID = /^-\w[\w-]{14,}$/;

/**
 * Checks an argument that begins with a dash and is not an option of the command. The argument is an operand if it can
 * be the ID of a task. `flag` is the argument without its value, and `names` are the options of the command.
 *
 * @throws {UsageError} if the argument cannot be an ID, or resembles an option.
 */
export function checkOperand(word: string, flag: string, names: readonly string[]): void {
  const suggestion = findSuggestion(flag.replace(/^--?/, ""), names);
  if (suggestion === undefined && DASHED_ID.test(word)) return;
  const listed = names.map((each) => `--${each}`).join(", ");
  const remedy = suggestion === undefined ? `the options are ${listed}` : `did you mean --${suggestion}?`;
  throw new UsageError(`Cannot read ${flag}: there is no such option; ${remedy}`);
}
