/**
 * Reads resources and gets prompts for tools, and converts what they return to the content of a tool.
 */
import { type Content, type Context, isQuestion, type PromptMessage, ToolError, type ToolResult } from "../library.ts";
import { INTERNAL_ERROR, INVALID_PARAMS, isMcpError, quote, toFailedText } from "../core/protocol/errors.ts";
import type { ResourceContents } from "../core/protocol/types.ts";
import { findCall } from "../server/call/find_call.ts";
import { markRelay } from "../server/call/relays.ts";

/**
 * Reads a resource for the caller of a tool. A hidden resource gets the same error as an unknown one.
 *
 * @throws {ToolError} if the resource does not exist for the caller, or cannot be read.
 */
export async function readAsContent(uri: string, ctx: Context): Promise<ToolResult> {
  relay(ctx);
  try {
    const contents = await ctx.readResource(uri);
    if (!contents.length) return { content: [{ type: "text", text: "The resource is empty." }] };
    return { content: contents.map((each) => toBlock(each, contents.length > 1)) };
  } catch (error) {
    throw toOwnError(error, ({ code, data }) => {
      if (code === INVALID_PARAMS && Object(data).uri === uri) return refuseUri(uri);
    });
  }
}

export function refuseUri(uri: string): ToolError {
  return new ToolError(`Cannot read ${quote(uri)}: there is no such resource; use a URI that the server lists`);
}

/**
 * Gets a prompt for the caller of a tool, and names the role before each message.
 *
 * @throws {ToolError} if the prompt refuses the arguments, or does not exist for the caller.
 */
export async function getAsContent(
  name: string,
  args: Readonly<Record<string, string>>,
  ctx: Context,
): Promise<ToolResult> {
  relay(ctx);
  try {
    const { messages } = await ctx.getPrompt(name, args);
    return { content: messages.flatMap(toBlocks) };
  } catch (error) {
    throw toOwnError(error, ({ code, message }) => {
      if (code === INVALID_PARAMS) return new ToolError(message);
    });
  }
}

/** Records that the tool only passes on what its client wants. The context of a unit test belongs to no call. */
function relay(ctx: Context): void {
  const call = findCall(ctx);
  if (call) markRelay(call);
}

interface Failure {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/**
 * Returns the error of the tool for an error of an inner call. Errors that decide about the whole call stay: questions,
 * cancellations, missing scopes and capabilities, and limits.
 */
function toOwnError(error: unknown, explain: (error: Failure) => ToolError | undefined): unknown {
  if (!isMcpError(error) || isQuestion(error)) return error;
  const own = explain(error);
  if (own) return own;
  const { code, data, message } = error;
  if (code !== INTERNAL_ERROR) return error;
  // An error that was reported has an id. Otherwise the handler has thrown a `ToolError`.
  return new ToolError(Object(data).errorId === undefined ? message : toFailedText(error));
}

function toBlock(contents: ResourceContents, isNamed: boolean): Content {
  const { uri, mimeType = "", text, blob } = contents;
  if (text !== undefined) return { type: "text", text: isNamed ? `${uri}\n${text}` : text };
  const [kind] = mimeType.toLowerCase().split("/");
  if (blob !== undefined && (kind === "image" || kind === "audio")) return { type: kind, data: blob, mimeType };
  return { type: "resource", resource: contents };
}

function toBlocks({ role, content }: PromptMessage): readonly Content[] {
  return content.type === "text"
    ? [{ ...content, text: `${role}: ${content.text}` }]
    : [{ type: "text", text: `${role}:` }, content];
}
