/**
 * Programs on either runtime.
 *
 * @module
 */
import type { BunGlobal, DenoGlobal } from "../runtime.ts";

/** What to start a program with. Nothing of this process' own environment is handed on. */
export interface SpawnOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** What it reads; without it, nothing. */
  readonly input?: string;
}

/** A program that runs. */
export interface Spawned {
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** The exit code, when it has ended. */
  readonly ended: Promise<number>;
  /** Asks it to end, or ends it. */
  kill(signal: "SIGTERM" | "SIGKILL"): void;
}

/** Starts a program: its name or path, and its arguments. No shell sees them. Throws if there is none. */
export type Spawn = (words: readonly string[], options: SpawnOptions) => Spawned;

/** Programs on Deno. */
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
    return { stdout: child.stdout, stderr: child.stderr, ...toEnd(child, child.status.then(({ code }) => code)) };
  };
}

/** Programs on Bun. */
export function bunSpawn(bun: BunGlobal): Spawn {
  return (words, { cwd, env, input }) => {
    const stdin = input === undefined ? "ignore" : new TextEncoder().encode(input);
    const child = bun.spawn(words, { cwd, env, stdin, stdout: "pipe", stderr: "pipe" });
    return { stdout: child.stdout, stderr: child.stderr, ...toEnd(child, child.exited) };
  };
}

// To kill what has ended is an error on one runtime, and on the other may hit whoever has its number now.
function toEnd(child: { kill(signal: string): void }, exited: Promise<number>): Pick<Spawned, "ended" | "kill"> {
  let isOver = false;
  const ended = exited.finally(() => isOver = true);
  return { ended, kill: (signal) => isOver ? undefined : child.kill(signal) };
}

async function write(stdin: WritableStream<Uint8Array>, input: string): Promise<void> {
  const writer = stdin.getWriter();
  try {
    await writer.write(new TextEncoder().encode(input));
    await writer.close();
  } catch {
    // A program need not read what it is given.
  }
}
