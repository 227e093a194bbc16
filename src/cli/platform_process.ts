/**
 * Starts programs.
 *
 * @module
 */
import { deno } from "./runtime_globals.ts";

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

/** The exit code of a program that a signal ended. */
const KILLED = 128;

/** Starts a program by its name or path, with arguments and without a shell. Throws if there is no such program. */
export async function spawn(words: readonly string[], options: SpawnOptions): Promise<Spawned> {
  return deno ? spawnOnDeno(deno, words, options) : await spawnByNode(words, options);
}

/** On Deno, the `spawn` of `node:child_process` needs permission to read the environment. */
function spawnOnDeno(
  { Command }: NonNullable<typeof deno>,
  [program, ...args]: readonly string[],
  { cwd, env, input }: SpawnOptions,
): Spawned {
  const stdin = input === undefined ? "null" : "piped";
  const child = new Command(program, { args, cwd, clearEnv: true, env, stdin, stdout: "piped", stderr: "piped" })
    .spawn();
  if (input !== undefined) new Blob([input]).stream().pipeTo(child.stdin).catch(() => {});
  const kill = (signal: "SIGTERM" | "SIGKILL") => {
    try {
      child.kill(signal);
    } catch {
      // The program has exited.
    }
  };
  return { stdout: child.stdout, stderr: child.stderr, ended: child.status.then(({ code }) => code), kill };
}

async function spawnByNode([program, ...args]: readonly string[], options: SpawnOptions): Promise<Spawned> {
  const { cwd, env, input } = options;
  const [{ spawn }, { Readable }, { default: { once } }] = await Promise.all([
    import("node:child_process"),
    import("node:stream"),
    import("node:events"),
  ]);
  const child = spawn(program, args, { cwd, env, stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"] });
  const { promise: ended, resolve } = Promise.withResolvers<number>();
  child.on("exit", (code) => resolve(code ?? KILLED));
  await once(child, "spawn");
  // The program may close its standard input early.
  child.stdin?.on("error", () => {}).end(input);
  const [stdout, stderr] = [child.stdout, child.stderr].map((stream) => Readable.toWeb(stream ?? Readable.from([])));
  return { stdout, stderr, ended, kill: (signal) => void child.kill(signal) };
}
