/**
 * The types of logged messages and of request outcomes.
 */
import type { Json } from "./json.ts";

/** The kind of a message. `closed` means that the page has closed a stream. */
export type FrameKind =
  | "request"
  | "notification"
  | "result"
  | "question"
  | "answer"
  | "tool-error"
  | "error"
  | "failure"
  | "fault"
  | "closed";

export interface Frame {
  readonly kind: FrameKind;
  /** The ID of the request to which the message belongs. */
  readonly id: number;
  /** The call to which the request belongs. Missing for a request that is no part of a call, such as a list. */
  readonly call?: string;
  readonly method: string;
  /** The tool, prompt or URI in the request. */
  readonly subject?: string;
  readonly text: string;
  /** Milliseconds between the request and the message. */
  readonly ms: number;
  /** The HTTP status of the response. Set only for the last message of an exchange. */
  readonly status?: number;
  /** The protocol headers of a request. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A failed request. `code` is missing if the response contained no error code. */
export interface Failure {
  readonly kind: "error";
  readonly code?: number;
  readonly message: string;
  readonly data?: unknown;
  readonly ms: number;
  readonly status?: number;
  /** The reason why the handler failed. Set only if the page's own server sent the error, and runs in development. */
  readonly why?: string;
}

export type Outcome =
  | {
    readonly kind: "result";
    readonly result: Json;
    readonly ms: number;
    readonly size: number;
    readonly why?: string;
  }
  | Failure
  | { readonly kind: "stopped"; readonly ms: number };
