/**
 * Starts programs on Deno and Bun.
 *
 * @module
 */
import type { BunGlobal, DenoGlobal } from "../runtime.ts";

/** How to start a program. It does not inherit the environment of this process. */
export interface SpawnOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The content of standard input. Defaults to none. */
  readonly input?: string;
}

/** A running program. */
export interface Spawned {
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** Resolves with the exit code. */
  readonly ended: Promise<number>;
  /** Sends a signal. Does nothing after the program has exited. */
  kill(signal: "SIGTERM" | "SIGKILL"): void;
}

/** Starts a program by its name or path, with arguments and without a shell. Throws if there is no such program. */
export type Spawn = (words: readonly string[], options: SpawnOptions) => Spawned;

/** Starts programs on Deno. */
export function denoSpawn(deno: DenoGlobal): Spawn {
  return ([program, ...args], { cwd, env, input }) => {
    const stdin = input === undefined ? "null" : "piped";
    const child = new deno.Command(program, {
      args,
      cwd,
      clearEnv: true,
      env,
      stdin,
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    if (input !== undefined) write(child.stdin, input);
    return { stdout: child.stdout, stderr: child.stderr, ...toExit(child, child.status.then(({ code }) => code)) };
  };
}

/** Starts programs on Bun. */
export function bunSpawn(bun: BunGlobal): Spawn {
  return (words, { cwd, env, input }) => {
    const stdin = input === undefined ? "ignore" : new TextEncoder().encode(input);
    const child = bun.spawn(words, { cwd, env, stdin, stdout: "pipe", stderr: "pipe" });
    return { stdout: child.stdout, stderr: child.stderr, ...toExit(child, child.exited) };
  };
}

// Signals to a program that has exited throw on Deno, and on Bun they may reach another process with its id.
function toExit(child: { kill(signal: string): void }, exited: Promise<number>): Pick<Spawned, "ended" | "kill"> {
  let hasExited = false;
  const ended = exited.finally(() => hasExited = true);
  return { ended, kill: (signal) => hasExited ? undefined : child.kill(signal) };
}

async function write(stdin: WritableStream<Uint8Array>, input: string): Promise<void> {
  const writer = stdin.getWriter();
  try {
    await writer.write(new TextEncoder().encode(input));
    await writer.close();
  } catch {
    // The program has closed its standard input.
  }
}
