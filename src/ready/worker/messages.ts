/**
 * The messages between a server and its worker threads, and errors as structured clones.
 */
import { isMcpError, isToolError, McpError, ToolError } from "../../core/protocol/errors.ts";
import type { Content, Meta } from "../../core/protocol/types.ts";
import { CancelError, isCancelError } from "../../server/call/cancel_error.ts";
import type { Context, Principal } from "../../server/call/context.ts";
import { isQuestion, QuestionError } from "../../server/call/question.ts";
import type { CancelReason } from "../../server/call/observer.ts";

export interface CallInfo {
  readonly method: string;
  readonly client: Context["client"];
  readonly principal?: Principal;
  /** Names of the principal's fields that cannot be copied to a thread. */
  readonly withheld?: readonly string[];
  readonly meta: Meta;
  readonly idempotencyToken?: string;
}

export type ToThread =
  | { readonly kind: "run"; readonly input: unknown; readonly info: CallInfo; readonly done: Int32Array }
  | { readonly kind: "answer"; readonly id: number; readonly value?: unknown; readonly error?: SentError }
  | { readonly kind: "cancel"; readonly reason: SentError };

export type FromThread =
  | { readonly kind: "ready" }
  | { readonly kind: "result"; readonly value: unknown }
  | { readonly kind: "failed"; readonly error: SentError }
  | { readonly kind: "gone" }
  /** Calls a method of the call's context. With an `id`, the thread expects a response. */
  | { readonly kind: "use"; readonly name: string; readonly args: readonly unknown[]; readonly id?: number };

/** An error as plain data, because structured cloning drops the class and the extra fields of an error. */
export type SentError =
  | { readonly kind: "mcp"; readonly code: number; readonly message: string; readonly data?: unknown }
  | { readonly kind: "cancelled"; readonly why: CancelReason; readonly message: string }
  | { readonly kind: "question"; readonly message: string }
  | { readonly kind: "tool"; readonly content: readonly Content[] }
  | { readonly kind: "other"; readonly name: string; readonly message: string; readonly stack?: string };

export function toSentError(error: unknown): SentError {
  if (isMcpError(error)) {
    if (isCancelError(error)) return { kind: "cancelled", why: error.why, message: error.message };
    if (isQuestion(error)) return { kind: "question", message: error.message };
    const { code, message, data } = error;
    return { kind: "mcp", code, message, data: isCloneable(data) ? data : undefined };
  }
  if (isToolError(error)) return { kind: "tool", content: error.content };
  if (!(error instanceof Error)) return { kind: "other", name: "Error", message: `A handler threw ${String(error)}` };
  const { name, message, stack } = error;
  return { kind: "other", name, message, stack };
}

export function toError(sent: SentError): Error {
  if (sent.kind === "mcp") return new McpError(sent.code, sent.message, sent.data);
  if (sent.kind === "cancelled") return new CancelError(sent.why, sent.message);
  if (sent.kind === "question") return new QuestionError();
  if (sent.kind === "tool") return new ToolError(sent.content);
  const error = new Error(sent.message);
  return Object.defineProperties(error, { name: { value: sent.name }, stack: { value: sent.stack } });
}

function isCloneable(value: unknown): boolean {
  try {
    structuredClone(value);
    return true;
  } catch {
    return false;
  }
}

/** A clone of a class instance is not complete, because the clone lacks methods and getters. */
export function isCopyable(value: unknown): boolean {
  if (!isCloneable(value)) return false;
  const clones = new Map<unknown, unknown>([[value, structuredClone(value)]]);
  // The loop also visits entries that are added during the loop.
  for (const [each, clone] of clones) {
    if (typeof each !== "object" || each === null) continue;
    const prototype: unknown = Object.getPrototypeOf(each);
    // A clone of a built-in object has the same prototype as the object. A clone of a class instance has another
    // prototype.
    if (prototype !== null && prototype !== Object.getPrototypeOf(clone)) return false;
    const [parts, copies] = [each, clone].map(listParts);
    parts.forEach((part, at) => clones.has(part) || clones.set(part, copies[at]));
  }
  return true;
}

// The entries of maps and sets are not checked, because a principal is not expected to contain maps or sets.
function listParts(of: unknown): readonly unknown[] {
  return ArrayBuffer.isView(of) ? [] : Object.values(Object(of));
}
