/**
 * The entry point of the command line: finds the command, parses its arguments, and sets the exit code.
 */
import { toState } from "../core/kit/error_state.ts";
import { hasErrorCode } from "../core/kit/error_code.ts";
import { toPrintable } from "../core/kit/printable.ts";
import { readArgs } from "./args.ts";
import { type Command, toFlags } from "./command.ts";
import { importModule } from "./lazy_modules.ts";
import { platform } from "./platform.ts";
import { CliError, UsageError } from "./cli_error.ts";
import { serve } from "./serve.ts";
import { NAME } from "./version.ts";

// Import `serve` statically, because clients wait for a server to start. Load all other commands when they run.
const commands: ReadonlyMap<string, () => Promise<Command>> = new Map(Object.entries({
  serve: () => Promise.resolve(serve),
  inspect: async () => (await importModule<typeof import("./inspect.ts")>("./inspect.ts")).inspect,
  call: async () => (await importModule<typeof import("./call.ts")>("./call.ts")).call,
  task: async () => (await importModule<typeof import("./task.ts")>("./task.ts")).task,
  read: async () => (await importModule<typeof import("./read.ts")>("./read.ts")).read,
  prompt: async () => (await importModule<typeof import("./prompt.ts")>("./prompt.ts")).prompt,
  bridge: async () => (await importModule<typeof import("./bridge.ts")>("./bridge.ts")).bridge,
  gateway: async () => (await importModule<typeof import("./gateway.ts")>("./gateway.ts")).gateway,
  login: async () => (await importModule<typeof import("./login.ts")>("./login.ts")).login,
  logout: async () => (await importModule<typeof import("./logout.ts")>("./logout.ts")).logout,
  token: async () => (await importModule<typeof import("./token.ts")>("./token.ts")).token,
  check: async () => (await importModule<typeof import("./check.ts")>("./check.ts")).check,
  lock: async () => (await importModule<typeof import("./lock.ts")>("./lock.ts")).lock,
  doctor: async () => (await importModule<typeof import("./doctor.ts")>("./doctor.ts")).doctor,
  install: async () => (await importModule<typeof import("./install.ts")>("./install.ts")).install,
  new: async () => (await importModule<typeof import("./new.ts")>("./new.ts")).create,
  openapi: async () => (await importModule<typeof import("./openapi.ts")>("./openapi.ts")).openapi,
  pack: async () => (await importModule<typeof import("./pack.ts")>("./pack.ts")).pack,
  completions: async () =>
    (await importModule<typeof import("./completions.ts")>("./completions.ts")).createCompletions(loadCommands),
}));

function loadCommands(): Promise<readonly Command[]> {
  return Promise.all([...commands.values()].map((load) => load()));
}

/**
 * Runs the command line and exits the process. The exit code is 2 for a usage or configuration error, and otherwise the
 * command's exit code. `prepare` runs first.
 */
export async function main(prepare?: () => Promise<void>): Promise<void> {
  platform.onIdle(() => {
    console.error(
      "Cannot continue: the loaded modules wait for each other; look for circular imports between modules with " +
        "top-level await",
    );
    platform.exit(2);
  });
  try {
    await prepare?.();
    platform.exit(await run(platform.args) ?? 0);
  } catch (error) {
    if (!(error instanceof CliError)) {
      const missing = error instanceof Error ? (await loadPermissions())?.explainPermission(error.message) : undefined;
      if (missing !== undefined) {
        console.error(toPrintable(`Cannot continue: ${missing}`));
        return platform.exit(2);
      }
      if (!hasErrorCode(error)) throw error;
      if (error.code === "ERR_MODULE_NOT_FOUND") {
        console.error(toPrintable(`Cannot continue: ${toState(error)}; install ${NAME} again, with its dependencies`));
        return platform.exit(2);
      }
      // Node's own errors are not about a path, so their stack is more useful.
      if (error.code.startsWith("ERR_")) throw error;
      // The error comes from the operating system, for example because the file permissions forbid access.
      console.error(toPrintable(`Cannot continue: ${toState(error)}; check the path and its permissions`));
      return platform.exit(2);
    }
    const text = platform.runtime === "deno" ? (await loadPermissions())?.explainWithin(error.message) : undefined;
    // Escape the message, because it may contain text from a server, or from a file by another author.
    console.error(toPrintable(text ?? error.message) + (error instanceof UsageError ? await explainHelp() : ""));
    platform.exit(error.exitCode);
  }
}

async function loadPermissions(): Promise<typeof import("./permissions.ts") | undefined> {
  try {
    return await importModule<typeof import("./permissions.ts")>("./permissions.ts");
  } catch {
    // Print only the first error, because it explains more than the error of this import.
  }
}

/** Runs the command that the first argument names. Runs `serve` if the first argument is not a command. */
async function run(words: readonly string[]): Promise<number | void> {
  if ((words[0] === "help" || words[0] === "version") && !await isFile(words[0])) {
    const [option, command] = [`--${words[0]}`, words[1]];
    if (command === undefined || option === "--version") return await run([option]);
    if (!commands.has(command)) (await loadMisspellings()).rejectTopic(command, [...commands.keys()]);
    return await run([command, option]);
  }
  const load = commands.get(words[0]);
  if (!load && /^[a-z]+$/i.test(words[0] ?? "")) {
    await (await loadMisspellings()).rejectMisspelling(words[0], [...commands.keys(), "help"]);
  }
  const command = load ? await load() : serve;
  const flags = { help: false, version: false, ...toFlags(command.options) };
  const args = await readArgs(load ? words.slice(1) : words, flags);
  if ("help" in args.flags || "version" in args.flags) {
    const { toHelp, VERSION } = await importModule<typeof import("./help.ts")>("./help.ts");
    if ("version" in args.flags && !("help" in args.flags)) return console.log(VERSION);
    return console.log(toHelp(command, load ? [] : await loadCommands()));
  }
  return await command.run(args);
}

async function isFile(name: string): Promise<boolean> {
  return await platform.findKind(platform.toPath(name)).catch(() => undefined) !== undefined;
}

async function explainHelp(): Promise<string> {
  const { toHelpHint } = await importModule<typeof import("./help.ts")>("./help.ts");
  const [word] = platform.args;
  return `\n\n${toHelpHint(commands.has(word) ? word : undefined)}`;
}

function loadMisspellings(): Promise<typeof import("./misspellings.ts")> {
  return importModule<typeof import("./misspellings.ts")>("./misspellings.ts");
}
