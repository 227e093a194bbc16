/**
 * `mcp completions shell`: prints what makes a shell complete the words of this program.
 *
 * @module
 */
import type { Args } from "./args.ts";
import type { Command } from "./command.ts";
import { UsageProblem } from "./problem.ts";
import { toBash, toFish, toZsh } from "./completion_scripts.ts";

const shells = { bash: toBash, zsh: toZsh, fish: toFish };

/** The command that prints completions of all commands, which it loads when it runs. */
export function toCompletions(load: () => Promise<readonly Command[]>): Command {
  return {
    name: "completions",
    summary: "Print what makes a shell complete commands, flags, values and files",
    usage: `completions bash|zsh|fish [--name N]

What is completed is one word, mcp, so the program must be installed under that name:

  deno install -g -A -n mcp jsr:@x/mcp

--name N  the word, if it is installed under another name

For example:
  completions bash > ~/.local/share/bash-completion/completions/mcp
  completions zsh > "\${fpath[1]}/_mcp"
  completions fish > ~/.config/fish/completions/mcp.fish`,
    flags: { name: true },
    offers: { operands: Object.keys(shells) },
    run: async (args) => printScript(args, await load()),
  };
}

function printScript({ operands: [shell, extra], flags: { name = "mcp" } }: Args, commands: readonly Command[]): void {
  const all = Object.keys(shells).join(", ");
  if (shell === undefined) throw new UsageProblem(`Cannot print completions: name a shell, one of ${all}`);
  if (extra !== undefined) {
    throw new UsageProblem(`Cannot print completions of ${extra} beside ${shell}: name one shell`);
  }
  const toScript = Object.entries(shells).find(([each]) => each === shell)?.[1];
  if (!toScript) throw new UsageProblem(`Cannot print completions of ${shell}: it is none of ${all}`);
  // It stands in a script as it is.
  if (!/^[\w.-]+$/.test(name)) {
    throw new UsageProblem(`Cannot complete ${name}: a program's name has letters, digits, _, - and .; choose another`);
  }
  console.log(toScript(name, commands));
}
