/**
 * The types of a tool whose calls can have an idempotency key.
 */
import type { Binding } from "../call/container.ts";
import type { Context } from "../call/context.ts";

export type ReadKey = (input: never, ctx: Context<never>) => unknown;

export interface IdempotentTool {
  /** Kind and name for messages, such as `tool "pay"`. */
  readonly place: string;
  readonly name: string;
  readonly services?: Binding;
  readonly key: ReadKey;
  /** Whether the tool has output guards. */
  readonly isGuarded: boolean;
  /** Whether a repeated call runs the handler again if the first instance ended before it kept a result. */
  readonly rerun?: boolean;
  /**
   * Whether the keys are ids of plans. A plan cannot be used again after its tool has failed, and callers without an
   * identity have plans too.
   */
  readonly isPlanned?: boolean;
  /** Milliseconds for which a key is remembered. */
  readonly ttlMs: number;
}
