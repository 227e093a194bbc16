/**
 * The standard streams and the terminal on Deno and Bun.
 *
 * @module
 */
import type { BunGlobal, DenoGlobal, ProcessGlobal } from "../runtime.ts";

/** The three standard streams. */
export type StandardStream = "input" | "output" | "errors";

/** The standard streams. Results go to `write`, messages to `writeError`. */
export interface Terminal {
  /** Whether a stream is a terminal. */
  isAt(stream: StandardStream): boolean;
  /** The width in columns. Returns `undefined` if the stream is not a terminal, or has no size. */
  columns(stream: "output" | "errors"): number | undefined;
  /** Whether NO_COLOR is set. */
  hasNoColor(): boolean;
  /** Standard input. Can be read once. */
  input(): ReadableStream<Uint8Array>;
  /** Writes all bytes to standard output. Throws if the reader has closed the pipe. */
  write(bytes: Uint8Array): Promise<void>;
  /** Writes to standard error synchronously, without a line break. */
  writeError(text: string): void;
}

/** Features that Bun loads on first use. */
export interface BunTerminalOptions {
  /** Whether a file descriptor is a terminal. */
  readonly isTerminal: (descriptor: number) => boolean;
  readonly toStreams: () => ProcessGlobal;
}

const DESCRIPTORS = { input: 0, output: 1, errors: 2 } as const;

/** The terminal on Deno. It needs no permissions. */
export function denoTerminal(deno: DenoGlobal): Terminal {
  const { stdin, stdout, stderr } = deno;
  const streams = { input: stdin, output: stdout, errors: stderr };
  // Bound now, because standard output is redirected to standard error before a served file is loaded.
  const write = stdout.write.bind(stdout);
  return {
    isAt: (stream) => streams[stream].isTerminal(),
    columns(stream) {
      try {
        return streams[stream].isTerminal() ? deno.consoleSize().columns : undefined;
      } catch {
        // This terminal has no size.
      }
    },
    hasNoColor: () => deno.noColor,
    input: () => stdin.readable,
    async write(bytes) {
      for (let rest = bytes; rest.length;) rest = rest.subarray(await write(rest));
    },
    writeError(text) {
      try {
        for (let rest = new TextEncoder().encode(text); rest.length;) rest = rest.subarray(stderr.writeSync(rest));
      } catch {
        // The reader has closed the pipe.
      }
    },
  };
}

/** The terminal on Bun. */
export function bunTerminal(bun: BunGlobal, { isTerminal, toStreams }: BunTerminalOptions): Terminal {
  const isAt = (stream: StandardStream) => isTerminal(DESCRIPTORS[stream]);
  // Read now, for the same reason as on Deno.
  const { stdout } = bun;
  return {
    isAt,
    columns: (stream) => isAt(stream) ? toStreams()[stream === "output" ? "stdout" : "stderr"].columns : undefined,
    hasNoColor: () => Boolean(bun.env.NO_COLOR),
    input: () => bun.stdin.stream(),
    write: async (bytes) => void await bun.write(stdout, bytes),
    writeError: (text) => void toStreams().stderr.write(text),
  };
}
