/**
 * Programs that run another program, programs that never run code, and environment variables that load code.
 *
 * @module
 */

/** Where the wrapped program begins in a wrapper's command line. */
export interface Wrapper {
  /** Options whose value is the next word. */
  readonly valueOptions: readonly string[];
  /** Options whose value is a command line. */
  readonly codeOptions?: RegExp;
  /** Number of operands before the program. */
  readonly operands: number;
  /** Whether variable assignments can precede the program. */
  readonly setsVariables?: boolean;
}

/** Programs that run another program named in their arguments. */
export const WRAPPERS: readonly (readonly [names: RegExp, wrapper: Wrapper])[] = [
  [/^env$/, {
    valueOptions: ["-u", "-C", "--unset", "--chdir", "-P"],
    codeOptions: /^(-\w*S|--split-string)/,
    operands: 0,
    setsVariables: true,
  }],
  [/^(sudo|doas)$/, {
    valueOptions: ["-u", "-g", "-C", "-D", "-h", "-p", "-r", "-t", "-T", "-U", "-a", "-R"],
    operands: 0,
    setsVariables: true,
  }],
  [/^(nice|ionice|renice)$/, { valueOptions: ["-n", "-c", "-p", "--adjustment"], operands: 0 }],
  [/^g?timeout$/, { valueOptions: ["-s", "-k", "--signal", "--kill-after"], operands: 1 }],
  [
    /^(nohup|setsid|command|exec|builtin|busybox|toybox|catchsegv|torsocks|proxychains4?|dbus-run-session|caffeinate|nocache|unbuffer|rlwrap|cgexec|prlimit|tini|dumb-init|gosu|fakeroot|eatmydata|winpty)$/,
    {
      valueOptions: ["-f", "-t", "-w", "-g"],
      operands: 0,
    },
  ],
  [/^g?time$/, { valueOptions: ["-f", "-o", "--format", "--output"], operands: 0 }],
  [/^stdbuf$/, { valueOptions: ["-i", "-o", "-e"], operands: 0 }],
  [
    /^(chrt|taskset|chroot|setpriv|unshare|nsenter|numactl|firejail|bwrap|systemd-run|xvfb-run|arch|setarch|linux32|linux64)$/,
    {
      valueOptions: ["-p", "-t", "-S", "-G", "-a", "-s"],
      operands: 1,
    },
  ],
  [/^(strace|ltrace|valgrind|perf)$/, {
    valueOptions: ["-e", "-o", "-p", "-s", "-S", "-u", "-E", "-a", "-P", "-O"],
    operands: 0,
  }],
  [/^xargs$/, { valueOptions: ["-I", "-n", "-P", "-L", "-d", "-E", "-s", "-a", "-J", "-R"], operands: 0 }],
  [/^(npx|bunx|pnpx|uvx|dlx)$/, {
    valueOptions: ["-p", "--package", "--from", "--with"],
    codeOptions: /^(-c|--call)/,
    operands: 0,
  }],
];

/** Programs for which an argument that is part of a word is as safe as one that is a whole word. */
export const HARMLESS_PROGRAMS =
  /^(printf|echo|cat|ls|wc|head|tail|grep|rg|sort|uniq|cut|tr|date|basename|dirname|stat|file|du|df|test|true|false|seq|sleep|mkdir|touch|cp|mv|rm|diff|cmp|md5sum|sha\d+sum|base64)$/;

/** Environment variables that make programs load code or run other programs. */
export const CODE_VARIABLES =
  /^(LD_|DYLD_|PATH$|BASH_ENV$|ENV$|IFS$|PS4$|PROMPT_COMMAND$|SHELLOPTS$|EDITOR$|VISUAL$|PAGER$|BROWSER$|NODE_|BUN_|DENO_|PYTHON|PERL|RUBY|LUA_|PHP|GIT_|JAVA_|JDK_|_JAVA|CLASSPATH$|R_|TCLLIBPATH$|GEM_|MAKEFLAGS$|AWKPATH$|GCONV_PATH$|SSH_ASKPASS$)/;
