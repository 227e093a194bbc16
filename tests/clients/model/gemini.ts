// The `generateContent` and `streamGenerateContent` methods of Gemini's API.
import { type ModelApi, toEventStream, toList, toSeen } from "./turn.ts";

const METHOD = /\/models\/[^/]+:(generateContent|streamGenerateContent)$/;

export const gemini: ModelApi = {
  readTurn(path, body) {
    const [, method] = METHOD.exec(path) ?? [];
    if (!method) return;
    const contents = toList(body.contents);
    return {
      tools: toList(body.tools).flatMap((tool) => toList(tool.functionDeclarations)).map(
        ({ name, description = "", parameters, parametersJsonSchema }) => ({
          ...{ name, description, input: parametersJsonSchema ?? parameters },
        }),
      ),
      text: toSeen([body.systemInstruction, contents]).text,
      isStreaming: method === "streamGenerateContent",
      toSeen(id) {
        const isResult = (part: { functionResponse?: { id?: string } }) => part.functionResponse?.id === id;
        const at = contents.findIndex(({ parts }) => toList(parts).some(isResult));
        return at < 0 ? undefined : toSeen(contents.slice(at));
      },
    };
  },

  toResponse(reply, { isStreaming }) {
    const part = "call" in reply
      ? { functionCall: { id: reply.call.id, name: reply.call.tool.name, args: reply.call.args } }
      : { text: reply.text };
    const response = {
      candidates: [{ index: 0, content: { role: "model", parts: [part] }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 10, totalTokenCount: 20 },
    };
    return isStreaming ? toEventStream([{ data: response }]) : Response.json(response);
  },
};
