/**
 * Renders `--help`, and the hints that follow usage errors.
 *
 * @module
 */
import { toTable } from "./client/table.ts";
import { toLines } from "./client/terminal_text.ts";
import { type Command, type Options, toProgram, toShell } from "./command.ts";
import { platform } from "./platform.ts";
import { UsageError } from "./cli_error.ts";
import { findSuggestion } from "../core/suggestions.ts";
import { VERSION } from "./version.ts";

export { VERSION };

/** The options of every command. */
const COMMON: Options = {
  help: { text: "Print help; also -h" },
  version: { text: "Print the version" },
};

const MIN_COLUMNS = 40;
const MAX_COLUMNS = 100;
const DEFAULT_COLUMNS = 80;

/** The line after a usage error: how to print the help of the command, if the user named one. */
export function toHelpHint(command: string | undefined): string {
  return `More: ${toShell([...toProgram(), ...command === undefined ? [] : [command], "--help"])}`;
}

/**
 * Checks a first argument that is not a command. It is a target, unless it resembles a command and no such file exists.
 *
 * @throws {UsageError} if it resembles a command.
 */
export async function rejectMisspelling(word: string, commands: readonly string[]): Promise<void> {
  const suggestion = findSuggestion(word, commands);
  if (suggestion === undefined || await platform.files.stat(platform.toPath(word)).catch(() => true)) return;
  throw new UsageError(`Cannot run ${word}: there is no such command, and no such file; did you mean ${suggestion}?`);
}

/** @throws {UsageError} for a topic of `mcp help` that is not a command. */
export function rejectTopic(word: string, commands: readonly string[]): never {
  const suggestion = findSuggestion(word, commands);
  const remedy = suggestion === undefined ? `the commands are ${commands.join(", ")}` : `did you mean ${suggestion}?`;
  throw new UsageError(`Cannot print the help of ${word}: there is no such command; ${remedy}`);
}

/** @throws {UsageError} for an option that the command does not have. `names` are those that it has. */
export function rejectOption(flag: string, names: readonly string[]): never {
  const suggestion = findSuggestion(flag.slice(2), names);
  const listed = names.map((each) => `--${each}`).join(", ");
  const remedy = suggestion === undefined ? `the options are ${listed}` : `did you mean --${suggestion}?`;
  throw new UsageError(`Cannot read ${flag}: there is no such option; ${remedy}`);
}

/** The help of a command, no wider than `columns`. `commands` are the commands to list, if any. */
export function toHelp(
  command: Command,
  commands: readonly Command[],
  columns: number = platform.terminal.columns("output") || DEFAULT_COLUMNS,
): string {
  const width = Math.min(MAX_COLUMNS, Math.max(MIN_COLUMNS, columns));
  const toSection = (title: string, lines: readonly string[]) => lines.length ? [[`${title}:`, ...lines]] : [];
  const toRows = (rows: readonly (readonly string[])[]) => toTable(rows, { indent: 2, width });
  const toCommandLines = (lines: readonly string[]) => lines.flatMap((line) => toHanging(`mcp ${line}`, width));
  const paragraphs = [
    toLines(command.summary, width),
    ...toSection("Usage", toCommandLines(command.usage)),
    ...(command.description ?? []).map((text) => toLines(text, width)),
    ...toSection("Commands", toRows(commands.map(({ name, summary }) => [name, summary]))),
    ...commands.length ? [toLines("Run mcp COMMAND --help for the options of a command.", width)] : [],
    ...toSection("Options", toRows(Object.entries({ ...command.options, ...COMMON }).map(toOptionRow))),
    ...toSection("Examples", toCommandLines(command.examples)),
    ...toSection("Exit codes", toRows(toExitRows(command))),
    toLines(`In this help, mcp stands for: ${toShell(toProgram())}`, width),
  ];
  return paragraphs.map((lines) => lines.join("\n")).join("\n\n");
}

function toOptionRow([name, { value, text }]: [name: string, option: Options[string]]): readonly string[] {
  return [`--${name}${value === undefined ? "" : ` ${value}`}`, text];
}

function toExitRows({ exitCodes = {} }: Command): readonly (readonly string[])[] {
  return Object.entries({ 0: "Success", 2: "Usage or configuration error", ...exitCodes });
}

/** A command line, indented; its continuation lines are indented further. */
function toHanging(line: string, width: number): readonly string[] {
  return toLines(line, width - 6).map((each, i) => `${" ".repeat(i ? 6 : 2)}${each}`);
}
