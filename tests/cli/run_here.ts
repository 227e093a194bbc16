// Runs the command line in this process, for tests of what a command prints and writes. A process takes a second to start,
// so only tests of signals, terminals, permissions and standard input start one.
import { AsyncLocalStorage } from "node:async_hooks";
import { createRequire } from "node:module";
import process from "node:process";
import { format } from "node:util";
import { main } from "../../src/cli/main.ts";
import { platform } from "../../src/cli/platform.ts";
import { toAbsolutePath, toFileHref } from "../../src/ready/files/path.ts";
import type { Finished, RunOptions } from "../support/processes.ts";
import { withFolder } from "../support/folder.ts";

/** A command that runs in this process. */
interface Command {
  readonly words: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly output: { stdout: string; stderr: string };
  /** The methods of the console that differ from those of this process. */
  readonly console: Map<string | symbol, unknown>;
}

/** Thrown instead of exiting the process. */
class Exit {
  readonly code: number;

  constructor(code: number) {
    this.code = code;
  }
}

/** The command to which the running code belongs, because tests run several commands at the same time. */
const commands = new AsyncLocalStorage<Command>();
const { args, exit, onSignal, onIdle, env, toPath, toFileUrl, isTerminal } = platform;
const { isAt, hasNoColor, input, write, writeError } = platform.terminal;
const root = new URL("../../", import.meta.url).pathname;

/** Returns a function that calls the first function in a command, and otherwise the second one. */
function within<Args extends unknown[], Value>(
  here: (command: Command, ...args: NoInfer<Args>) => Value,
  elsewhere: (...args: Args) => Value,
): (...args: Args) => Value {
  return (...args) => {
    const command = commands.getStore();
    return command ? here(command, ...args) : elsewhere(...args);
  };
}

/** The commands that have loaded each file. */
const loaded = new Map<string, Command[]>();
const { cache } = createRequire(import.meta.url);

/** The version in the URL of code that an earlier command has loaded. */
const VERSION = /(?<=\.[cm]?[jt]sx?)\?\d+(?=:)/g;

/** Returns the URL of a file. Each command loads code again, as each process does. */
function toUrl(command: Command, path: string): string {
  const file = toAbsolutePath(path, () => command.cwd, false);
  const url = toFileHref(file);
  if (!/\.[cm]?[jt]sx?$/.test(url)) return url;
  const users = loaded.get(url) ?? [];
  loaded.set(url, users);
  if (!users.includes(command)) {
    users.push(command);
    delete cache[file]; // Bun ignores the query of a `file:` URL.
  }
  const version = users.indexOf(command);
  return version && platform.runtime !== "bun" ? `${url}?${version}` : url;
}

Object.defineProperty(platform, "args", { get: () => commands.getStore()?.words ?? args });
Object.assign(platform, {
  exit: within((_command, code: number): never => {
    throw new Exit(code);
  }, exit),
  onSignal: within(() => {}, onSignal),
  onIdle: within(() => {}, onIdle),
  env: within((command, name: string) => command.env[name], env),
  toPath: within(({ cwd }, path: string) => toAbsolutePath(path, () => cwd, false), toPath),
  toFileUrl: within(toUrl, toFileUrl),
  isTerminal: within(() => Promise.resolve(false), isTerminal),
});
Object.assign(platform.terminal, {
  isAt: within(() => false, isAt),
  hasNoColor: within(() => true, hasNoColor),
  input: within(() => new Blob([]).stream(), input),
  write: within(async ({ output }, bytes: Uint8Array) => {
    output.stdout += await new Blob([bytes.slice()]).text();
  }, write),
  writeError: within(({ output }, text: string) => void (output.stderr += text), writeError),
});
// Each command has a console of its own, because `call` and `serve` replace methods for as long as their process lives.
globalThis.console = new Proxy(console, {
  get: (target, name) => commands.getStore()?.console.get(name) ?? Reflect.get(target, name),
  getOwnPropertyDescriptor(target, name) {
    const property = Reflect.getOwnPropertyDescriptor(target, name);
    const value = commands.getStore()?.console.get(name);
    return property && value ? { ...property, value } : property;
  },
  defineProperty(target, name, property) {
    const command = commands.getStore();
    return command
      ? Boolean(command.console.set(name, property.value))
      : Reflect.defineProperty(target, name, property);
  },
});

/**
 * Runs the command line with these words in an empty home folder, without a terminal and with empty standard input.
 * Rejects if the process would end with an uncaught error.
 */
export async function runHere(
  words: readonly string[],
  { cwd = root, env = {} }: Pick<RunOptions, "cwd" | "env"> = {},
): Promise<Finished> {
  const output = { stdout: "", stderr: "" };
  const print = (stream: keyof typeof output) => (...values: unknown[]) =>
    void (output[stream] += format(...values) + "\n");
  const methods = new Map<string | symbol, unknown>([
    ["log", print("stdout")],
    ["error", print("stderr")],
    ["warn", print("stderr")],
  ]);
  let code = 0;
  await withFolder({}, async (home) => {
    const variables = { ...process.env, HOME: home, XDG_CACHE_HOME: `${home}/.cache`, NO_COLOR: "1", ...env };
    try {
      // The functions end the asynchronous stack. Otherwise, commands would print the frames of the test.
      await new Promise<void>((resolve, reject) => {
        commands.run(
          { words, cwd, env: variables, output, console: methods },
          () => main().then(() => resolve(), (error) => reject(error)),
        );
      });
    } catch (error) {
      if (!(error instanceof Exit)) throw error;
      code = error.code;
    }
  });
  return { code, ...output, stderr: output.stderr.replaceAll(VERSION, "") };
}
