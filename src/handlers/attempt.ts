/**
 * What happens to errors of the code that users write for prompts, resources and completions.
 *
 * @module
 */
import { INTERNAL_ERROR, isMcpError, isToolError, McpError } from "../protocol/errors.ts";
import type { Call } from "../core/call.ts";
import type { Core } from "../core/core.ts";

/** What an attempt is about. */
export interface Attempt {
  readonly core: Core;
  readonly call: Call;
  /** Name or URI, for `onError`. */
  readonly subject: string;
}

/**
 * Runs code of the author's. An `McpError` reaches the client as it stands and a `ToolError` by its text; of any other
 * error the client is told an id, and `onError` the truth.
 */
export async function attempt<T>({ core, call, subject }: Attempt, run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (isMcpError(error)) throw error;
    if (!isToolError(error)) throw core.report(error, { method: call.method, subject });
    const text = error.content.flatMap((block) => block.type === "text" ? block.text : []).join("\n");
    throw new McpError(INTERNAL_ERROR, text || error.message);
  }
}
