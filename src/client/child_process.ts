/**
 * A child process whose standard streams are ours, on either runtime.
 *
 * @module
 */
import { bun, deno, findProcess } from "../runtime.ts";

/** How to start a server that speaks over its standard streams. */
export interface CommandTarget {
  /** The program: a name that is found through PATH, or a path. */
  readonly command: string;
  /** Its arguments. They go to the program as they are: no shell reads them. */
  readonly args?: readonly string[];
  /**
   * Variables of its environment. Of this process' own it also gets those that programs need to run, such as `PATH` and
   * `HOME`, and no others, because they may be secrets. On Deno these take `--allow-env`; without it they are left out.
   */
  readonly env?: Readonly<Record<string, string>>;
  /** The working directory; this process' own if nothing is said. */
  readonly cwd?: string;
  /** Milliseconds that it gets to exit by itself when its input ends, and again when it was asked to; 2000 by default. */
  readonly exitMs?: number;
}

/** A child process. */
export interface Child {
  readonly output: ReadableStream<Uint8Array>;
  /** What it writes to standard error, if that is ours to read. */
  readonly errors?: ReadableStream<Uint8Array>;
  /** The exit code, when it has exited. */
  readonly exited: Promise<number>;
  write(bytes: Uint8Array): Promise<void>;
  closeInput(): Promise<void>;
  /** Ends it by force; without a signal at once. */
  kill(signal?: "SIGTERM"): void;
}

/** Variables that are handed on: those of the official SDKs, so that servers find what they find with other clients. */
const HANDED_ON: readonly string[] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
const HANDED_ON_BY_WINDOWS: readonly string[] = [
  ...["APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PROCESSOR_ARCHITECTURE", "PROGRAMFILES"],
  ...["SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"],
];

function toEnvironment(named: CommandTarget["env"]): Record<string, string> {
  const isWindows = (deno?.build.os ?? findProcess().platform).startsWith("win");
  const entries = (isWindows ? HANDED_ON_BY_WINDOWS : HANDED_ON).flatMap((name) => {
    const value = readVariable(name);
    // A function that a shell has exported: it is code.
    return value === undefined || value.startsWith("()") ? [] : [[name, value]];
  });
  return { ...Object.fromEntries(entries), ...named };
}

function readVariable(name: string): string | undefined {
  if (!deno) return bun?.env[name];
  // Deno would ask a person, or throw.
  const state = deno.permissions?.querySync({ name: "env", variable: name }).state ?? "granted";
  return state === "granted" ? deno.env.get(name) : undefined;
}

/** Starts a child process; with `readsErrors` its standard error is ours to read, else it goes where this process' goes. */
export function startChild(target: CommandTarget, { readsErrors = false } = {}): Child {
  try {
    return spawn(target, readsErrors);
  } catch (cause) {
    const state = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`Cannot start ${target.command}: ${state}`, { cause });
  }
}

function spawn(target: CommandTarget, readsErrors: boolean): Child {
  const { command, cwd } = target;
  const env = toEnvironment(target.env);
  const args = [...target.args ?? []];
  let isOver = false;
  const over = (code: number) => {
    isOver = true;
    return code;
  };
  if (deno) {
    const stderr = readsErrors ? "piped" : "inherit";
    const options = { args, clearEnv: true, env, cwd, stdin: "piped", stdout: "piped", stderr } as const;
    const child = new deno.Command(command, options).spawn();
    const writer = child.stdin.getWriter();
    return {
      output: child.stdout,
      // To ask for a stream that is inherited is an error.
      errors: readsErrors ? child.stderr : undefined,
      exited: child.status.then(({ code }) => over(code)),
      write: (bytes) => writer.write(bytes),
      closeInput: () => writer.close(),
      // To kill what has exited is an error.
      kill: (signal) => isOver ? undefined : child.kill(signal ?? "SIGKILL"),
    };
  }
  if (!bun) throw new Error("this is neither Deno nor Bun");
  const child = bun.spawn([command, ...args], {
    env,
    cwd,
    stdin: "pipe",
    stdout: "pipe",
    stderr: readsErrors ? "pipe" : "inherit",
  });
  return {
    output: child.stdout,
    errors: child.stderr,
    exited: child.exited.then(over),
    async write(bytes) {
      child.stdin.write(bytes);
      await child.stdin.flush();
    },
    async closeInput() {
      await child.stdin.end();
    },
    kill: (signal) => isOver ? undefined : child.kill(signal ?? "SIGKILL"),
  };
}
