/**
 * The wall around programs that models write.
 */

/** What a program gets from the server, and what it may use. */
export interface SandboxLimits {
  /** Milliseconds of CPU time that the program may compute between two waits for calls. */
  readonly cpuMs: number;
  /** Maximum memory of the program in bytes. */
  readonly memoryBytes: number;
  /** Maximum length of what the program returns, as JSON, and of what it logs, in characters. */
  readonly outputCharacters: number;
  /** Maximum number of calls. */
  readonly calls: number;
  /** The time that the program sees, in milliseconds since 1970. It stands still, so that a program can run again. */
  readonly now: number;
  /** A whole number from 0 to 999999 from which the random numbers of the program derive. */
  readonly seed: number;
}

/**
 * Calls a tool. Resolves to a JSON value, or to `undefined`. Rejects with an error for the program, whose `code` is the
 * code of a protocol error. The results must reach the program in the order in which the promises settle.
 */
export type SandboxCall = (name: string, input: unknown) => Promise<unknown>;

/** How a program has ended. */
export interface SandboxResult {
  /** What the program returned, as a JSON value. */
  readonly value?: unknown;
  /** What is wrong with the program, for the model, such as `line 3: TypeError: x is not a function`. */
  readonly error?: string;
  /** What the program has logged, one text per call of `console.log`. */
  readonly logs: readonly string[];
}

/**
 * Runs programs that nobody has checked. By default, `codeMode()` runs each program in QuickJS, in a process of its own
 * without permissions. Pass another sandbox to run programs elsewhere, such as in a container.
 */
export interface Sandbox {
  /**
   * Runs a program, which is the body of an asynchronous function or a single arrow function, with the globals `tools`
   * and `console`. `tools.name(input)` calls `call(name, input)`.
   *
   * Rejects with the reason of `signal` when it aborts, after which the program must make no calls. Any other rejection
   * is a fault of the sandbox, of which the client learns only an error id.
   */
  run(code: string, call: SandboxCall, limits: SandboxLimits, signal: AbortSignal): Promise<SandboxResult>;
}
