/**
 * The command line.
 *
 * @module
 */
import { toPrintable } from "../protocol/printable.ts";
import { readArgs } from "./args.ts";
import type { Command } from "./command.ts";
import { platform } from "./platform.ts";
import { importPart } from "./lazy_modules.ts";
import { Problem, UsageProblem } from "./problem.ts";
import { serve } from "./serve.ts";

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

/** Runs what the user asks for, and ends the process with 0, or with 2 if the user has something to mend. */
export async function main(): Promise<void> {
  platform.onIdle(() => {
    console.error("Cannot go on: what is loaded waits for itself; look for files that import each other with await");
    platform.exit(2);
  });
  try {
    platform.exit(await run(platform.args) ?? 0);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    // Names and texts in it may be those of a server, or of a file that somebody else wrote.
    console.error(toPrintable(error.message) + (error instanceof UsageProblem ? await toAdvice() : ""));
    platform.exit(error.exitCode);
  }
}

/** Runs the command that is named first, or else the first of all. */
async function run(words: readonly string[]): Promise<number | void> {
  const load = commands.get(words[0]);
  if (!load && /^[a-z]+$/.test(words[0] ?? "")) {
    await (await importPart("./help.ts")).refuseSlip(words[0], [...commands.keys()]);
  }
  const command = load ? await load() : serve;
  const args = readArgs(load ? words.slice(1) : words, { help: false, version: false, ...command.flags });
  if ("help" in args.flags || "version" in args.flags) {
    const { toHelp, VERSION } = await importPart("./help.ts");
    if ("version" in args.flags && !("help" in args.flags)) return console.log(VERSION);
    return console.log(await wrapHelp(toHelp(command, load ? [] : await loadCommands())));
  }
  return await command.run(args);
}

async function toAdvice(): Promise<string> {
  const [word] = platform.args;
  return `\n\n${(await importPart("./help.ts")).toAdvice(commands.has(word) ? word : undefined)}`;
}

/** Breaks lines at the width of the terminal. */
async function wrapHelp(text: string): Promise<string> {
  const columns = platform.terminal.columns("output");
  return columns ? (await importPart("./help_layout.ts")).wrapHelp(text, columns) : text;
}
