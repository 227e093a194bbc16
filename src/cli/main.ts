/**
 * The command line.
 *
 * @module
 */
import { toPrintable } from "../protocol/printable.ts";
import { readArgs } from "./args.ts";
import { type Command, toProgram, toShell } from "./command.ts";
import { host } from "./host.ts";
import { findNear } from "./near.ts";
import { importPart } from "./parts.ts";
import { Problem, UsageProblem } from "./problem.ts";
import { serve } from "./serve.ts";
import { VERSION } from "./version.ts";

// `serve` is there from the start, because clients wait for it. The other commands are loaded when they are named.
const commands: ReadonlyMap<string, () => Promise<Command>> = new Map(Object.entries({
  serve: () => Promise.resolve(serve),
  check: async () => (await importPart("./check.ts")).check,
  doctor: async () => (await importPart("./doctor.ts")).doctor,
  install: async () => (await importPart("./install.ts")).install,
  new: async () => (await importPart("./new.ts")).create,
  inspect: async () => (await importPart("./inspect.ts")).inspect,
  call: async () => (await importPart("./call.ts")).call,
  read: async () => (await importPart("./read.ts")).read,
  prompt: async () => (await importPart("./prompt.ts")).prompt,
  completions: async () => (await importPart("./completions.ts")).toCompletions(loadCommands),
}));

function loadCommands(): Promise<readonly Command[]> {
  return Promise.all([...commands.values()].map((load) => load()));
}

/** Runs what the user asks for, and ends the process with 0, with 1 if a server fails, or with 2 for a usage error. */
export async function main(): Promise<void> {
  host.onIdle(() => {
    console.error("Cannot go on: what is loaded waits for itself; look for files that import each other with await");
    host.exit(2);
  });
  try {
    host.exit(await run(host.args) ?? 0);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    // Names and texts in it may be those of a server, or of a file that somebody else wrote.
    const [word] = host.args;
    const help = toShell([...toProgram(), ...commands.has(word) ? [word] : [], "--help"]);
    console.error(toPrintable(error.message) + (error instanceof UsageProblem ? `\n\nMore: ${help}` : ""));
    host.exit(error.exitCode);
  }
}

/** Runs the command that is named first, or else the first of all. */
async function run(words: readonly string[]): Promise<number | void> {
  const load = commands.get(words[0]);
  if (!load) await refuseSlip(words[0]);
  const command = load ? await load() : serve;
  const args = readArgs(load ? words.slice(1) : words, { help: false, version: false, ...command.flags });
  if ("help" in args.flags) return console.log(await wrapHelp(toHelp(command, load ? [] : await loadCommands())));
  if ("version" in args.flags) return console.log(VERSION);
  return await command.run(args);
}

// What is no command is a target, and of one that is not there it would be said that a file is missing.
async function refuseSlip(word = ""): Promise<void> {
  const near = /^[a-z]+$/.test(word) ? findNear(word, [...commands.keys()]) : undefined;
  if (near === undefined || await host.files.look(host.toPath(word)).catch(() => true)) return;
  throw new UsageProblem(`Cannot run ${word}: there is no such command, and no such file; did you mean ${near}?`);
}

/** Breaks lines at the width of the terminal. */
async function wrapHelp(text: string): Promise<string> {
  const columns = host.terminal.columns("output");
  return columns ? (await importPart("./help.ts")).wrapHelp(text, columns) : text;
}

function toHelp({ summary, usage, fails }: Command, all: readonly Command[]): string {
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
