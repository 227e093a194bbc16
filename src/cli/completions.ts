/**
 * `mcp completions`: prints a script that completes the arguments of this program in a shell.
 */
import { NAME } from "./version.ts";
import { type Args, rejectRest, rejectSecond } from "./args.ts";
import type { Command, Completion, Option } from "./command.ts";
import { UsageError } from "./cli_error.ts";

/** Creates the `completions` command, which calls `loadCommands` only when the user runs it. */
export function createCompletions(loadCommands: () => Promise<readonly Command[]>): Command {
  return {
    name: "completions",
    summary: "Print a completion script for a shell",
    usage: ["completions [OPTIONS] bash|zsh|fish"],
    description: [
      "With the script, the shell completes commands, options, values and files. A shell completes a program by " +
      "name, so install the program first: deno install -g -A -n mcp jsr:" + NAME,
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
  const { operands: [shell], flags: { name = "mcp" } } = args;
  rejectRest(args, "completions");
  const names = Object.keys(shells).join(", ");
  if (shell === undefined) throw new UsageError(`Cannot print completions: no shell is named; write one of ${names}`);
  rejectSecond(args.operands, { verb: "print completions for", limit: "the command takes one shell" });
  const toScript = Object.entries(shells).find(([each]) => each === shell)?.[1];
  if (!toScript) {
    throw new UsageError(`Cannot print completions for ${shell}: it is not supported; write one of ${names}`);
  }
  // Reject other names, because the script contains the name without quotes.
  if (!/^[\w.-]+$/.test(name)) {
    throw new UsageError(
      `Cannot print completions for ${name}: the name of a program may contain only letters, digits, _, - and .; choose another name`,
    );
  }
  console.log(toScript(name, commands));
}

type ToScript = (program: string, commands: readonly Command[]) => string;

/** Options that every command has in addition to its own options. */
const COMMON = ["help", "version"];

/** Generates a script for bash 3.2 (the version on macOS) and later. */
const toBash: ToScript = (program, commands) => {
  const names = commands.map(({ name }) => name);
  const values = commands.flatMap((command) =>
    Object.entries(command.options).flatMap(([name, { value, completion }]) =>
      value === undefined ? [] : [`    "${command.name} --${name}") ${toBashWords(completion)} ;;`]
    )
  );
  const operandCases = commands.map(({ name, options, operands }) => {
    const words = [...Object.keys(options), ...COMMON].map((option) => `--${option}`);
    return `    ${name}) flags="${words.join(" ")}" ${toBashWords(operands)} ;;`;
  });
  const name = toFunction(program);
  return `# Completions of ${program} for bash.
${name}() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" command=serve flags= words= files= word
  # bash splits words at "=".
  if [[ $current == "=" ]]; then current=; elif [[ $before == "=" ]]; then before="\${COMP_WORDS[COMP_CWORD-2]}"; fi
  if ((COMP_CWORD > 1)); then
    case "\${COMP_WORDS[1]}" in ${names.join("|")}) command="\${COMP_WORDS[1]}" ;; esac
  fi
  case "$command $before" in
${values.join("\n")}
    *)
    case "$command" in
${operandCases.join("\n")}
    esac
    if ((COMP_CWORD == 1)); then words="$words ${names.join(" ")}"; fi
    if [[ $current == -* ]]; then words="$flags" files=; fi ;;
  esac
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ $word == -- ]]; then words= files=1; fi
  done
  COMPREPLY=()
  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(
    compgen -W "$words" -- "$current"
    if [[ $files ]]; then compgen -f -- "$current"; fi
  )
  if [[ $files ]]; then compopt -o filenames 2> /dev/null; fi
}
complete -F ${name} ${program}`;
};

function toBashWords(completion: Completion | undefined): string {
  return completion === undefined ? ":" : completion === "files" ? "files=1" : `words="${completion.join(" ")}"`;
}

/** Generates a script for zsh. Users source the script, or save it in a folder of `fpath`. */
const toZsh: ToScript = (program, commands) => {
  const list = commands.map(({ name, summary }) => `    ${quote(`${name}:${summary.replaceAll(":", "\\:")}`)}`);
  const cases = commands.map(({ name, options, operands }) => {
    const specs = [
      ...Object.entries(options).map(toZshOption),
      ...COMMON.map((option) => `--${option}`),
      quote(`*:word:${toZshAction(operands)}`),
    ];
    return `    ${name})\n      _arguments ${specs.join(" \\\n        ")} ;;`;
  });
  const name = toFunction(program);
  return `#compdef ${program}
# Completions of ${program} for zsh.
${name}() {
  local command=serve
  local -a commands
  commands=(
${list.join("\n")}
  )
  if ((CURRENT == 2)); then
    _describe -t commands command commands
  elif ((\${commands[(I)$words[2]:*]})); then
    command=$words[2]
    shift words
    ((CURRENT--))
  fi
  case $command in
${cases.join("\n")}
  esac
}
if [[ $funcstack[1] == ${name} ]]; then ${name} "$@"; else compdef ${name} ${program}; fi`;
};

function toZshOption([name, option]: [name: string, option: Option]): string {
  const text = toShortText(option).replace(/[[\]:\\]/g, "\\$&");
  const value = option.value === undefined ? "" : quote(`:${name}:${toZshAction(option.completion)}`);
  return `'*--${name}${option.value === undefined ? "" : "="}'${quote(text && `[${text}]`)}${value}`;
}

function toZshAction(completion: Completion | undefined): string {
  return completion === undefined ? " " : completion === "files" ? "_files" : `(${completion.join(" ")})`;
}

/** Generates a script for fish 3.0 and later. */
const toFish: ToScript = (program, commands) => {
  const name = `_${toFunction(program)}_command`;
  const complete = `complete -c ${program}`;
  const lines = commands.flatMap((command) => {
    const when = `-n 'test (${name}) = ${command.name}'`;
    return [
      `${complete} -n 'test (count (commandline -opc)) -eq 1' -a ${command.name} -d ${quoteFish(command.summary)}`,
      ...Object.entries(command.options).map(([name, option]) => {
        const value = option.value === undefined ? "" : toFishValue(option.completion);
        return `${complete} ${when} -l ${name}${value} -d ${quoteFish(toShortText(option))}`;
      }),
      ...toFishOperands(command.operands).map((words) => `${complete} ${when} ${words}`),
    ];
  });
  return `# Completions of ${program} for fish.
function ${name}
  set -l words (commandline -opc)
  if contains -- "$words[2]" ${commands.map(({ name }) => name).join(" ")}
    echo $words[2]
  else
    echo serve
  end
end
${complete} -f
${COMMON.map((flag) => `${complete} -l ${flag}`).join("\n")}
${lines.join("\n")}`;
};

function toFishValue(completion: Completion | undefined): string {
  if (completion === undefined) return " -x";
  return completion === "files" ? " -r -F" : ` -x -a ${quoteFish(completion.join(" "))}`;
}

function toFishOperands(completion: Completion | undefined): readonly string[] {
  if (completion === undefined) return [];
  return completion === "files" ? ["-F"] : [`-a ${quoteFish(completion.join(" "))}`];
}

function toFunction(program: string): string {
  return `_${program.replaceAll(/\W/g, "_")}`;
}

/** Returns the text of an option up to the first semicolon, parenthesis, colon or example. */
function toShortText({ text }: Option): string {
  return text.split(/; | \(|: |, such as /)[0];
}

/** Quotes text so that zsh does not expand it. */
function quote(text: string): string {
  return text && `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Quotes text so that fish does not expand it. In fish, a backslash escapes characters within single quotes. */
function quoteFish(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}

const shells = { bash: toBash, zsh: toZsh, fish: toFish };
