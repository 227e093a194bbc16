/**
 * Starts programs on Deno and Bun.
 *
 * @module
 */
import { bun, type BunGlobal, deno, type DenoGlobal } from "../runtime.ts";

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
export function spawn(words: readonly string[], options: SpawnOptions): Spawned {
  if (deno) return denoSpawn(deno, words, options);
  if (bun) return bunSpawn(bun, words, options);
  throw new Error("Cannot start a program: this is neither Deno nor Bun");
}

function denoSpawn(
  deno: DenoGlobal,
  [program, ...args]: readonly string[],
  { cwd, env, input }: SpawnOptions,
): Spawned {
  const stdin = input === undefined ? "null" : "piped";
  const options = { args, cwd, clearEnv: true, env, stdin, stdout: "piped", stderr: "piped" } as const;
  const child = new deno.Command(program, options).spawn();
  if (input !== undefined) write(child.stdin, input);
  return { stdout: child.stdout, stderr: child.stderr, ...toExit(child, child.status.then(({ code }) => code)) };
}

function bunSpawn(bun: BunGlobal, words: readonly string[], { cwd, env, input }: SpawnOptions): Spawned {
  const stdin = input === undefined ? "ignore" : new TextEncoder().encode(input);
  const child = bun.spawn(words, { cwd, env, stdin, stdout: "pipe", stderr: "pipe" });
  return { stdout: child.stdout, stderr: child.stderr, ...toExit(child, child.exited) };
}

// On Bun, signals to a program that has exited may reach another process with its id.
function toExit(child: { kill(signal: string): void }, exited: Promise<number>): Pick<Spawned, "ended" | "kill"> {
  let hasExited = false;
  const ended = exited.finally(() => hasExited = true);
  const kill = (signal: string) => {
    if (hasExited) return;
    try {
      child.kill(signal);
    } catch {
      // Deno throws if the program exited and its exit was not reported yet.
    }
  };
  return { ended, kill };
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
