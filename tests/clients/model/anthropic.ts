// The Messages API of Anthropic.
import { type ModelApi, type OfferedTool, type Reply, toEventStream, toList, toSeen, type Turn } from "./turn.ts";

export const anthropic: ModelApi = {
  readTurn(path, body) {
    if (!/\/v1\/messages$/.test(path)) return;
    const messages = toList(body.messages);
    const blocks = messages.flatMap(({ content }) => toList(content));
    return {
      tools: toList(body.tools).map(toTool),
      text: toSeen([body.system, messages]).text,
      isStreaming: body.stream === true,
      toSeen(id) {
        const at = blocks.findIndex(({ type, tool_use_id }) => type === "tool_result" && tool_use_id === id);
        if (at < 0) return;
        const { content, is_error: isError = false } = blocks[at];
        return toSeen(content, { isError });
      },
    };
  },

  toResponse(reply, { isStreaming }, { model }) {
    const [block, delta] = toBlock(reply);
    const usage = { input_tokens: 10, output_tokens: 10 };
    const stopReason = "call" in reply ? "tool_use" : "end_turn";
    const message = {
      id: `msg_${crypto.randomUUID()}`,
      type: "message",
      role: "assistant",
      model,
      stop_sequence: null,
    };
    if (!isStreaming) return Response.json({ ...message, content: [block], stop_reason: stopReason, usage });
    const empty = "call" in reply ? { ...block, input: {} } : { ...block, text: "" };
    return toEventStream([
      { type: "message_start", message: { ...message, content: [], stop_reason: null, usage } },
      { type: "content_block_start", index: 0, content_block: empty },
      { type: "content_block_delta", index: 0, delta },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: stopReason, stop_sequence: null }, usage },
      { type: "message_stop" },
    ].map((data) => ({ event: data.type, data })));
  },
};

function toTool({ name, description = "", input_schema: input }: Record<string, string>): OfferedTool {
  return { name, description, input };
}

/** Returns the content block of an answer, and the event that contains the block's content. */
function toBlock(reply: Reply): readonly [object, object] {
  if (!("call" in reply)) return [{ type: "text", text: reply.text }, { type: "text_delta", text: reply.text }];
  const { id, tool: { name }, args } = reply.call;
  return [
    { type: "tool_use", id, name, input: args },
    { type: "input_json_delta", partial_json: JSON.stringify(args) },
  ];
}

export type { Turn };
