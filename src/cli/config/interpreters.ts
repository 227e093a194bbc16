/**
 * Programs that read code from their command line or from standard input, and where each reads it.
 *
 * @module
 */

/** Which words of an interpreter's command line are code. */
export interface Interpreter {
  /** Single-letter options whose value is code. */
  readonly codeLetters?: string;
  /** Longer options whose value is code. */
  readonly codeNames?: RegExp;
  /** Options whose value is a script file, which replaces the first operand. */
  readonly fileLetters?: string;
  readonly fileNames?: RegExp;
  /** Options whose value loads further code. */
  readonly loadLetters?: string;
  readonly loadNames?: RegExp;
  /** Options whose value is not code. */
  readonly valueLetters?: string;
  readonly valueNames?: RegExp;
  /** Single-letter options that take the rest of their word as the value, never the next word. */
  readonly attachedLetters?: string;
  /** The meaning of the first operand: a script file, code, or data. */
  readonly firstOperand: OperandKind;
  /** Whether all operands after the first one are code. */
  readonly restIsCode?: boolean;
  /** Whether the code is the first operand after the option rather than the next word, as in shells. */
  readonly isShell?: boolean;
  /** Whether all words after the code are arguments of the code rather than options. */
  readonly codeEndsOptions?: boolean;
  /** Whether one dash can introduce several letters. Defaults to `true`. */
  readonly clusters?: boolean;
  /** Subcommands such as `eval` and `run`, with the kind of operand that follows each. */
  readonly subcommands?: Readonly<Record<string, OperandKind>>;
  /** Whether the program reads code from standard input when no word holds any. */
  readonly readsStdin?: boolean;
  /** Single-letter options that make the program open its operands as files, which can be commands. */
  readonly openLetters?: string;
}

/** The meaning of an operand of an interpreter. */
export type OperandKind = "script" | "code" | "data";

const SHELL: Interpreter = {
  ...{
    codeLetters: "c",
    valueLetters: "oO",
    firstOperand: "script",
    isShell: true,
    codeEndsOptions: true,
    readsStdin: true,
  },
  loadNames: /^--(rcfile|init-file|config|env-config)$/,
};
const JAVASCRIPT: Interpreter = {
  codeLetters: "ep",
  codeNames: /^--(eval|print)$/,
  loadLetters: "r",
  loadNames: /^--(import|require|loader|experimental-loader|preload|env-file|tsconfig|config)$/,
  valueLetters: "C",
  valueNames: /^--(conditions|cwd|stack-trace-limit|title)$/,
  firstOperand: "script",
  subcommands: { run: "script", repl: "code", x: "script", exec: "script" },
  readsStdin: true,
};
const DENO: Interpreter = {
  codeLetters: "",
  loadLetters: "c",
  loadNames: /^--(config|import-map|preload|env-file|lock|require)$/,
  valueLetters: "L",
  valueNames: /^--(cert|location|seed|log-level|ext|inspect|port|host)$/,
  firstOperand: "script",
  subcommands: { run: "script", eval: "code", serve: "script", repl: "code", test: "script", compile: "script" },
  readsStdin: true,
};
const LANGUAGE: Interpreter = {
  codeLetters: "eE",
  codeNames: /^-{1,2}(eval|execute|batch-eval|run|print|eval-file)$/,
  loadLetters: "lr",
  loadNames: /^-{1,2}(load|require|eval-file)$/,
  firstOperand: "script",
  clusters: false,
  readsStdin: true,
};
const SQL_SHELL: Interpreter = {
  codeNames: /^-{1,2}(cmd|c|s)$/,
  fileNames: /^-{1,2}(init|f)$/,
  valueNames: /^-{1,2}(separator|newline|nullvalue|vfs|mmap|maxsize|lookaside|pagecache|heap)$/,
  firstOperand: "data",
  restIsCode: true,
  clusters: false,
  readsStdin: true,
};

/** Interpreters by name. Names are matched with and without a version number. */
export const INTERPRETERS: readonly (readonly [names: RegExp, interpreter: Interpreter])[] = [
  [/^(ba|da|z|k|mk|pdk|fi|a|c|tc|r|o|i)?sh$|^(nu|xonsh|elvish)$/, SHELL],
  [/^cmd$/, { codeNames: /^[/-][ckr]$/i, firstOperand: "script", restIsCode: true, clusters: false, readsStdin: true }],
  [/^(powershell|pwsh)$/, {
    codeNames: /^[-/](c|co\w*|e|ec|en\w*|cwa)$/i,
    fileNames: /^[-/]f\w*$/i,
    valueNames: /^[-/](ex\w*|ep|w\w*|v\w*|o\w*|i\w*)$/i,
    ...{ firstOperand: "code", restIsCode: true, clusters: false, readsStdin: true },
  }],
  [/^(python|pythonw|pypy|ipython|micropython|jython)$/, {
    ...{
      codeLetters: "c",
      fileLetters: "m",
      valueLetters: "WX",
      firstOperand: "script",
      codeEndsOptions: true,
      readsStdin: true,
    },
  }],
  [/^(uv|pipx|poetry|pdm|rye|hatch)$/, { firstOperand: "data", subcommands: { run: "script" } }],
  [/^perl$/, {
    ...{
      codeLetters: "eE",
      loadLetters: "mM",
      valueLetters: "I",
      attachedLetters: "iFDxV",
      firstOperand: "script",
      readsStdin: true,
      openLetters: "np",
    },
  }],
  [/^(ruby|jruby|truffleruby|irb)$/, {
    ...{
      codeLetters: "e",
      loadLetters: "r",
      valueLetters: "ICE",
      attachedLetters: "iFKTx",
      firstOperand: "script",
      readsStdin: true,
      openLetters: "np",
    },
  }],
  [/^php(-cgi)?$/, {
    ...{
      codeLetters: "rBRE",
      fileLetters: "fF",
      loadLetters: "dcz",
      valueLetters: "tS",
      firstOperand: "script",
      readsStdin: true,
    },
    codeNames: /^--(run|process-(code|begin|end))$/,
    fileNames: /^--(file|process-file)$/,
    loadNames: /^--(define|php-ini|zend-extension)$/,
  }],
  [/^(lua|luajit|texlua)$/, { codeLetters: "e", loadLetters: "l", firstOperand: "script", readsStdin: true }],
  [/^deno$/, DENO],
  [/^(node|nodejs|bun|tsx|ts-node|ts-node-esm|qjs|d8|electron)$/, JAVASCRIPT],
  [/^osascript$/, { codeLetters: "e", valueLetters: "ls", firstOperand: "script", readsStdin: true }],
  [/^(tclsh|wish|expect)$/, { codeLetters: "c", fileLetters: "f", firstOperand: "script", readsStdin: true }],
  [/^(rscript|r|julia|elixir|iex|groovy|scala|ghc|ghci|raku|crystal|swift|guile|racket|sbcl|clisp|emacs)$/, LANGUAGE],
  [/^(octave|gnuplot|maxima|swipl|erl|escript|kotlin|jshell|clojure|clj|bb|janet|io|ocaml|coffee)$/, LANGUAGE],
  [/^([gmn])?awk$/, {
    ...{ codeLetters: "e", codeNames: /^--source$/, fileLetters: "fE", fileNames: /^--(file|exec)$/ },
    ...{
      loadLetters: "il",
      loadNames: /^--(include|load)$/,
      valueLetters: "Fv",
      valueNames: /^--(assign|field-separator)$/,
    },
    firstOperand: "code",
  }],
  [/^g?sed$/, {
    ...{
      codeLetters: "e",
      codeNames: /^--expression$/,
      fileLetters: "f",
      fileNames: /^--file$/,
      valueLetters: "l",
      attachedLetters: "i",
    },
    ...{ valueNames: /^--line-length$/, firstOperand: "code" },
  }],
  [/^(jq|gojq|jaq|yq)$/, {
    ...{ fileLetters: "f", fileNames: /^--from-file$/, loadLetters: "L", loadNames: /^--library-path$/ },
    ...{ valueNames: /^--(arg|argjson|slurpfile|rawfile|indent)$/, firstOperand: "code", clusters: false },
  }],
  [/^(sqlite|sqlcipher|duckdb|usql)$/, SQL_SHELL],
  [/^(psql|pgcli|cockroach)$/, {
    ...{ codeLetters: "cv", fileLetters: "f", valueLetters: "hpUdFLoPRT", firstOperand: "data", readsStdin: true },
    codeNames: /^--(command|set|variable|execute)$/,
    fileNames: /^--file$/,
    valueNames: /^--(host|port|username|dbname|output|log-file|pset)$/,
  }],
  [/^(mysql|mariadb|mycli)$/, {
    ...{
      codeLetters: "e",
      codeNames: /^--(execute|init-command)$/,
      valueLetters: "uhPDS",
      attachedLetters: "p",
      firstOperand: "data",
      readsStdin: true,
    },
    valueNames: /^--(host|user|port|database|socket)$/,
  }],
  [/^(sqlcmd|osql|isql|bteq|cqlsh|clickhouse|clickhouse-client|snowsql|trino|presto|hive|beeline|spark-sql)$/, {
    ...{ codeLetters: "QqeE", codeNames: /^-{1,2}(query|execute|queries-file|e|f|q)$/i, fileLetters: "if" },
    ...{ firstOperand: "data", clusters: false, readsStdin: true },
  }],
  [/^(mongo|mongosh|redis-cli|influx)$/, {
    ...{
      codeNames: /^-{1,2}(eval|execute)$/,
      firstOperand: "data",
      subcommands: { eval: "code" },
      clusters: false,
      readsStdin: true,
    },
  }],
  [/^(ssh|autossh|mosh|rsh|dbclient|plink)$/, {
    ...{ codeLetters: "o", codeNames: /^--(server|ssh)$/, loadLetters: "FISE", valueLetters: "bcDeiJLlmOpQRWwB" },
    ...{ firstOperand: "data", restIsCode: true, readsStdin: true },
  }],
  [/^(eval|watch|parallel|at|batch|entr)$/, {
    valueLetters: "nIjPdN",
    firstOperand: "code",
    restIsCode: true,
    readsStdin: true,
  }],
  [/^(su|runuser|script|flock|newgrp|sg)$/, {
    ...{
      codeLetters: "c",
      codeNames: /^--(command|session-command)$/,
      loadLetters: "s",
      loadNames: /^--shell$/,
      valueLetters: "gGuTOw",
    },
    ...{ firstOperand: "data", restIsCode: true },
  }],
  [/^(vim?|nvim|view|ex|ed|gdb|lldb)$/, {
    ...{ codeLetters: "cSx", codeNames: /^(--cmd|-{1,2}ex|-{1,2}eval-command|-o|\+.*)$/, firstOperand: "data" },
    ...{ clusters: false, readsStdin: true },
  }],
  [/^g?make$/, {
    codeLetters: "E",
    codeNames: /^--eval$/,
    loadLetters: "fCI",
    valueLetters: "jol",
    firstOperand: "code",
    restIsCode: true,
  }],
  [/^(m4|bc|dc)$/, {
    codeLetters: "e",
    fileLetters: "f",
    codeNames: /^--expression$/,
    firstOperand: "script",
    readsStdin: true,
  }],
];
