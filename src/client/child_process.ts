/**
 * Starts child processes with piped standard streams, on Deno, Bun and Node.
 */
import { withFailure } from "../core/kit/failure.ts";
import { listInherited } from "../core/kit/inherited_variables.ts";
import { sendSignal } from "../core/kit/signals.ts";
import type { KnownOptions } from "../core/known_options.ts";
import { bun, deno, isWindows, node, type NodeGlobal, readVariable } from "../core/runtime.ts";
import { readNodeStream, writeNodeStream } from "../core/node_streams.ts";

/** The command that starts a server over stdio. */
export interface CommandTarget {
  /** The program, as a path or as a name in `PATH`. */
  readonly command: string;
  /** The program's arguments. No shell interprets the arguments, so quotes and variables have no special meaning. */
  readonly args?: readonly string[];
  /**
   * Environment variables to set. The process also inherits the variables that programs need to run, such as `PATH` and
   * `HOME`, but no other variables, because they may contain secrets. On Deno, inheriting variables requires
   * `--allow-env`.
   */
  readonly env?: Readonly<Record<string, string>>;
  /** The working directory. Defaults to this process's working directory. */
  readonly cwd?: string;
  /**
   * Milliseconds that the process may take to read its standard input to the end, to exit afterwards, and again to exit
   * after SIGTERM and after SIGKILL. Defaults to 2000.
   */
  readonly exitMs?: number;
}

export const COMMAND: KnownOptions<keyof CommandTarget> = {
  names: { command: true, args: "texts", env: true, cwd: true, exitMs: true },
  hints: { arguments: "args", directory: "cwd", environment: "env" },
};

export interface Child {
  readonly output: ReadableStream<Uint8Array>;
  /** The process's standard error, if standard error is piped. */
  readonly errors?: ReadableStream<Uint8Array>;
  /** Resolves with the exit code. */
  readonly exited: Promise<number>;
  write(bytes: Uint8Array): Promise<void>;
  closeInput(): Promise<void>;
  /** Sends a signal. Defaults to SIGKILL. Does nothing if the process has exited or runs as another user. */
  kill(signal?: "SIGTERM" | "SIGKILL"): void;
  /** Lets this process exit while the child process is still running. */
  abandon(): void;
}

/** The exit code to report for a process that a signal has ended. */
const KILLED = 128;

function toEnvironment(named: CommandTarget["env"]): Record<string, string> {
  const entries = listInherited(isWindows()).flatMap((name) => {
    const value = readVariable(name);
    // Skip exported shell functions, because a shell would execute them.
    return value === undefined || value.startsWith("()") ? [] : [[name, value]];
  });
  return { ...Object.fromEntries(entries), ...named };
}

/** Starts a child process. With `readsErrors`, pipes standard error. Otherwise, the process inherits standard error. */
export function startChild(target: CommandTarget, { readsErrors = false } = {}): Child {
  try {
    return spawn(target, readsErrors);
  } catch (cause) {
    const state = cause instanceof Error ? cause.message : String(cause);
    const error = new Error(`Cannot start ${target.command}: ${state}`, { cause });
    throw withFailure(error, { kind: "not-started", command: target.command });
  }
}

function spawn(target: CommandTarget, readsErrors: boolean): Child {
  const { command, cwd } = target;
  const env = toEnvironment(target.env);
  const args = [...target.args ?? []];
  if (deno) {
    const stderr = readsErrors ? "piped" : "inherit";
    const options = { args, clearEnv: true, env, cwd, stdin: "piped", stdout: "piped", stderr } as const;
    const child = new deno.Command(command, options).spawn();
    const writer = child.stdin.getWriter();
    return {
      output: child.stdout,
      // Access `stderr` only if it is piped, because accessing an inherited stream throws.
      errors: readsErrors ? child.stderr : undefined,
      exited: child.status.then(({ code }) => code),
      write: (bytes) => writer.write(bytes),
      closeInput: () => writer.close(),
      kill: (signal) => sendSignal(child, signal),
      abandon: () => child.unref(),
    };
  }
  if (node) return spawnOnNode(node, { ...target, env }, readsErrors);
  if (!bun) throw new Error("this runtime is not Deno, Bun or Node; connect over HTTP instead");
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
    exited: child.exited,
    async write(bytes) {
      child.stdin.write(bytes);
      await child.stdin.flush();
    },
    async closeInput() {
      await child.stdin.end();
    },
    kill: (signal) => sendSignal(child, signal),
    abandon: () => child.unref(),
  };
}

function spawnOnNode(
  node: NodeGlobal,
  { command, args = [], cwd, env }: CommandTarget & { readonly env: Record<string, string> },
  readsErrors: boolean,
): Child {
  const { spawn } = node.getBuiltinModule("child_process");
  const child = spawn(command, args, { cwd, env, stdio: ["pipe", "pipe", readsErrors ? "pipe" : "inherit"] });
  // Add a listener, because Node also emits an error event if the program cannot be started, or if a signal cannot be
  // sent, and an event without a listener would end this process.
  child.on("error", () => {});
  if (child.pid === undefined) {
    throw new Error("the program cannot be run; check `command`, the permissions of the file, and `cwd`");
  }
  const { stdin } = child;
  stdin.on("error", () => {});
  const { promise: exited, resolve } = Promise.withResolvers<number>();
  child.on("exit", (code) => resolve(code ?? KILLED));
  return {
    output: readNodeStream(child.stdout),
    errors: child.stderr ? readNodeStream(child.stderr) : undefined,
    exited,
    write: (bytes) => writeNodeStream(stdin.write.bind(stdin), bytes),
    // Also wait for the exit, because Node does not call the callback of `end` if the process has already exited.
    closeInput: () => Promise.race([new Promise<void>((resolve) => void stdin.end(resolve)), exited.then(() => {})]),
    kill: (signal) => sendSignal(child, signal),
    abandon: () => void child.unref(),
  };
}
