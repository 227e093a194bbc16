// The Responses API of OpenAI.
import { type ModelApi, type OfferedTool, type Reply, toEventStream, toList, toSeen } from "./turn.ts";

export const responses: ModelApi = {
  readTurn(path, body) {
    if (!/\/responses$/.test(path)) return;
    const items = toList(body.input);
    return {
      tools: toList(body.tools).flatMap((tool) =>
        tool.type === "namespace"
          ? toList(tool.tools).map((each) => toTool(each, tool.name))
          : tool.type === "function"
          ? [toTool(tool)]
          : []
      ),
      // The description of a namespace contains the instructions of a server.
      text: toSeen([
        body.instructions,
        items.map(({ content }) => content),
        toList(body.tools).filter(({ type }) => type === "namespace").map(({ description }) => description),
      ]).text,
      isStreaming: body.stream === true,
      toSeen(id) {
        const item = items.find(({ type, call_id: callId }) => type === "function_call_output" && callId === id);
        return item && toSeen(item.output);
      },
    };
  },

  toResponse(reply, { isStreaming }, { model }) {
    const item = toItem(reply);
    const usage = {
      ...{ input_tokens: 10, output_tokens: 10, total_tokens: 20 },
      input_tokens_details: { cached_tokens: 0 },
      output_tokens_details: { reasoning_tokens: 0 },
    };
    const head = { id: `resp_${crypto.randomUUID()}`, object: "response", created_at: 1, model, output: [] };
    const response = { ...head, status: "completed", output: [item], usage };
    if (!isStreaming) return Response.json(response);
    return toEventStream([
      { type: "response.created", response: { ...head, status: "in_progress" } },
      { type: "response.output_item.added", output_index: 0, item: { ...item, status: "in_progress" } },
      ...toDeltas(reply, item.id),
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response },
    ].map((data, sequence) => ({ event: data.type, data: { ...data, sequence_number: sequence } })));
  },
};

function toTool(
  { name, description = "", parameters }: Readonly<Record<string, string>>,
  namespace?: string,
): OfferedTool {
  return { name, description, input: parameters, ...namespace !== undefined && { namespace } };
}

function toItem(reply: Reply) {
  const id = crypto.randomUUID();
  if (!("call" in reply)) {
    const content = [{ type: "output_text", text: reply.text, annotations: [] }];
    return { id: `msg_${id}`, type: "message", role: "assistant", status: "completed", content };
  }
  const { id: callId, tool: { name, namespace }, args } = reply.call;
  return {
    ...{ id: `fc_${id}`, type: "function_call", status: "completed", call_id: callId, name },
    ...namespace !== undefined && { namespace },
    arguments: JSON.stringify(args),
  };
}

function toDeltas(reply: Reply, itemId: string): readonly { readonly type: string }[] {
  const place = { item_id: itemId, output_index: 0 };
  if ("call" in reply) {
    const text = JSON.stringify(reply.call.args);
    return [
      { type: "response.function_call_arguments.delta", ...place, ...{ delta: text } },
      { type: "response.function_call_arguments.done", ...place, ...{ arguments: text } },
    ];
  }
  const part = { ...place, content_index: 0 };
  return [
    { type: "response.content_part.added", ...part, ...{ part: { type: "output_text", text: "", annotations: [] } } },
    { type: "response.output_text.delta", ...part, ...{ delta: reply.text } },
    { type: "response.output_text.done", ...part, ...{ text: reply.text } },
    {
      type: "response.content_part.done",
      ...part,
      ...{ part: { type: "output_text", text: reply.text, annotations: [] } },
    },
  ];
}
