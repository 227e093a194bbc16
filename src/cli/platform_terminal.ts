/**
 * Standard streams, and the terminal that may be behind them, on either runtime.
 *
 * @module
 */
import type { BunGlobal, DenoGlobal, ProcessGlobal } from "../runtime.ts";

/** The three standard streams. */
export type StandardStream = "input" | "output" | "errors";

/** Standard streams. What is told to a person goes to `tell`, what a program may read to `write`. */
export interface Terminal {
  /** Whether a person is at a stream. */
  isAt(stream: StandardStream): boolean;
  /** How many characters a line holds; nothing if the stream is no terminal, or does not know. */
  columns(stream: "output" | "errors"): number | undefined;
  /** Whether the user wants no colours. */
  hasNoColor(): boolean;
  /** Standard input, to be read once. */
  input(): ReadableStream<Uint8Array>;
  /** Writes all bytes to standard output. Throws if nobody reads them any more. */
  write(bytes: Uint8Array): Promise<void>;
  /** Writes to standard error at once, without a line's end. */
  tell(text: string): void;
}

/** Ways to what Bun keeps elsewhere; not taken before they are needed. */
export interface BunTerminalOptions {
  /** Whether a file of this number is a terminal. */
  readonly isTerminal: (file: number) => boolean;
  readonly toStreams: () => ProcessGlobal;
}

const FILES = { input: 0, output: 1, errors: 2 } as const;

/** The terminal on Deno. None of it needs a permission. */
export function denoTerminal(deno: DenoGlobal): Terminal {
  const { stdin, stdout, stderr } = deno;
  const streams = { input: stdin, output: stdout, errors: stderr };
  // Taken before a served file is loaded: what that prints is then led to standard error, and this is not.
  const write = stdout.write.bind(stdout);
  return {
    isAt: (stream) => streams[stream].isTerminal(),
    columns(stream) {
      try {
        return streams[stream].isTerminal() ? deno.consoleSize().columns : undefined;
      } catch {
        // A terminal need not have a size.
      }
    },
    hasNoColor: () => deno.noColor,
    input: () => stdin.readable,
    async write(bytes) {
      for (let rest = bytes; rest.length;) rest = rest.subarray(await write(rest));
    },
    tell(text) {
      try {
        for (let rest = new TextEncoder().encode(text); rest.length;) rest = rest.subarray(stderr.writeSync(rest));
      } catch {
        // Nobody reads it.
      }
    },
  };
}

/** The terminal on Bun. */
export function bunTerminal(bun: BunGlobal, { isTerminal, toStreams }: BunTerminalOptions): Terminal {
  const isAt = (stream: StandardStream) => isTerminal(FILES[stream]);
  // As on Deno: taken before a served file is loaded.
  const { stdout } = bun;
  return {
    isAt,
    columns: (stream) => isAt(stream) ? toStreams()[stream === "output" ? "stdout" : "stderr"].columns : undefined,
    hasNoColor: () => Boolean(bun.env.NO_COLOR),
    input: () => bun.stdin.stream(),
    write: async (bytes) => void await bun.write(stdout, bytes),
    tell: (text) => void toStreams().stderr.write(text),
  };
}
