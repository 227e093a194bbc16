/**
 * Deviations of real clients from the protocol, and the changes that make results and questions usable for them.
 *
 * A quirk changes only how a message is written. It never changes what a caller may see or do, because the name of a
 * client is a claim of the client that nobody has verified.
 */
import { isObject, type Params, type Result } from "../../core/protocol/jsonrpc.ts";
import type { ClientInfo } from "../call/context.ts";

export interface ClientQuirk {
  /** What the client does, and what the change achieves. */
  readonly reason: string;
  /** The newest version in which the deviation was seen, and the date. Remove a quirk that no used version needs. */
  readonly seen: string;
  /** Changes the result of a tool call in a session. */
  readonly toolResult?: (result: Result) => Result;
  /** Changes the parameters of an elicitation without a session. */
  readonly elicitation?: (params: Params) => Params;
}

/** The deviations, by the `name` in the client's `clientInfo`. */
export const QUIRKS: ReadonlyMap<string, ClientQuirk> = new Map<string, ClientQuirk>([
  ["gemini-cli-mcp-client", {
    reason: "The client parses the first text of a result without structured content as JSON, and takes the value as " +
      "structured content, which must be an object in its revision. A number, a list or `true` makes the whole call " +
      "fail. With an object as structured content, the client does not parse the text.",
    seen: "Gemini CLI 0.61.0, 2026-11-25",
    toolResult: addStructuredContent,
  }],
  ["copilot-cli", {
    reason: "The client requires an elicitation id, which only older revisions define. Without the id, it takes the " +
      "whole result for an unknown result, and the call fails.",
    seen: "Copilot CLI 1.0.102, 2026-11-25",
    elicitation: (params) => params.mode === "url" ? { ...params, elicitationId: crypto.randomUUID() } : params,
  }],
]);

export function findQuirk({ info }: Pick<ClientInfo, "info">): ClientQuirk | undefined {
  return info && QUIRKS.get(info.name);
}

function addStructuredContent(result: Result): Result {
  const { content, structuredContent } = result;
  const [first]: readonly unknown[] = Array.isArray(content) ? content : [];
  if (structuredContent !== undefined || !isObject(first) || typeof first.text !== "string") return result;
  // Parse only text that can be JSON of a value that is not an object.
  if (!/^\s*[-\d["tfn]/.test(first.text)) return result;
  try {
    return { ...result, structuredContent: { result: JSON.parse(first.text) } };
  } catch {
    return result;
  }
}
