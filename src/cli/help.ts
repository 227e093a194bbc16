/**
 * What `--help` and `--version` print, and what follows an error.
 *
 * @module
 */
import { type Command, toProgram, toShell } from "./command.ts";
import { platform } from "./platform.ts";
import { findSuggestion } from "./suggestions.ts";
import { UsageProblem } from "./problem.ts";
import { VERSION } from "./version.ts";

export { VERSION };

/** Where a usage error leads to: the help of the command that was named, if it was one. */
export function toAdvice(command: string | undefined): string {
  return `More: ${toShell([...toProgram(), ...command === undefined ? [] : [command], "--help"])}`;
}

/**
 * Looks at a word that names no command. It is a target then, unless it is nearly a command and there is no such file.
 *
 * @throws {UsageProblem} if it is nearly a command.
 */
export async function refuseSlip(word: string, commands: readonly string[]): Promise<void> {
  const near = findSuggestion(word, commands);
  if (near === undefined || await platform.files.look(platform.toPath(word)).catch(() => true)) return;
  throw new UsageProblem(`Cannot run ${word}: there is no such command, and no such file; did you mean ${near}?`);
}

/** The help of a command; `all` are the commands to list. */
export function toHelp({ summary, usage, fails }: Command, all: readonly Command[]): string {
  const width = Math.max(...all.map(({ name }) => name.length));
  const list = all.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  const failed = fails === undefined ? "" : `, 1 ${fails}`;
  return [
    `@x/mcp ${VERSION}`,
    `${summary}:`,
    `  ${toShell(toProgram())} ${usage.trim().replace(/\n(?=.)/g, "\n  ")}`,
    ...list.length ? [`All commands, each with a --help of its own:\n\n${list.join("\n")}`] : [],
    `The exit code is 0${failed}, or 2 if there is something to fix in what was typed or in a file.`,
  ].join("\n\n");
}
