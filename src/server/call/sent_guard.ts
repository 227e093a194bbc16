/**
 * The interface through which everything that a handler's run sends to the client before its result passes the output
 * guards.
 */
import type { Params, Result } from "../../core/protocol/jsonrpc.ts";
import type { Question } from "./question.ts";

export interface SentGuard {
  /** Passes a question through the guards, and then to `ask`. */
  ask(question: Question, ask: (question: Question) => Promise<unknown>): Promise<unknown>;
  /** Passes the params of a log or progress message through the guards, and then to `send`. */
  say(params: Params, send: (params: Params) => Promise<void>): Promise<void>;
  /** Resolves when the guards have processed all earlier log and progress messages. */
  said(): Promise<void>;
  /** Notes a result that has passed the guards, and that middleware can still change. */
  noteResult(result: Result): void;
}
