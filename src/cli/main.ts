/**
 * The command line.
 *
 * @module
 */
import { readArgs } from "./args.ts";
import { call } from "./call.ts";
import { check } from "./check.ts";
import { type Command, toProgram, toShell } from "./command.ts";
import { toCompletions } from "./completions.ts";
import { doctor } from "./doctor.ts";
import { host } from "./host.ts";
import { inspect } from "./inspect.ts";
import { install } from "./install.ts";
import { findNear } from "./near.ts";
import { create } from "./new.ts";
import { Problem } from "./problem.ts";
import { prompt } from "./prompt.ts";
import { read } from "./read.ts";
import { serve } from "./serve.ts";
import { VERSION } from "./version.ts";

const commands: Command[] = [serve, check, doctor, install, create, inspect, call, read, prompt];
commands.push(toCompletions(commands));

/** Runs what the user asks for, and ends the process with 0, or with 2 if the user has something to mend. */
export async function main(): Promise<void> {
  host.onIdle(() => {
    console.error("Cannot go on: what is loaded waits for itself; look for files that import each other with await");
    host.exit(2);
  });
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
  if (!named) await refuseSlip(words[0]);
  const { run, flags } = named ?? serve;
  const args = readArgs(named ? words.slice(1) : words, { help: false, version: false, ...flags });
  if ("help" in args.flags) return console.log(toHelp(named));
  if ("version" in args.flags) return console.log(VERSION);
  return await run(args);
}

// What is no command is a target, and of one that is not there it would be said that a file is missing.
async function refuseSlip(word = ""): Promise<void> {
  const near = /^[a-z]+$/.test(word) ? findNear(word, commands.map(({ name }) => name)) : undefined;
  if (near === undefined || await host.files.look(host.toPath(word)).catch(() => true)) return;
  throw new Problem(`Cannot run ${word}: there is no such command, and no such file; did you mean ${near}?`);
}

function toHelp(named: Command | undefined): string {
  const { summary, usage, fails } = named ?? serve;
  const width = Math.max(...commands.map(({ name }) => name.length));
  const list = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  const failed = fails === undefined ? "" : `, 1 ${fails}`;
  return [
    `@x/mcp ${VERSION}`,
    `${summary}:`,
    `  ${toShell(toProgram())} ${usage.trim().replace(/\n(?=.)/g, "\n  ")}`,
    ...named ? [] : [`All commands, each with a --help of its own:\n\n${list.join("\n")}`],
    `The exit code is 0${failed}, or 2 if there is something to mend in what was typed or in a file.`,
  ].join("\n\n");
}
