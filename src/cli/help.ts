/**
 * Formats the output of `--help`, and the hints after usage errors.
 */
import { toLines, toTable } from "./client/terminal_text.ts";
import { type Command, type Options, toProgram, toShell } from "./command.ts";
import { platform } from "./platform.ts";
import { VERSION } from "./version.ts";

export { VERSION };

/** Options that every command has in addition to its own options. */
const COMMON: Options = {
  help: { text: "Print help; also -h" },
  version: { text: "Print the version" },
};

const MIN_COLUMNS = 40;
const MAX_COLUMNS = 100;
const DEFAULT_COLUMNS = 80;

/** Names the command that prints the help. `command` is the name of the user's command, if known. */
export function toHelpHint(command: string | undefined): string {
  return `More: ${toShell([...toProgram(), ...command === undefined ? [] : [command], "--help"])}`;
}

/** Returns the help of a command. Lines are at most `columns` wide. The help also lists `commands`. */
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
    ...commands.length ? [toLines("Run mcp COMMAND --help to see the options of a command.", width)] : [],
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

/** Formats a command line with an indent. Continuation lines are indented further. */
function toHanging(line: string, width: number): readonly string[] {
  return toLines(line, width - 6).map((each, i) => `${" ".repeat(i ? 6 : 2)}${each}`);
}
