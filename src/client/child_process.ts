/**
 * Starts child processes with piped standard streams, on Deno and Bun.
 *
 * @module
 */
import type { KnownOptions } from "../core/call/known_options.ts";
import { bun, deno, findProcess, node, type NodeGlobal } from "../runtime.ts";
import { readNodeStream, writeNodeStream } from "../transports/stdio/node_streams.ts";

/** The command that starts a server on stdio. */
export interface CommandTarget {
  /** The program: a name to look up in `PATH`, or a path. */
  readonly command: string;
  /** Arguments of the program. They are passed unchanged, without a shell. */
  readonly args?: readonly string[];
  /**
   * Environment variables. The process also inherits the variables that programs need to run, such as `PATH` and
   * `HOME`. It inherits no other variables, because they may contain secrets. On Deno, inheriting needs `--allow-env`.
   */
  readonly env?: Readonly<Record<string, string>>;
  /** The working directory. Defaults to the working directory of this process. */
  readonly cwd?: string;
  /** Milliseconds that the process may take to exit after its input ends, and again after SIGTERM. Defaults to 2000. */
  readonly exitMs?: number;
}

/** The names of {@linkcode CommandTarget}. */
export const COMMAND: KnownOptions<keyof CommandTarget> = {
  names: { command: true, args: "texts", env: true, cwd: true, exitMs: true },
  hints: { arguments: "args", directory: "cwd", environment: "env" },
};

/** A child process. */
export interface Child {
  readonly output: ReadableStream<Uint8Array>;
  /** The standard error of the process, if it is piped. */
  readonly errors?: ReadableStream<Uint8Array>;
  /** Settles with the exit code. */
  readonly exited: Promise<number>;
  write(bytes: Uint8Array): Promise<void>;
  closeInput(): Promise<void>;
  /** Sends SIGTERM, or SIGKILL without an argument. */
  kill(signal?: "SIGTERM"): void;
}

/**
 * Inherited variables: the same variables as in the official SDKs, so that servers behave as they do with other
 * clients.
 */
const INHERITED: readonly string[] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
const INHERITED_ON_WINDOWS: readonly string[] = [
  "APPDATA",
  "HOMEDRIVE",
  "HOMEPATH",
  "LOCALAPPDATA",
  "PATH",
  "PROCESSOR_ARCHITECTURE",
  "PROGRAMFILES",
  "SYSTEMDRIVE",
  "SYSTEMROOT",
  "TEMP",
  "USERNAME",
  "USERPROFILE",
];

/** The exit code that is reported for a process that was ended by a signal. */
const KILLED = 128;

function toEnvironment(named: CommandTarget["env"]): Record<string, string> {
  const isWindows = (deno?.build.os ?? findProcess().platform).startsWith("win");
  const entries = (isWindows ? INHERITED_ON_WINDOWS : INHERITED).flatMap((name) => {
    const value = readVariable(name);
    // Skip exported shell functions, because they are code.
    return value === undefined || value.startsWith("()") ? [] : [[name, value]];
  });
  return { ...Object.fromEntries(entries), ...named };
}

function readVariable(name: string): string | undefined {
  if (!deno) return (bun ?? findProcess()).env[name];
  // Check the permission first, because Deno would otherwise prompt or throw.
  const state = deno.permissions?.querySync({ name: "env", variable: name }).state ?? "granted";
  return state === "granted" ? deno.env.get(name) : undefined;
}

/**
 * Starts a child process. With `readsErrors`, the standard error of the process is piped. Otherwise it is inherited.
 */
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
      // Read this property only if it is piped, because reading it throws for an inherited stream.
      errors: readsErrors ? child.stderr : undefined,
      exited: child.status.then(({ code }) => over(code)),
      write: (bytes) => writer.write(bytes),
      closeInput: () => writer.close(),
      // Do not signal an exited process, because that throws.
      kill: (signal) => isOver ? undefined : child.kill(signal ?? "SIGKILL"),
    };
  }
  if (node) return spawnOnNode(node, { ...target, env }, readsErrors);
  if (!bun) throw new Error("this is neither Deno, Bun nor Node");
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

function spawnOnNode(
  node: NodeGlobal,
  { command, args = [], cwd, env }: CommandTarget & { readonly env: Record<string, string> },
  readsErrors: boolean,
): Child {
  const { spawn } = node.getBuiltinModule("child_process");
  const child = spawn(command, args, { cwd, env, stdio: ["pipe", "pipe", readsErrors ? "pipe" : "inherit"] });
  // Listen for the reason: Node reports it later, by an event that would end the process without a listener.
  child.on("error", () => {});
  if (child.pid === undefined) throw new Error("it cannot be run; check its name, its permissions and `cwd`");
  const { stdin } = child;
  stdin.on("error", () => {});
  let isOver = false;
  const { promise: exited, resolve } = Promise.withResolvers<number>();
  child.on("exit", (code) => {
    isOver = true;
    resolve(code ?? KILLED);
  });
  return {
    output: readNodeStream(child.stdout),
    errors: child.stderr ? readNodeStream(child.stderr) : undefined,
    exited,
    write: (bytes) => writeNodeStream(stdin.write.bind(stdin), bytes),
    // Wait for the exit too, because Node never calls back if the process has exited in the meantime.
    closeInput: () => Promise.race([new Promise<void>((resolve) => void stdin.end(resolve)), exited.then(() => {})]),
    kill: (signal) => isOver ? undefined : void child.kill(signal ?? "SIGKILL"),
  };
}
