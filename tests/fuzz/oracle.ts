// Computes the expected response to an input, without the library's code.
import { findSecret } from "../hostile/secrecy.ts";
import { toObject } from "./samples.ts";

/** What a text is in JSON-RPC. */
export type Kind =
  | { readonly kind: "request"; readonly id: unknown; readonly method: string }
  | { readonly kind: "note"; readonly method: string; readonly requestId?: unknown }
  | { readonly kind: "answer" }
  | { readonly kind: "broken"; readonly id?: unknown }
  | { readonly kind: "batch"; readonly items: readonly Kind[] };

/** The server's response to one HTTP request. */
export interface Outcome {
  readonly status: number;
  readonly type: string;
  readonly body: string;
  /** Whether the response is a stream that the test cancelled before its end. */
  readonly isOpen?: boolean;
}

/** Determines what the bytes are in JSON-RPC. */
export function readKind(bytes: Uint8Array): Kind {
  let text;
  let value: unknown;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    if (measureDepth(text) > 128) return { kind: "broken" };
    value = JSON.parse(text);
  } catch {
    return { kind: "broken" };
  }
  return Array.isArray(value) ? { kind: "batch", items: value.map(toKind) } : toKind(value);
}

function toKind(value: unknown): Kind {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { kind: "broken" };
  const has = (key: string) => Object.hasOwn(value, key);
  const { jsonrpc, id, method, params, result, error } = toObject(value);
  const isId = (typeof id === "string" && id.length <= 256) || Number.isSafeInteger(id);
  const broken = { kind: "broken", id: isId ? id : undefined } as const;
  if (jsonrpc !== "2.0" || (has("id") && !isId)) return broken;
  // A response may have `error: null` beside its result, or `result: null` beside its error, and any error.
  const isResponse = has("result") ? !has("error") || result === null || error === null : has("error");
  if (!has("method") && isId && isResponse) return { kind: "answer" };
  if (typeof method !== "string" || method.length > 256 || has("result") || has("error")) return broken;
  if (
    params !== undefined && params !== null && (typeof params !== "object" || params === null || Array.isArray(params))
  ) return broken;
  return has("id") ? { kind: "request", id, method } : { kind: "note", method, requestId: toObject(params).requestId };
}

function measureDepth(text: string): number {
  let deepest = 0;
  let depth = 0;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\[^])*"?|[[\]{}]/g)) {
    if (token === "{" || token === "[") deepest = Math.max(deepest, ++depth);
    else if (token === "}" || token === "]") depth--;
  }
  return deepest;
}

/** Returns what is wrong with a response, or `undefined` if the response is correct. */
export function judge(method: string, kind: Kind, { status, type, body, isOpen }: Outcome): string | undefined {
  if (status >= 500 && status !== 503) return `status ${status}`;
  const secret = findSecret(body);
  if (secret) return `the response shows ${secret}`;
  if (status >= 400) return method === "HEAD" || (status === 405 && body === "") ? undefined : judgeError(kind, body);
  if (method === "GET" || method === "OPTIONS" || method === "DELETE") return;
  if (method !== "POST") return `${method} got status ${status}`;
  if (isOpen) return kind.kind === "request" ? undefined : `a stream in response to ${kind.kind} instead of a request`;
  if (status === 202 || status === 204) {
    if (body !== "") return `status ${status} with a body`;
    return count(kind) ? "a request got no response" : undefined;
  }
  if (kind.kind === "broken") return `status ${status} for a text that is not a message`;
  let messages: readonly unknown[];
  try {
    messages = type.startsWith("text/event-stream") ? readEvents(body) : [JSON.parse(body)].flat();
  } catch {
    return "the response is not JSON";
  }
  const answers = messages.filter((message) => !Object.hasOwn(Object(message), "method"));
  if (answers.length !== count(kind)) return `${answers.length} responses to ${count(kind)} requests`;
  const ids = answers.map((answer) => toObject(answer).id);
  if (kind.kind === "request" && ids[0] !== kind.id) return `the response has the id ${JSON.stringify(ids[0])}`;
}

/** Returns the number of responses that a message must get. */
export function count(kind: Kind): number {
  if (kind.kind === "batch") return kind.items.reduce((sum, item) => sum + count(item), 0);
  return kind.kind === "request" || kind.kind === "broken" ? 1 : 0;
}

function judgeError(kind: Kind, body: string): string | undefined {
  let value;
  try {
    value = JSON.parse(body);
  } catch {
    return "the body of the error is not JSON";
  }
  const { jsonrpc, id, error, ...rest } = toObject(value);
  const { code, message } = toObject(error);
  if (jsonrpc !== "2.0" || !Number.isInteger(code) || typeof message !== "string" || Object.keys(rest).length) {
    return "the body of the error is not a JSON-RPC error";
  }
  if (id === undefined || id === null) return;
  if ((kind.kind === "request" || kind.kind === "broken") && kind.id === id) return;
  return `the error has the id ${JSON.stringify(id)}`;
}

// Split only at line feeds. U+2028, which a regular expression treats as a line break, can be part of JSON.
function readEvents(body: string): unknown[] {
  return body.split("\n").flatMap((line) =>
    line.startsWith("data: {") || line.startsWith("data: [") ? JSON.parse(line.slice(6)) : []
  );
}
