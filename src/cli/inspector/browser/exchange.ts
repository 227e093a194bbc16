/**
 * The types of messages and outcomes.
 *
 * @module
 */
import type { Json } from "./json.ts";

/** The kind of a message. `closed` means that the page has closed a stream. */
export type FrameKind =
  | "request"
  | "notification"
  | "result"
  | "question"
  | "answer"
  | "tool error"
  | "error"
  | "failure"
  | "fault"
  | "closed";

/** A message. */
export interface Frame {
  readonly kind: FrameKind;
  /** The ID of the request to which the message belongs. */
  readonly id: number;
  readonly method: string;
  /** The tool, prompt or URI of the request. */
  readonly subject?: string;
  /** The text of the message. */
  readonly text: string;
  /** Milliseconds since the request. */
  readonly ms: number;
  /** The HTTP status of the response. Set for the last message of an exchange. */
  readonly status?: number;
  /** The protocol headers of a request. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** An error as the outcome of a request. `code` is missing if there was no response. */
export interface Failure {
  readonly kind: "error";
  readonly code?: number;
  readonly message: string;
  readonly data?: unknown;
  readonly ms: number;
  readonly status?: number;
  /** The reason why the handler failed. Set only if the server is in development and serves this page. */
  readonly why?: string;
}

/** The outcome of a request. */
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
