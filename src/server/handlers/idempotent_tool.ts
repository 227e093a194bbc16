/**
 * The types of a tool whose calls can have an idempotency key.
 */
import type { Binding } from "../call/container.ts";
import type { Context } from "../call/context.ts";

/** Returns the key of a call. */
export type ReadKey = (input: never, ctx: Context<never>) => unknown;

/** A tool whose calls can have an idempotency key. */
export interface IdempotentTool {
  /** Kind and name for messages, such as `tool "pay"`. */
  readonly place: string;
  readonly name: string;
  readonly services?: Binding;
  /** Returns the key of a call. */
  readonly key: ReadKey;
  /** Whether the tool has output guards. */
  readonly isGuarded: boolean;
  /**
   * Whether a repeated call runs the handler again if the instance that ran the handler ended before it kept a result.
   */
  readonly rerun?: boolean;
  /** Milliseconds for which a key is remembered. */
  readonly ttlMs: number;
}
