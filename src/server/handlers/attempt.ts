/**
 * Handles errors that the functions of prompts, resources and completers throw.
 */
import type { FeatureParts, MapError } from "../visibility/feature_parts.ts";
import { INTERNAL_ERROR, isMcpError, isToolError, McpError, type ToolError } from "../../core/protocol/errors.ts";
import { isStrayPromise } from "../../core/protocol/promises.ts";
import type { Call } from "../call/call.ts";

export interface Attempt {
  readonly core: FeatureParts;
  readonly call: Call;
  /** Name or URI of the handler, for `observer.fault`. */
  readonly subject: string;
  readonly mapError?: MapError;
}

/**
 * Runs a function of the server's author. The client gets an `McpError` unchanged, and the text of a `ToolError`. Any
 * other error goes to `observer.fault`, and the client gets only an error id, unless `mapError` describes the error.
 */
export async function attempt<T>(attempted: Attempt, run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const { core, call, subject } = attempted;
    if (isMcpError(error)) throw error;
    if (isToolError(error)) throw toMcpError(error);
    const reported = core.report(error, { method: call.method, subject });
    const words = describe(attempted, error);
    if (typeof words === "string") throw new McpError(INTERNAL_ERROR, words, reported.data);
    throw isToolError(words) ? toMcpError(words) : isMcpError(words) ? words : reported;
  }
}

/** Uses the handler's `mapError`, or else the server's. Returns `undefined` if neither describes the error. */
export function describe({ core, call, mapError }: Omit<Attempt, "subject">, error: unknown): unknown {
  for (const describe of [mapError, core.mapError]) {
    const words: unknown = describe?.(error, call);
    if (words !== undefined && words !== null && !isStrayPromise(words)) return words;
  }
}

function toMcpError({ content, message }: ToolError): McpError {
  const text = content.flatMap((block) => block.type === "text" ? block.text : []).join("\n");
  return new McpError(INTERNAL_ERROR, text || message);
}
