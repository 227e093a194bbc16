/**
 * The messages between a server and the process in which a program runs.
 */
import { isObject } from "../../core/kit/json.ts";

/** The interpreter in exactly this version, because programs must not get out of it. */
export const QUICKJS = "quickjs-wasi@3.7.0";

/** Maximum length of a message in bytes. */
export const MAX_LINE: number = 8 * 1024 * 1024;

/** Maximum length of the arguments of a call as JSON, in characters, of which each can need seven bytes in a message. */
export const MAX_INPUT: number = 1024 * 1024;

/** The first message: runs a program. */
export interface RunMessage {
  readonly kind: "run";
  readonly code: string;
  readonly cpuMs: number;
  readonly memoryBytes: number;
  readonly outputCharacters: number;
  readonly calls: number;
  readonly now: number;
  readonly seed: number;
}

/** An answer contains the result of a call as JSON, or its error. */
export type ToChild =
  | RunMessage
  | { readonly kind: "answer"; readonly id: number; readonly isError: boolean; readonly text: string };

export type FromChild =
  | { readonly kind: "ready" | "waiting" }
  /** `value` and `error` end the program. `missing`: the interpreter cannot be loaded. */
  | { readonly kind: "log" | "value" | "error" | "missing"; readonly text: string }
  | { readonly kind: "call"; readonly id: number; readonly name: string; readonly input: string };

/** Returns `undefined` for a message that the child program never sends, because a program may have taken it over. */
export function readFromChild(message: unknown): FromChild | undefined {
  if (!isObject(message)) return;
  const { kind, text, id, name, input } = message;
  if (kind === "ready" || kind === "waiting") return { kind };
  if (kind === "log" || kind === "value" || kind === "error" || kind === "missing") {
    return typeof text === "string" ? { kind, text } : undefined;
  }
  const isCall = kind === "call" && typeof id === "number" && typeof name === "string" && typeof input === "string";
  return isCall ? { kind, id, name, input } : undefined;
}
