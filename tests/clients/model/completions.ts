// The Chat Completions API of OpenAI.
import { type ModelApi, toEventStream, toList, toSeen } from "./turn.ts";

export const completions: ModelApi = {
  readTurn(path, body) {
    if (!/\/chat\/completions$/.test(path)) return;
    const messages = toList(body.messages);
    return {
      tools: toList(body.tools).filter((tool) => tool.function).map((
        { function: { name, description = "", parameters } },
      ) => ({
        ...{ name, description, input: parameters },
      })),
      text: toSeen(messages.map(({ content }) => content)).text,
      isStreaming: body.stream === true,
      toSeen(id) {
        const at = messages.findIndex((message) => message.tool_call_id === id);
        // Some clients send the images of a result in a user message after the result.
        return at < 0 ? undefined : toSeen(messages.slice(at).map(({ content }) => content));
      },
    };
  },

  toResponse(reply, { isStreaming }, { model }) {
    const calls = "call" in reply
      ? [{
        ...{ index: 0, id: reply.call.id, type: "function" },
        function: { name: reply.call.tool.name, arguments: JSON.stringify(reply.call.args) },
      }]
      : undefined;
    const message = {
      role: "assistant",
      ...calls ? { content: null, tool_calls: calls } : { content: "text" in reply ? reply.text : "" },
    };
    const reason = calls ? "tool_calls" : "stop";
    const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
    const head = { id: `chatcmpl-${crypto.randomUUID()}`, created: 1, model };
    if (!isStreaming) {
      const choices = [{ index: 0, message, finish_reason: reason, logprobs: null }];
      return Response.json({ ...head, object: "chat.completion", choices, usage });
    }
    const chunk = { ...head, object: "chat.completion.chunk" };
    return toEventStream([
      { data: { ...chunk, choices: [{ index: 0, delta: message, finish_reason: null }] } },
      { data: { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: reason }] } },
      { data: { ...chunk, choices: [], usage } },
      { data: "[DONE]" },
    ]);
  },
};
