// Turns a conversation into the evidence from which behaviours are derived.
import type { Evidence } from "./behaviours.ts";
import { findSearchTool, findTool, type Recording } from "./model/model.ts";
import type { OfferedTool } from "./model/turn.ts";
import type { WireFacts } from "./wire.ts";

/** Returns the evidence of a conversation with the fake model. */
export function toEvidence({ turns, seen, called }: Recording, wire: WireFacts): Evidence {
  // A client offers more tools after the model has loaded them, or after the list has changed.
  const tools = new Map<string, OfferedTool>();
  for (const { tools: offered } of turns) for (const tool of offered) tools.set(tool.name, tool);
  return {
    ...{ wire, seen, called },
    tools: [...tools.values()],
    isDeferred: turns.length > 0 && !findTool(turns[0].tools, "add") && Boolean(findSearchTool(turns[0].tools)),
    text: turns.map(({ text }) => text).join("\n"),
  };
}
