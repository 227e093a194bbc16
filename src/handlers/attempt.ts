/**
 * Handles errors from the functions of prompts, resources and completions.
 *
 * @module
 */
import { INTERNAL_ERROR, isMcpError, isToolError, McpError } from "../protocol/errors.ts";
import type { Call } from "../core/call.ts";
import type { Core } from "../core/core.ts";

/** The call that a function of the author serves. */
export interface Attempt {
  readonly core: Core;
  readonly call: Call;
  /** Name or URI for `observer.fault`. */
  readonly subject: string;
}

/**
 * Runs a function of the server's author. An `McpError` reaches the client unchanged, and a `ToolError` with its text.
 * For any other error the client gets an id, and `observer.fault` gets the error.
 */
export async function attempt<T>({ core, call, subject }: Attempt, run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    // A handler that rethrows the reason of its cancellation has not failed.
    if (isMcpError(error) || call.ended && error === call.reason) throw error;
    if (!isToolError(error)) throw core.report(error, { method: call.method, subject });
    const text = error.content.flatMap((block) => block.type === "text" ? block.text : []).join("\n");
    throw new McpError(INTERNAL_ERROR, text || error.message);
  }
}
