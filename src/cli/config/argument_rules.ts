/**
 * Rules for commands that contain arguments of a tool call. The rules ensure that a call can choose values, but not the
 * code that runs, nor the files and hosts that a program uses.
 *
 * A program gets its words unchanged, and no shell interprets the words. But a program may read a word as an option, a
 * file, a host or code, and no table can list what all programs do. Therefore an argument must be a whole word, and a
 * listed value, a number that is not negative, or a path in the working directory. The config file must name every other
 * argument. A program that is known to read code must not get an argument before its script.
 */
import { toBaseName } from "../../ready/files/path.ts";

export interface CommandWord {
  /** The fixed text of the word. `undefined` if the word contains an argument. */
  readonly text?: string;
  readonly argument?: WordArgument;
  /** The name of an argument. The word is omitted if this argument is missing or `false`. */
  readonly condition?: string;
}

export interface WordArgument {
  readonly name: string;
  /** Whether the word contains text in addition to the argument. */
  readonly isPartial: boolean;
  /** Whether the argument can be any text, and not only a path, a number, a boolean or a listed value. */
  readonly isText: boolean;
  /** Whether the argument can be a negative number. */
  readonly isSigned: boolean;
  /** Whether the config file names the argument in `unsafe`, so that the rules do not apply. */
  readonly isUnsafe: boolean;
}

/** A word that breaks a rule. */
export interface RuleViolation {
  /** The index of the word. `undefined` for standard input. */
  readonly word?: number;
  readonly state: string;
}

/** Returns the remedy that allows any value of an argument. */
export function toRemedy(name: string): string {
  return `add "unsafe": [${JSON.stringify(name)}] if no value of the argument can do harm`;
}

/**
 * Finds the first word of a command that breaks a rule.
 *
 * @param words All words, beginning with the program.
 * @param programNames Additional names of the program, such as the target of a symbolic link.
 */
export function findViolation(
  words: readonly CommandWord[],
  { inputArgument, programNames = [] }: {
    /** The first argument on standard input that the config file does not name in `unsafe`. */
    readonly inputArgument?: string;
    readonly programNames?: readonly string[];
  } = {},
): RuleViolation | undefined {
  const scan = new CodeScan(words);
  for (const name of programNames) scan.readProgram(name, 0);
  for (const [i, word] of words.entries()) {
    const { argument } = word;
    const state = argument && !argument.isUnsafe
      ? explainArgument(argument) ?? scan.explainArgument(argument.name)
      : undefined;
    if (state !== undefined) return { word: i, state };
    scan.readWord(i);
  }
  const { program } = scan;
  return program === undefined || inputArgument === undefined ? undefined : {
    state: `${program} reads its standard input as code, so a call could run anything; pass the argument to a script ` +
      `file, or ${toRemedy(inputArgument)}`,
  };
}

/** Explains why a word must not contain its argument. Returns `undefined` if the argument is allowed. */
function explainArgument({ name, isPartial, isText, isSigned }: WordArgument): string | undefined {
  if (isPartial) {
    return `the argument ${name} is only part of this word; make the argument a separate word, or ${toRemedy(name)}`;
  }
  if (isText) {
    return `the argument ${name} is free text, so a call can name any file, host or command that the program accepts; ` +
      `limit ${name} with enum or "format": "path", or ${toRemedy(name)}`;
  }
  if (!isSigned) return;
  return `the argument ${name} can be negative, so the program may read it as an option; add "minimum": 0 to ${name}, ` +
    `or ${toRemedy(name)}`;
}

/**
 * Yields the words that may come directly before a word. Several words are possible, because optional words are omitted.
 */
function* listWordsBefore(words: readonly CommandWord[], at: number): Generator<CommandWord> {
  for (let i = at - 1; i >= 0; i--) {
    yield words[i];
    const { condition, argument } = words[i];
    // An argument may be an empty list, which adds no word.
    if (!argument && (condition === undefined || condition === words[at].condition)) return;
  }
}

function isOption(text: string): boolean {
  return /^-./s.test(text) && text !== "--";
}

/** Whether a word is an option that may take the next word as its value, even if that word is `--`. */
export function mayTakeValue(text: string): boolean {
  return isOption(text) && !/^--[^=]+=/.test(text);
}

/** Options that never take the next word as their value. A script file may follow them. */
const OPTION_WITHOUT_VALUE = /^(-A|-q|-jar|--quiet|--(allow|deny|no|unstable)(-[\w-]+)?|--[\w-]+=.*)$/s;

/** Reads the words of a command one by one, to find out whether a program reads the next word as code. */
class CodeScan {
  /** The program that reads the next word as code. `undefined` if the next word is not read as code. */
  program?: string;
  #runsScript = false;
  /** The index of the word that names `program`. */
  #at = 0;
  readonly #words: readonly CommandWord[];

  constructor(words: readonly CommandWord[]) {
    this.#words = words;
  }

  /** Explains why the next word must not be an argument. Returns `undefined` if an argument is allowed. */
  explainArgument(name: string): string | undefined {
    if (this.program === undefined) return;
    const remedy = this.#runsScript
      ? "put the argument after a script file, such as ./script"
      : "call a script file instead";
    return `${this.program} may read this word as code, so a call could run anything; ${remedy}, or ${toRemedy(name)}`;
  }

  readProgram(word: string, at: number): void {
    // If a program reads all its words as code, keep it as the current program, because its words do not start another
    // program.
    if (this.program !== undefined && !this.#runsScript) return;
    const found = findCodeProgram(word, at === 0);
    if (!found) return;
    this.program = found.name;
    this.#runsScript = found.runsScript;
    this.#at = at;
  }

  readWord(at: number): void {
    const { text } = this.#words[at];
    if (text === undefined) return;
    if (this.#isScript(at, text)) this.program = undefined;
    // Test every word, because many programs, such as `env`, run another program that one of their words names.
    else this.readProgram(text, at);
  }

  /**
   * Whether a word is the script file of the program. The config file names the script file, so a call cannot choose
   * the script.
   */
  #isScript(at: number, text: string): boolean {
    return at > 0 && this.program !== undefined && this.#runsScript && this.#words[at].condition === undefined &&
      /^[^-\s]\S*$/.test(text) && /[./\\]/.test(text) && !findCodeProgram(text, false) &&
      listWordsBefore(this.#words, at).every(({ text = "" }) => !isOption(text) || OPTION_WITHOUT_VALUE.test(text)) &&
      !this.#hasCommandBefore(at);
  }

  /**
   * Whether a subcommand of the program, such as `test`, comes before a word. Such a subcommand may run every file that
   * follows it.
   */
  #hasCommandBefore(at: number): boolean {
    const texts = this.#words.slice(this.#at, at).map(({ text = "" }) => text);
    return texts.some((text, i) =>
      i > 0 && !isOption(text) && !/^(--|run|serve)$/.test(text) &&
      (!isOption(texts[i - 1]) || OPTION_WITHOUT_VALUE.test(texts[i - 1]))
    );
  }
}

/**
 * Programs that run a script file named on their command line. The words after the file are arguments of the script.
 */
const SCRIPT_RUNNERS = new Set([
  ..."sh bash dash ash zsh ksh mksh pdksh csh tcsh fish nu xonsh elvish".split(" "),
  ..."python pythonw pypy ipython micropython perl raku ruby jruby php lua luajit tclsh wish expect rscript".split(" "),
  ..."node nodejs deno bun tsx ts-node qjs julia elixir groovy guile racket java javaw dotnet".split(" "),
]);

/** Programs for which any word may be code or a command to run. */
const CODE_READERS = new Set([
  ..."cmd powershell pwsh osascript wscript cscript iex irb jshell swipl erl sbcl octave gnuplot emacs".split(" "),
  ..."awk gawk mawk nawk sed jq gojq jaq yq m4 bc dc".split(" "),
  ..."sqlite sqlcipher duckdb psql mysql mariadb mongo mongosh redis-cli clickhouse clickhouse-client".split(" "),
  ..."sqlcmd cqlsh ssh autossh mosh plink env sudo doas su runuser ionice timeout nohup setsid".split(" "),
  ..."stdbuf strace ltrace chroot unshare nsenter systemd-run firejail bwrap xargs fd fdfind flock entr".split(" "),
  ..."busybox toybox npx bunx pnpx uvx vi vim nvim ed gdb lldb socat tmux".split(" "),
  ..."pkexec gosu valgrind taskset chrt setarch unbuffer nodemon watchexec concurrently crontab".split(" "),
]);

/**
 * Programs that read code and whose names are also common words, such as `exec` in `docker exec`. These names count as
 * programs only as the first word of a command.
 */
const PLAIN_WORDS = new Set(
  [
    ..."find make time watch parallel at batch script command exec eval nice less more man view ex r screen".split(" "),
    // Package managers, which run code from the packages that they install.
    ..."npm pnpm yarn pip pipx uv gem cargo composer conda mamba go".split(" "),
  ],
);

/** How a program reads the words of its command line. */
interface CodeProgram {
  readonly name: string;
  /** Whether the words after a script file are arguments of the script, and not code. */
  readonly runsScript: boolean;
}

/**
 * Returns the program that a word names, if this program reads code. Ignores folders, case, Windows file extensions,
 * version numbers and the prefix `g` of GNU programs.
 *
 * @param isFirst Whether the word is the first word of the command. Other words name a program only if the first
 * program may run it.
 */
function findCodeProgram(word: string, isFirst: boolean): CodeProgram | undefined {
  const file = toBaseName(word.replaceAll("\\", "/")).toLowerCase().trim();
  // Windows runs `.bat` and `.cmd` files with cmd.exe, which reads the words as code.
  if (/\.(bat|cmd)$/.test(file)) return { name: file, runsScript: false };
  const name = file.replace(/\.(exe|com)$/, "");
  const unversioned = name.replace(/[-_.]?\d.*$/, "");
  for (const each of [name, unversioned, name.replace(/^g/, ""), unversioned.replace(/^g/, "")]) {
    const runsScript = SCRIPT_RUNNERS.has(each);
    if (runsScript || CODE_READERS.has(each) || isFirst && PLAIN_WORDS.has(each)) return { name: each, runsScript };
  }
}
