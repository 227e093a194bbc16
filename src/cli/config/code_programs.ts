/**
 * Programs that read words of their command line, or standard input, as code.
 *
 * @module
 */
import { toBaseName } from "../path.ts";

/** Programs that run the script file that their command line names. The words after the file belong to the script. */
const SCRIPT_RUNNERS = new Set([
  ..."sh bash dash ash zsh ksh mksh pdksh csh tcsh fish nu xonsh elvish".split(" "),
  ..."python pythonw pypy ipython micropython perl raku ruby jruby php lua luajit tclsh wish expect rscript".split(" "),
  ..."node nodejs deno bun tsx ts-node qjs julia elixir groovy guile racket java javaw dotnet".split(" "),
]);

/** Programs for which any word may be code, or a command to run. */
const CODE_READERS = new Set([
  ..."cmd powershell pwsh osascript wscript cscript iex irb jshell swipl erl sbcl octave gnuplot emacs".split(" "),
  ..."awk gawk mawk nawk sed jq gojq jaq yq m4 bc dc".split(" "),
  ..."sqlite sqlcipher duckdb psql mysql mariadb mongo mongosh redis-cli clickhouse clickhouse-client".split(" "),
  ..."sqlcmd cqlsh ssh autossh mosh plink env sudo doas su runuser ionice timeout nohup setsid".split(" "),
  ..."stdbuf strace ltrace chroot unshare nsenter systemd-run firejail bwrap xargs fd fdfind flock entr".split(" "),
  ..."busybox toybox npx bunx pnpx uvx vi vim nvim ed gdb lldb socat tmux".split(" "),
  ..."pkexec gosu valgrind taskset chrt setarch unbuffer nodemon watchexec concurrently crontab".split(" "),
]);

/** Such programs whose names are also plain words, as in `docker exec`. They count only as the program of a command. */
const PLAIN_WORDS = new Set(
  [
    ..."find make time watch parallel at batch script command exec eval nice less more man view ex r screen".split(" "),
    // They run code of the packages that they install.
    ..."npm pnpm yarn pip pipx uv gem cargo composer conda mamba go".split(" "),
  ],
);

/** How a program reads the words of its command line. */
export interface CodeProgram {
  readonly name: string;
  /** Whether the words after a script file are not code. */
  readonly runsScript: boolean;
}

/**
 * Finds a program that reads code, by the word that names it. Folders, upper case, the suffixes of Windows, version
 * numbers and the `g` of GNU programs are ignored.
 *
 * @param isFirst Whether the word is the program of the command, rather than one that the program may run.
 */
export function findCodeProgram(word: string, isFirst: boolean): CodeProgram | undefined {
  const file = toBaseName(word.replaceAll("\\", "/")).toLowerCase().trim();
  // Windows runs these files with cmd.exe, which reads its words as code.
  if (/\.(bat|cmd)$/.test(file)) return { name: file, runsScript: false };
  const name = file.replace(/\.(exe|com)$/, "");
  const unversioned = name.replace(/[-_.]?\d.*$/, "");
  for (const each of [name, unversioned, name.replace(/^g/, ""), unversioned.replace(/^g/, "")]) {
    const runsScript = SCRIPT_RUNNERS.has(each);
    if (runsScript || CODE_READERS.has(each) || isFirst && PLAIN_WORDS.has(each)) return { name: each, runsScript };
  }
}
