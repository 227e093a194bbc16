/**
 * `mcp completions`: prints a script that completes the arguments of this program in a shell.
 *
 * @module
 */
import { type Args, rejectRest } from "./args.ts";
import type { Command } from "./command.ts";
import { toBash, toFish, toZsh } from "./completion_scripts.ts";
import { UsageError } from "./cli_error.ts";

const shells = { bash: toBash, zsh: toZsh, fish: toFish };

/** The command `completions`. It loads all commands when it runs. */
export function createCompletions(loadCommands: () => Promise<readonly Command[]>): Command {
  return {
    name: "completions",
    summary: "Print a completion script for a shell",
    usage: ["completions [OPTIONS] bash|zsh|fish"],
    description: [
      "The shell completes commands, options, values and files. It completes a program by its name, so install the " +
      "program first: deno install -g -A -n mcp jsr:@x/mcp",
    ],
    options: { name: { value: "NAME", text: "Name that the program is installed under (default: mcp)" } },
    operands: Object.keys(shells),
    examples: [
      "completions bash > ~/.local/share/bash-completion/completions/mcp",
      'completions zsh > "${fpath[1]}/_mcp"',
      "completions fish > ~/.config/fish/completions/mcp.fish",
    ],
    run: async (args) => printScript(args, await loadCommands()),
  };
}

function printScript(args: Args, commands: readonly Command[]): void {
  const { operands: [shell, extra], flags: { name = "mcp" } } = args;
  rejectRest(args, "completions");
  const names = Object.keys(shells).join(", ");
  if (shell === undefined) throw new UsageError(`Cannot print completions: no shell is named; write one of ${names}`);
  if (extra !== undefined) {
    throw new UsageError(`Cannot print completions for ${shell} and ${extra}: name one shell`);
  }
  const toScript = Object.entries(shells).find(([each]) => each === shell)?.[1];
  if (!toScript) {
    throw new UsageError(`Cannot print completions for ${shell}: it is not supported; write one of ${names}`);
  }
  // The script contains the name without quotes.
  if (!/^[\w.-]+$/.test(name)) {
    throw new UsageError(`Cannot complete ${name}: a name may contain letters, digits, _, - and .; write another`);
  }
  console.log(toScript(name, commands));
}
