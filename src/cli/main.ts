/**
 * The command line.
 *
 * @module
 */
import { readArgs } from "./args.ts";
import { call } from "./call.ts";
import { check } from "./check.ts";
import { type Command, toProgram, toShell } from "./command.ts";
import { host } from "./host.ts";
import { install } from "./install.ts";
import { create } from "./new.ts";
import { Problem } from "./problem.ts";
import { serve } from "./serve.ts";
import { VERSION } from "./version.ts";

const commands: readonly Command[] = [serve, check, install, create, call];

/** Runs what the user asks for, and ends the process with 0, or with 2 if the user has something to mend. */
export async function main(): Promise<void> {
  try {
    host.exit(await run(host.args) ?? 0);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    console.error(`${error.message}\n\nMore: ${toShell([...toProgram(), "--help"])}`);
    host.exit(2);
  }
}

/** Runs the command that is named first, or else the first of all. */
async function run(words: readonly string[]): Promise<number | void> {
  const named = commands.find(({ name }) => name === words[0]);
  const { run, flags } = named ?? serve;
  const args = readArgs(named ? words.slice(1) : words, { help: false, version: false, ...flags });
  if ("help" in args.flags) return console.log(toHelp(named));
  if ("version" in args.flags) return console.log(VERSION);
  return await run(args);
}

function toHelp(named: Command | undefined): string {
  const program = toShell(toProgram());
  const shown = named ? [named] : commands;
  const parts = shown.map(({ summary, usage }) =>
    `${summary}:\n\n  ${program} ${usage.trim().replaceAll("\n", "\n  ")}\n`
  );
  return [`@x/mcp ${VERSION}`, ...parts].join("\n\n");
}
