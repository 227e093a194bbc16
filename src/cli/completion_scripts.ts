/**
 * Completions as scripts of each shell, made of what commands say of themselves.
 *
 * @module
 */
import type { Command, Offer } from "./command.ts";

/** A script for a word and what may follow it. */
export type ToScript = (program: string, commands: readonly Command[]) => string;

/** What every command takes. */
const COMMON = ["help", "version"];

/** For bash, from 3.2 on, which is that of macOS. */
export const toBash: ToScript = (program, commands) => {
  const names = commands.map(({ name }) => name);
  const values = commands.flatMap((command) =>
    Object.entries(command.flags).flatMap(([flag, takes]) =>
      takes ? [`    "${command.name} --${flag}") ${toBashOffer(command.offers?.flags?.[flag])} ;;`] : []
    )
  );
  const rests = commands.map(({ name, flags, offers }) => {
    const words = [...Object.keys(flags), ...COMMON].map((flag) => `--${flag}`);
    return `    ${name}) flags="${words.join(" ")}" ${toBashOffer(offers?.operands)} ;;`;
  });
  const name = toFunction(program);
  return `# Completions of ${program} for bash.
${name}() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" command=serve flags= words= files= word
  # bash parts words at "=".
  if [[ $current == "=" ]]; then current=; elif [[ $before == "=" ]]; then before="\${COMP_WORDS[COMP_CWORD-2]}"; fi
  if ((COMP_CWORD > 1)); then
    case "\${COMP_WORDS[1]}" in ${names.join("|")}) command="\${COMP_WORDS[1]}" ;; esac
  fi
  case "$command $before" in
${values.join("\n")}
    *)
    case "$command" in
${rests.join("\n")}
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

function toBashOffer(offer: Offer | undefined): string {
  return offer === undefined ? ":" : offer === "files" ? "files=1" : `words="${offer.join(" ")}"`;
}

/** For zsh, as a file in \`fpath\` or to be sourced. */
export const toZsh: ToScript = (program, commands) => {
  const list = commands.map(({ name, summary }) => `    ${quote(`${name}:${summary.replaceAll(":", "\\:")}`)}`);
  const cases = commands.map((command) => {
    const { name, flags, offers } = command;
    const specs = [
      ...Object.entries(flags).map(([flag, takes]) => {
        const text = tellFlag(command, flag);
        const told = text && `[${text.replace(/[[\]:\\]/g, "\\$&")}]`;
        return `'*--${flag}${takes ? "=" : ""}'${quote(told)}${
          takes ? quote(`:${flag}:${toZshOffer(offers?.flags?.[flag])}`) : ""
        }`;
      }),
      ...COMMON.map((flag) => `--${flag}`),
      quote(`*:word:${toZshOffer(offers?.operands)}`),
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

function toZshOffer(offer: Offer | undefined): string {
  return offer === undefined ? " " : offer === "files" ? "_files" : `(${offer.join(" ")})`;
}

/** For fish, from 3.0 on. */
export const toFish: ToScript = (program, commands) => {
  const name = `_${toFunction(program)}_command`;
  const complete = `complete -c ${program}`;
  const lines = commands.flatMap((command) => {
    const when = `-n 'test (${name}) = ${command.name}'`;
    return [
      `${complete} -n 'test (count (commandline -opc)) -eq 1' -a ${command.name} -d ${quoteFish(command.summary)}`,
      ...Object.entries(command.flags).map(([flag, takes]) => {
        const text = tellFlag(command, flag);
        const offer = takes ? toFishOffer(command.offers?.flags?.[flag]) : "";
        return `${complete} ${when} -l ${flag}${offer}${text && ` -d ${quoteFish(text)}`}`;
      }),
      ...toFishOperands(command.offers?.operands).map((offer) => `${complete} ${when} ${offer}`),
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

function toFishOffer(offer: Offer | undefined): string {
  return offer === undefined ? " -x" : offer === "files" ? " -r -F" : ` -x -a ${quoteFish(offer.join(" "))}`;
}

function toFishOperands(offer: Offer | undefined): readonly string[] {
  return offer === undefined ? [] : offer === "files" ? ["-F"] : [`-a ${quoteFish(offer.join(" "))}`];
}

function toFunction(program: string): string {
  return `_${program.replaceAll(/\W/g, "_")}`;
}

/** What the usage of a command says of a flag, up to the first pause. */
function tellFlag({ usage }: Command, flag: string): string {
  const line = usage.split("\n").find((line) => new RegExp(`^--${flag}(?![\\w-])`).test(line)) ?? "";
  // Behind the flag may stand what its value is: a letter or name in capitals.
  const [, text = ""] = /^--\S+(?: [A-Z]\S*)? +((?!.*--).+)$/.exec(line) ?? [];
  return text.split(/[;:,] /)[0];
}

/** A text that zsh does not look into. */
function quote(text: string): string {
  return text && `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A text that fish does not look into: in its quotes a backslash has a meaning. */
function quoteFish(text: string): string {
  return `'${text.replace(/[\\']/g, "\\$&")}'`;
}
