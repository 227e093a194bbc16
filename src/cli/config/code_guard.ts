/**
 * Finds arguments of a call that a program would read as code.
 *
 * A program is handed its words as they are, and no shell sees them. But many programs read some of their words as code
 * themselves, and a call that can write a part of it can run anything.
 *
 * @module
 */
import { toBaseName } from "../path.ts";

/** Stands for an argument of the call in the text of a word. */
export const ARGUMENT = "\0";

/** A word of a command. */
export interface CommandWord {
  /** Its text, with {@linkcode ARGUMENT} in the place of each argument. */
  readonly text: string;
  /** Whether calls can leave it out. */
  readonly isOptional: boolean;
}

/** A place where a call may write code. */
export interface CodeRisk {
  /** An error if the program is known to read code there; a warning if nothing is known of it. */
  readonly level: "error" | "warning";
  /** The index of the word; nothing for standard input. */
  readonly word?: number;
  readonly state: string;
}

interface Interpreter {
  /** Letters of options whose value is code. */
  readonly code?: string;
  /** Options of more than one letter whose value is code. */
  readonly codeNames?: RegExp;
  /** Letters, and longer options, whose value is a file of code in the place of the first operand. */
  readonly files?: string;
  readonly fileNames?: RegExp;
  /** Letters, and longer options, whose value makes it load more code. */
  readonly loads?: string;
  readonly loadNames?: RegExp;
  /** Letters, and longer options, with a value that is no code. */
  readonly values?: string;
  readonly valueNames?: RegExp;
  /** Letters of options that take the rest of their word as a value, and never the next word. */
  readonly attached?: string;
  /** What the first operand is: a file of code, code itself, or neither. */
  readonly first: "script" | "code" | "data";
  /** Whether all operands after the first one are code. */
  readonly restIsCode?: boolean;
  /** Whether code is the first operand behind the option, and not the word behind it, as shells have it. */
  readonly isShell?: boolean;
  /** Whether what follows code are arguments of it, and no options. */
  readonly codeEndsOptions?: boolean;
  /** Whether one dash can introduce several letters; true unless said. */
  readonly clusters?: boolean;
  /** Words such as `eval` and `run` that come first, and what comes after them. */
  readonly verbs?: Readonly<Record<string, Interpreter["first"]>>;
  /** Whether it reads code from standard input when no word has any. */
  readonly stdin?: boolean;
  /** Letters of options with which operands, being opened as files, can be commands. */
  readonly opens?: string;
}

const SHELL: Interpreter = {
  ...{ code: "c", values: "oO", first: "script", isShell: true, codeEndsOptions: true, stdin: true },
  loadNames: /^--(rcfile|init-file|config|env-config)$/,
};
const JAVASCRIPT: Interpreter = {
  code: "ep",
  codeNames: /^--(eval|print)$/,
  loads: "r",
  loadNames: /^--(import|require|loader|experimental-loader|preload|env-file|tsconfig|config)$/,
  values: "C",
  valueNames: /^--(conditions|cwd|stack-trace-limit|title)$/,
  first: "script",
  verbs: { run: "script", repl: "code", x: "script", exec: "script" },
  stdin: true,
};
const DENO: Interpreter = {
  code: "",
  loads: "c",
  loadNames: /^--(config|import-map|preload|env-file|lock|require)$/,
  values: "L",
  valueNames: /^--(cert|location|seed|log-level|ext|inspect|port|host)$/,
  first: "script",
  verbs: { run: "script", eval: "code", serve: "script", repl: "code", test: "script", compile: "script" },
  stdin: true,
};
const LANGUAGE: Interpreter = {
  code: "eE",
  codeNames: /^-{1,2}(eval|execute|batch-eval|run|print|eval-file)$/,
  loads: "lr",
  loadNames: /^-{1,2}(load|require|eval-file)$/,
  first: "script",
  clusters: false,
  stdin: true,
};
const SQL_SHELL: Interpreter = {
  codeNames: /^-{1,2}(cmd|c|s)$/,
  fileNames: /^-{1,2}(init|f)$/,
  valueNames: /^-{1,2}(separator|newline|nullvalue|vfs|mmap|maxsize|lookaside|pagecache|heap)$/,
  first: "data",
  restIsCode: true,
  clusters: false,
  stdin: true,
};

const INTERPRETERS: readonly (readonly [names: RegExp, interpreter: Interpreter])[] = [
  [/^(ba|da|z|k|mk|pdk|fi|a|c|tc|r|o|i)?sh$|^(nu|xonsh|elvish)$/, SHELL],
  [/^cmd$/, { codeNames: /^[/-][ckr]$/i, first: "script", restIsCode: true, clusters: false, stdin: true }],
  [/^(powershell|pwsh)$/, {
    codeNames: /^[-/](c|co\w*|e|ec|en\w*|cwa)$/i,
    fileNames: /^[-/]f\w*$/i,
    valueNames: /^[-/](ex\w*|ep|w\w*|v\w*|o\w*|i\w*)$/i,
    ...{ first: "code", restIsCode: true, clusters: false, stdin: true },
  }],
  [/^(python|pythonw|pypy|ipython|micropython|jython)$/, {
    ...{ code: "c", files: "m", values: "WX", first: "script", codeEndsOptions: true, stdin: true },
  }],
  [/^(uv|pipx|poetry|pdm|rye|hatch)$/, { first: "data", verbs: { run: "script" } }],
  [/^perl$/, {
    ...{ code: "eE", loads: "mM", values: "I", attached: "iFDxV", first: "script", stdin: true, opens: "np" },
  }],
  [/^(ruby|jruby|truffleruby|irb)$/, {
    ...{ code: "e", loads: "r", values: "ICE", attached: "iFKTx", first: "script", stdin: true, opens: "np" },
  }],
  [/^php(-cgi)?$/, {
    ...{ code: "rBRE", files: "fF", loads: "dcz", values: "tS", first: "script", stdin: true },
    codeNames: /^--(run|process-(code|begin|end))$/,
    fileNames: /^--(file|process-file)$/,
    loadNames: /^--(define|php-ini|zend-extension)$/,
  }],
  [/^(lua|luajit|texlua)$/, { code: "e", loads: "l", first: "script", stdin: true }],
  [/^deno$/, DENO],
  [/^(node|nodejs|bun|tsx|ts-node|ts-node-esm|qjs|d8|electron)$/, JAVASCRIPT],
  [/^osascript$/, { code: "e", values: "ls", first: "script", stdin: true }],
  [/^(tclsh|wish|expect)$/, { code: "c", files: "f", first: "script", stdin: true }],
  [/^(rscript|r|julia|elixir|iex|groovy|scala|ghc|ghci|raku|crystal|swift|guile|racket|sbcl|clisp|emacs)$/, LANGUAGE],
  [/^(octave|gnuplot|maxima|swipl|erl|escript|kotlin|jshell|clojure|clj|bb|janet|io|ocaml|coffee)$/, LANGUAGE],
  [/^([gmn])?awk$/, {
    ...{ code: "e", codeNames: /^--source$/, files: "fE", fileNames: /^--(file|exec)$/ },
    ...{ loads: "il", loadNames: /^--(include|load)$/, values: "Fv", valueNames: /^--(assign|field-separator)$/ },
    first: "code",
  }],
  [/^g?sed$/, {
    ...{ code: "e", codeNames: /^--expression$/, files: "f", fileNames: /^--file$/, values: "l", attached: "i" },
    ...{ valueNames: /^--line-length$/, first: "code" },
  }],
  [/^(jq|gojq|jaq|yq)$/, {
    ...{ files: "f", fileNames: /^--from-file$/, loads: "L", loadNames: /^--library-path$/ },
    ...{ valueNames: /^--(arg|argjson|slurpfile|rawfile|indent)$/, first: "code", clusters: false },
  }],
  [/^(sqlite|sqlcipher|duckdb|usql)$/, SQL_SHELL],
  [/^(psql|pgcli|cockroach)$/, {
    ...{ code: "cv", files: "f", values: "hpUdFLoPRT", first: "data", stdin: true },
    codeNames: /^--(command|set|variable|execute)$/,
    fileNames: /^--file$/,
    valueNames: /^--(host|port|username|dbname|output|log-file|pset)$/,
  }],
  [/^(mysql|mariadb|mycli)$/, {
    ...{
      code: "e",
      codeNames: /^--(execute|init-command)$/,
      values: "uhPDS",
      attached: "p",
      first: "data",
      stdin: true,
    },
    valueNames: /^--(host|user|port|database|socket)$/,
  }],
  [/^(sqlcmd|osql|isql|bteq|cqlsh|clickhouse|clickhouse-client|snowsql|trino|presto|hive|beeline|spark-sql)$/, {
    ...{ code: "QqeE", codeNames: /^-{1,2}(query|execute|queries-file|e|f|q)$/i, files: "if" },
    ...{ first: "data", clusters: false, stdin: true },
  }],
  [/^(mongo|mongosh|redis-cli|influx)$/, {
    ...{ codeNames: /^-{1,2}(eval|execute)$/, first: "data", verbs: { eval: "code" }, clusters: false, stdin: true },
  }],
  [/^(ssh|autossh|mosh|rsh|dbclient|plink)$/, {
    ...{ code: "o", codeNames: /^--(server|ssh)$/, loads: "FISE", values: "bcDeiJLlmOpQRWwB" },
    ...{ first: "data", restIsCode: true, stdin: true },
  }],
  [/^(eval|watch|parallel|at|batch|entr)$/, { values: "nIjPdN", first: "code", restIsCode: true, stdin: true }],
  [/^(su|runuser|script|flock|newgrp|sg)$/, {
    ...{ code: "c", codeNames: /^--(command|session-command)$/, loads: "s", loadNames: /^--shell$/, values: "gGuTOw" },
    ...{ first: "data", restIsCode: true },
  }],
  [/^(vim?|nvim|view|ex|ed|gdb|lldb)$/, {
    ...{ code: "cSx", codeNames: /^(--cmd|-{1,2}ex|-{1,2}eval-command|-o|\+.*)$/, first: "data" },
    ...{ clusters: false, stdin: true },
  }],
  [/^g?make$/, { code: "E", codeNames: /^--eval$/, loads: "fCI", values: "jol", first: "code", restIsCode: true }],
  [/^(m4|bc|dc)$/, { code: "e", files: "f", codeNames: /^--expression$/, first: "script", stdin: true }],
];

interface Wrapper {
  /** Options with a value in the next word. */
  readonly values: readonly string[];
  /** Options whose value is a command line. */
  readonly code?: RegExp;
  /** Operands before the program. */
  readonly operands: number;
  /** Whether variables may stand before the program. */
  readonly sets?: boolean;
}

/** Programs that run the program that their words name. */
const WRAPPERS: readonly (readonly [names: RegExp, wrapper: Wrapper])[] = [
  [/^env$/, {
    values: ["-u", "-C", "--unset", "--chdir", "-P"],
    code: /^(-\w*S|--split-string)/,
    operands: 0,
    sets: true,
  }],
  [/^(sudo|doas)$/, {
    values: ["-u", "-g", "-C", "-D", "-h", "-p", "-r", "-t", "-T", "-U", "-a", "-R"],
    operands: 0,
    sets: true,
  }],
  [/^(nice|ionice|renice)$/, { values: ["-n", "-c", "-p", "--adjustment"], operands: 0 }],
  [/^g?timeout$/, { values: ["-s", "-k", "--signal", "--kill-after"], operands: 1 }],
  [
    /^(nohup|setsid|command|exec|builtin|busybox|toybox|catchsegv|torsocks|proxychains4?|dbus-run-session|caffeinate|nocache|unbuffer|rlwrap|cgexec|prlimit|tini|dumb-init|gosu|fakeroot|eatmydata|winpty)$/,
    {
      values: ["-f", "-t", "-w", "-g"],
      operands: 0,
    },
  ],
  [/^g?time$/, { values: ["-f", "-o", "--format", "--output"], operands: 0 }],
  [/^stdbuf$/, { values: ["-i", "-o", "-e"], operands: 0 }],
  [
    /^(chrt|taskset|chroot|setpriv|unshare|nsenter|numactl|firejail|bwrap|systemd-run|xvfb-run|arch|setarch|linux32|linux64)$/,
    {
      values: ["-p", "-t", "-S", "-G", "-a", "-s"],
      operands: 1,
    },
  ],
  [/^(strace|ltrace|valgrind|perf)$/, {
    values: ["-e", "-o", "-p", "-s", "-S", "-u", "-E", "-a", "-P", "-O"],
    operands: 0,
  }],
  [/^xargs$/, { values: ["-I", "-n", "-P", "-L", "-d", "-E", "-s", "-a", "-J", "-R"], operands: 0 }],
  [/^(npx|bunx|pnpx|uvx|dlx)$/, { values: ["-p", "--package", "--from", "--with"], code: /^(-c|--call)/, operands: 0 }],
];

/** Programs that do nothing with a part of a word that the whole could not do. */
const HARMLESS =
  /^(printf|echo|cat|ls|wc|head|tail|grep|rg|sort|uniq|cut|tr|date|basename|dirname|stat|file|du|df|test|true|false|seq|sleep|mkdir|touch|cp|mv|rm|diff|cmp|md5sum|sha\d+sum|base64)$/;

/** Variables that name code, files of code, or programs. */
const LOADING =
  /^(LD_|DYLD_|PATH$|BASH_ENV$|ENV$|IFS$|PS4$|PROMPT_COMMAND$|SHELLOPTS$|EDITOR$|VISUAL$|PAGER$|BROWSER$|NODE_|BUN_|DENO_|PYTHON|PERL|RUBY|LUA_|PHP|GIT_|JAVA_|JDK_|_JAVA|CLASSPATH$|R_|TCLLIBPATH$|GEM_|MAKEFLAGS$|AWKPATH$|GCONV_PATH$|SSH_ASKPASS$)/;

const IS_CODE = "the program reads this word as code, so a call could run anything; hand the argument on by standard " +
  "input, or as a word of its own behind the code";
const IS_OPTION =
  "an argument is a part of an option of a program that reads code, so a call could run anything; give it " +
  "a word of its own behind the code";
const IS_PROGRAM =
  "it is the program or the file of code that is run, which a call may not choose; write its name or path";
const IS_VARIABLE =
  "the variable can make programs load other code, so a call could run anything; set it to a fixed value";
const IS_INPUT =
  "the program reads its standard input as code, so a call could run anything; give the program its code in " +
  "a word or a file";
const IS_PART =
  "an argument is only a part of this word; make sure that the program does not read it as code, or give the " +
  "argument a word of its own";

/** Finds the places where a call may write code; errors first. */
export function findCode(words: readonly CommandWord[], stdin = ""): readonly CodeRisk[] {
  const risks: CodeRisk[] = [];
  const refuse = (word: number, state: string) => void risks.push({ level: "error", word, state });
  const warn = (word: number) => void risks.push({ level: "warning", word, state: IS_PART });
  const at = { words, stdin, refuse, warn, risks };
  readCommand(at, 0, { isFed: false });
  return risks.sort((a, b) => Number(a.level === "warning") - Number(b.level === "warning"));
}

interface Scan {
  readonly words: readonly CommandWord[];
  readonly stdin: string;
  readonly refuse: (word: number, state: string) => void;
  readonly warn: (word: number) => void;
  readonly risks: CodeRisk[];
}

interface Feed {
  /** Whether standard input becomes words of the command, as with `xargs`. */
  readonly isFed: boolean;
  /** The text that it replaces in them. */
  readonly mark?: string;
}

/** Reads the words from one that is a program on. */
function readCommand(scan: Scan, start: number, feed: Feed): void {
  const { words, refuse } = scan;
  let at = start;
  // A program that calls may leave out hands its place to the next word.
  while (at < words.length && words[at].isOptional) {
    if (hasArgument(words[at].text)) refuse(at, IS_PROGRAM);
    at++;
  }
  const word = words[at];
  if (!word) return;
  if (hasArgument(word.text)) return refuse(at, IS_PROGRAM);
  const name = toProgramName(word.text);
  const wrapper = find(WRAPPERS, name);
  if (wrapper) return readWrapper(scan, at + 1, { name, wrapper, feed });
  const interpreter = find(INTERPRETERS, name);
  if (interpreter) return readInterpreter(scan, at + 1, { interpreter, feed });
  if (/^g?find$|^(fd|fdfind)$/.test(name)) return readFind(scan, at + 1);
  readOther(scan, at + 1, name);
}

function readWrapper(
  scan: Scan,
  start: number,
  { name, wrapper, feed }: { readonly name: string; readonly wrapper: Wrapper; readonly feed: Feed },
): void {
  const { words, refuse, warn } = scan;
  let { operands } = wrapper;
  let mark = feed.mark;
  for (let at = start; at < words.length; at++) {
    const { text } = words[at];
    if (wrapper.code?.test(text)) {
      // The command line is in this word or the next one.
      for (const each of [at, at + 1]) if (hasArgument(words[each]?.text)) refuse(each, IS_CODE);
      continue;
    }
    if (text.startsWith("-") && text !== "-" && text !== "--") {
      if (hasArgument(text)) warn(at);
      if (name === "xargs") {
        mark = /^(?:-I|-i|--replace=?)(.+)$/.exec(text)?.[1] ??
          (text === "-I" ? words[at + 1]?.text : /^(-i|--replace)$/.test(text) ? "{}" : mark);
      }
      if (wrapper.values.includes(text)) at++;
      continue;
    }
    if (text === "--") continue;
    const [, variable] = wrapper.sets ? /^(\w+)=/.exec(text) ?? [] : [];
    if (variable !== undefined) {
      if (hasArgument(text) && LOADING.test(variable)) refuse(at, IS_VARIABLE);
      continue;
    }
    if (operands-- > 0) {
      if (isPart(text)) warn(at);
      continue;
    }
    return readCommand(scan, at, name === "xargs" ? { isFed: true, mark } : { ...feed, mark });
  }
}

function readInterpreter(
  scan: Scan,
  start: number,
  { interpreter, feed }: { readonly interpreter: Interpreter; readonly feed: Feed },
): void {
  new InterpreterReader(scan, interpreter, feed).read(start);
}

type OptionKind = "code" | "file" | "load" | "value";

/** An option that takes a value. */
interface Option {
  readonly kind: OptionKind;
  /** Whether the value is in the option's own word. */
  readonly isWhole: boolean;
}

/** Reads the words of an interpreter one after the other. */
class InterpreterReader {
  /** What the next word is, if an option has announced it. */
  #pending: OptionKind | undefined;
  /** Whether code, or a file of it, has been found in a word that is always there. */
  #hasCode = false;
  /** Whether options have ended. */
  #isOver = false;
  #opensOperands = false;
  #takesCode: boolean;
  #operands = 0;
  #first: Interpreter["first"];
  readonly #scan: Scan;
  readonly #own: Interpreter;
  readonly #feed: Feed;

  constructor(scan: Scan, own: Interpreter, feed: Feed) {
    this.#scan = scan;
    this.#own = own;
    this.#feed = feed;
    this.#first = own.first;
    this.#takesCode = own.restIsCode ?? false;
  }

  read(start: number): void {
    const { words } = this.#scan;
    for (let at = start; at < words.length; at++) at += this.#readWord(at);
    this.#readInput();
  }

  /** Reads a word; how many words behind it are read with it. */
  #readWord(at: number): number {
    const { text } = this.#scan.words[at];
    const isOption = this.#isOption(text);
    if (this.#pending && !(this.#pending === "code" && this.#own.isShell && isOption)) {
      this.#readValue(at, this.#pending);
      return 0;
    }
    if (isOption && text === "--") {
      this.#isOver = true;
      return 0;
    }
    if (isOption) return this.#readOption(at);
    this.#readOperand(at);
    return 0;
  }

  /** Options of a script are not the interpreter's; other programs take options behind operands too. */
  #isOption(text: string): boolean {
    if (this.#isOver) return false;
    if (this.#own.codeNames?.test(toOptionName(text)) || this.#own.fileNames?.test(toOptionName(text))) return true;
    if (!/^[-+]./.test(text)) return false;
    return this.#operands === 0 || this.#first !== "script" && !this.#own.restIsCode;
  }

  #readOption(at: number): number {
    const { text } = this.#scan.words[at];
    const { opens = "", valueNames } = this.#own;
    if (/^-[^-]/.test(text) && [...text].some((letter) => opens.includes(letter))) this.#opensOperands = true;
    const option = this.#findOption(text);
    if (option?.kind === "value") {
      // Such as `--arg name value`.
      if (!option.isWhole) return /^--(arg|argjson|slurpfile|rawfile)$/.test(text) && valueNames ? 2 : 1;
      return 0;
    }
    if (!option) {
      if (hasArgument(text)) this.#scan.refuse(at, IS_OPTION);
      return 0;
    }
    if (option.isWhole) this.#readValue(at, option.kind);
    else {
      if (hasArgument(text)) this.#scan.refuse(at, IS_OPTION);
      this.#pending = option.kind;
    }
    return 0;
  }

  #findOption(text: string): Option | undefined {
    const { code = "", files = "", loads = "", values = "", attached = "", clusters = true, isShell } = this.#own;
    const { codeNames, fileNames, loadNames, valueNames } = this.#own;
    const name = toOptionName(text);
    const isWhole = text.includes("=");
    if (codeNames?.test(name)) return { kind: "code", isWhole };
    if (fileNames?.test(name)) return { kind: "file", isWhole };
    if (loadNames?.test(name)) return { kind: "load", isWhole };
    if (valueNames?.test(name)) return { kind: "value", isWhole };
    if (!/^-[^-]/.test(text) || !clusters && text.length > 2 && !hasArgument(text)) return;
    for (let i = 1; i < (clusters ? text.length : 2); i++) {
      const rest = text.slice(i + 1);
      if (attached.includes(text[i])) return rest ? { kind: "value", isWhole: true } : undefined;
      // In a shell's cluster, values are in the words behind, and the other letters count.
      // Such as `node -pe`, where the rest announces code too.
      if (code.includes(text[i])) {
        return {
          kind: "code",
          isWhole: !isShell && [...rest].some((each) => !code.includes(each)),
        };
      }
      if (files.includes(text[i])) return { kind: "file", isWhole: rest !== "" };
      if (loads.includes(text[i])) return { kind: "load", isWhole: rest !== "" };
      if (values.includes(text[i]) && !(isShell && rest)) return { kind: "value", isWhole: rest !== "" };
    }
  }

  #readValue(at: number, kind: OptionKind): void {
    const { text, isOptional } = this.#scan.words[at];
    if (hasArgument(text) || this.#isReplaced(text)) this.#scan.refuse(at, kind === "code" ? IS_CODE : IS_PROGRAM);
    // What calls can leave out, the next word may stand for.
    if (isOptional) return;
    this.#pending = undefined;
    if (kind !== "code" && kind !== "file") return;
    this.#hasCode = true;
    if (kind === "file") this.#takesCode = false;
    if (this.#own.codeEndsOptions) this.#isOver = true;
  }

  #readOperand(at: number): void {
    const { refuse, warn, words } = this.#scan;
    const { text, isOptional } = words[at];
    const verb = this.#operands || this.#hasCode || hasArgument(text) ? undefined : this.#own.verbs?.[text];
    if (verb !== undefined) {
      this.#first = verb;
      return;
    }
    this.#operands++;
    if (this.#operands === 1 && !this.#hasCode && this.#first !== "data") {
      if (hasArgument(text) || this.#isReplaced(text)) refuse(at, this.#first === "code" ? IS_CODE : IS_PROGRAM);
      // A dash is standard input.
      if (isOptional || text === "-") this.#operands = 0;
      else this.#hasCode = true;
    } else if (this.#takesCode && (this.#operands > 1 || this.#first !== "data")) {
      if (hasArgument(text) || this.#isReplaced(text)) refuse(at, IS_CODE);
      this.#hasCode = true;
    } else if (this.#opensOperands && hasArgument(text)) refuse(at, IS_CODE);
    else if (isPart(text)) warn(at);
  }

  #isReplaced(text: string): boolean {
    const { mark } = this.#feed;
    return mark !== undefined && text.includes(mark) && hasArgument(this.#scan.stdin);
  }

  #readInput(): void {
    if (!hasArgument(this.#scan.stdin)) return;
    const { isFed, mark } = this.#feed;
    // What is read becomes the last words.
    const isLast = this.#pending || this.#takesCode || !this.#hasCode && this.#first !== "data";
    const isCode = isFed ? isLast && mark === undefined : this.#own.stdin && !this.#hasCode;
    if (isCode) this.#scan.risks.push({ level: "error", state: IS_INPUT });
  }
}

function toOptionName(text: string): string {
  return text.split("=", 1)[0];
}

/** Words behind `-exec` are a command of their own. */
function readFind(scan: Scan, start: number): void {
  const { words, warn } = scan;
  for (let at = start; at < words.length; at++) {
    const { text } = words[at];
    if (/^(-(exec|execdir|ok|okdir|x|X)|--exec(-batch)?)$/.test(text)) {
      let end = at + 1;
      while (end < words.length && !/^[;+]$/.test(words[end].text)) end++;
      readCommand({ ...scan, words: words.slice(0, end) }, at + 1, { isFed: false });
      at = end;
    } else if (isPart(text)) warn(at);
  }
}

/** Words of a program of which nothing is known. It may run an interpreter that is named among them. */
function readOther(scan: Scan, start: number, name: string): void {
  const { words, warn } = scan;
  for (let at = start; at < words.length; at++) {
    const { text } = words[at];
    if (isPart(text) && !HARMLESS.test(name)) warn(at);
    const interpreter = hasArgument(text) || HARMLESS.test(name) ? undefined : find(INTERPRETERS, toProgramName(text));
    const announcing = interpreter && words.slice(at + 1).some(({ text }) => isAnnouncing(text, interpreter));
    if (interpreter && announcing) return readInterpreter(scan, at + 1, { interpreter, feed: { isFed: false } });
  }
}

function isAnnouncing(text: string, { code = "", codeNames, clusters = true, verbs = {} }: Interpreter): boolean {
  if (codeNames?.test(toOptionName(text)) || verbs[text] === "code") return true;
  return /^-[^-]/.test(text) &&
    [...clusters ? text.slice(1) : text.slice(1, 2)].some((letter) => code.includes(letter));
}

/** What a table says of a program, by its name or by its name without a version. */
function find<T>(table: readonly (readonly [RegExp, T])[], name: string): T | undefined {
  const plain = name.replace(/(?<=[a-z])[-_.]?\d[\d._-]*$/, "");
  return table.find(([names]) => names.test(name))?.[1] ?? table.find(([names]) => names.test(plain))?.[1];
}

/** The name of a program without its folder and its suffix. */
function toProgramName(text: string): string {
  return toBaseName(text.replaceAll("\\", "/")).toLowerCase().replace(/\.(exe|cmd|bat|com)$/, "");
}

function hasArgument(text = ""): boolean {
  return text.includes(ARGUMENT);
}

/** Whether an argument stands beside other text in a word. */
function isPart(text: string): boolean {
  return hasArgument(text) && text !== ARGUMENT;
}
