/**
 * Runs a program for a call, with limits on its time and output.
 */
import { killProcess, sendSignal } from "../../core/kit/signals.ts";
import { ToolError } from "../../library.ts";
import { deno } from "../runtime_globals.ts";

/** Milliseconds to wait for a program to exit after it was killed, and for its output streams to end. */
const EXIT_TIMEOUT_MS = 1000;

export interface ProgramResult {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
  /** A sentence that says why the program was killed. `undefined` if the program exited by itself. */
  readonly killReason?: string;
}

export interface ProgramLimits {
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/**
 * Runs a program until it ends or exceeds a limit.
 *
 * @throws {ToolError} if the program cannot be started.
 */
export async function runProgram(
  words: readonly string[],
  options: SpawnOptions,
  { timeoutMs, maxBytes, signal }: ProgramLimits,
): Promise<ProgramResult> {
  const child = await start(words, options);
  let killReason: string | undefined;
  const { promise: killed, resolve: onKilled } = Promise.withResolvers<number>();
  const kill = async (cause: string) => {
    if (killReason !== undefined) return;
    killReason = `The program was killed ${cause}.`;
    const code = await killProcess(child, EXIT_TIMEOUT_MS);
    if (code === undefined) killReason = `The program could not be killed ${cause}; end it yourself.`;
    onKilled(code ?? KILLED);
  };
  const timer = setTimeout(() => kill(`after ${timeoutMs} ms (timeoutMs)`), timeoutMs);
  const onAbort = () => kill("when the call was cancelled");
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  const output = new OutputReader(
    maxBytes,
    () => kill(`after ${maxBytes} bytes of output (maxBytes)`),
  );
  const reading = Promise.all([output.read(child.stdout), output.read(child.stderr)]);
  const code = await Promise.race([child.exited, killed]);
  clearTimeout(timer);
  signal.removeEventListener("abort", onAbort);
  // Stop reading the output after a timeout, because other processes that the program has started may keep the streams
  // open.
  const cancelTimer = setTimeout(() => output.cancel(), EXIT_TIMEOUT_MS);
  const [stdout, stderr] = await reading;
  clearTimeout(cancelTimer);
  return { stdout: stdout.trimEnd(), stderr: stderr.trimEnd(), code, killReason };
}

async function start(words: readonly string[], options: SpawnOptions): Promise<Spawned> {
  try {
    return await spawn(words, options);
  } catch (error) {
    const state = error instanceof Error ? error.message : String(error);
    throw new ToolError(`Cannot run ${words[0]}: ${state}`);
  }
}

/** Reads the output streams of a program. All streams count towards one limit. */
class OutputReader {
  #bytesLeft: number;
  readonly #onExceeded: () => void;
  readonly #readers: ReadableStreamDefaultReader<Uint8Array>[] = [];

  constructor(maxBytes: number, onExceeded: () => void) {
    this.#bytesLeft = maxBytes;
    this.#onExceeded = onExceeded;
  }

  async read(stream: ReadableStream<Uint8Array>): Promise<string> {
    const decoder = new TextDecoder();
    const reader = stream.getReader();
    this.#readers.push(reader);
    let text = "";
    while (true) {
      const { done, value } = await reader.read();
      if (done) return text + decoder.decode();
      text += decoder.decode(value.subarray(0, Math.max(0, this.#bytesLeft)), { stream: true });
      this.#bytesLeft -= value.length;
      if (this.#bytesLeft < 0) this.#onExceeded();
    }
  }

  cancel(): void {
    for (const reader of this.#readers) reader.cancel().catch(() => {});
  }
}

/** Options of `spawn`. The program does not inherit the environment of this process. */
export interface SpawnOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The content of standard input. Defaults to no content. */
  readonly input?: string;
}

export interface Spawned {
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** Resolves with the exit code. */
  readonly exited: Promise<number>;
  /** Sends a signal. Does nothing if the program has exited or runs as another user. */
  kill(signal: "SIGTERM" | "SIGKILL"): void;
}

/** The exit code to report for a program that a signal ended. */
const KILLED = 128;

/** Starts a program, given by its name or path, without a shell. Throws if the program does not exist. */
export async function spawn(words: readonly string[], options: SpawnOptions): Promise<Spawned> {
  return deno ? spawnOnDeno(deno, words, options) : await spawnByNode(words, options);
}

/** Use the API of Deno, because `spawn` of `node:child_process` needs permission to read the environment. */
function spawnOnDeno(
  { Command }: NonNullable<typeof deno>,
  [program, ...args]: readonly string[],
  { cwd, env, input }: SpawnOptions,
): Spawned {
  const stdin = input === undefined ? "null" : "piped";
  const child = new Command(program, { args, cwd, clearEnv: true, env, stdin, stdout: "piped", stderr: "piped" })
    .spawn();
  if (input !== undefined) new Blob([input]).stream().pipeTo(child.stdin).catch(() => {});
  return {
    stdout: child.stdout,
    stderr: child.stderr,
    exited: child.status.then(({ code }) => code),
    kill: (signal) => sendSignal(child, signal),
  };
}

async function spawnByNode([program, ...args]: readonly string[], options: SpawnOptions): Promise<Spawned> {
  const { cwd, env, input } = options;
  const [{ spawn }, { Readable }, { default: { once } }] = await Promise.all([
    import("node:child_process"),
    import("node:stream"),
    import("node:events"),
  ]);
  const child = spawn(program, args, { cwd, env, stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"] });
  const { promise: exited, resolve } = Promise.withResolvers<number>();
  child.on("exit", (code) => resolve(code ?? KILLED));
  await once(child, "spawn");
  // Add a listener, because Node emits an error event if a signal cannot be sent, and an event without a listener would
  // end this process.
  child.on("error", () => {});
  // Ignore errors, because a program may close its standard input before it has read all of the input.
  child.stdin?.on("error", () => {}).end(input);
  const [stdout, stderr] = [child.stdout, child.stderr].map((stream) => Readable.toWeb(stream ?? Readable.from([])));
  return { stdout, stderr, exited, kill: (signal) => sendSignal(child, signal) };
}
