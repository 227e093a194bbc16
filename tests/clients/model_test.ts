// The fake model, in each API.
import { assertEquals } from "@std/assert";
import { type Model, startModel } from "./model/model.ts";

interface Api {
  readonly name: string;
  readonly path: string;
  /** Returns a request with the tool `mcp__probe__add`, and with the result of a call, if there is one. */
  readonly toBody: (callId: string | undefined) => object;
}

const schema = { type: "object", properties: {} };
const name = "mcp__probe__add";
const png = "iVBORw0KGgo=";

const apis: readonly Api[] = [
  {
    name: "Anthropic Messages",
    path: "/v1/messages",
    toBody: (id) => ({
      tools: [{ name, description: "Adds", input_schema: schema }],
      messages: [
        { role: "user", content: "Add" },
        ...id === undefined ? [] : [{
          role: "user",
          content: [{
            ...{ type: "tool_result", tool_use_id: id, is_error: true },
            content: [{ type: "text", text: "sum 3" }, { type: "image", source: { type: "base64", data: png } }],
          }],
        }],
      ],
    }),
  },
  {
    name: "OpenAI Responses",
    path: "/v1/responses",
    toBody: (id) => ({
      tools: [{ type: "function", name, description: "Adds", parameters: schema }],
      input: [
        { type: "message", role: "user", content: "Add" },
        ...id === undefined ? [] : [{
          ...{ type: "function_call_output", call_id: id },
          output: [{ type: "input_text", text: "sum 3" }, { type: "input_image", image_url: `data:image/png,${png}` }],
        }],
      ],
    }),
  },
  {
    name: "OpenAI Chat Completions",
    path: "/v1/chat/completions",
    toBody: (id) => ({
      tools: [{ type: "function", function: { name, description: "Adds", parameters: schema } }],
      messages: [
        { role: "user", content: "Add" },
        ...id === undefined ? [] : [
          { role: "tool", tool_call_id: id, content: "sum 3" },
          { role: "user", content: [{ type: "image_url", image_url: { url: `data:image/png,${png}` } }] },
        ],
      ],
    }),
  },
  {
    name: "Gemini",
    path: "/v1beta/models/fake:generateContent",
    toBody: (id) => ({
      tools: [{ functionDeclarations: [{ name, description: "Adds", parametersJsonSchema: schema }] }],
      contents: [
        { role: "user", parts: [{ text: "Add" }] },
        ...id === undefined ? [] : [{
          role: "user",
          parts: [
            { functionResponse: { id, name, response: { output: "sum 3" } } },
            { inlineData: { mimeType: "image/png", data: png } },
          ],
        }],
      ],
    }),
  },
];

async function send(model: Model, { path, toBody }: Api, isStreaming: boolean, callId?: string): Promise<string> {
  const url = model.url + (isStreaming ? path.replace(":generate", ":streamGenerate") : path);
  const response = await fetch(url, {
    method: "POST",
    body: JSON.stringify({ model: "fake", stream: isStreaming, ...toBody(callId) }),
  });
  assertEquals(response.headers.get("content-type")?.startsWith("text/event-stream"), isStreaming);
  return await response.text();
}

for (const api of apis) {
  for (const isStreaming of [false, true]) {
    const way = isStreaming ? "with a stream" : "with a single response";
    Deno.test(`the fake model calls a tool, and records the result, over ${api.name} ${way}`, async () => {
      await using model = await startModel([{ step: "sum", tool: "add", args: { a: 1 } }, {
        step: "gone",
        tool: "no",
      }]);
      const [id] = /call_[\da-f]{20}/.exec(await send(model, api, isStreaming)) ?? [];
      assertEquals(await send(model, api, isStreaming, "another").then((text) => text.includes("call_")), false);
      await send(model, api, isStreaming, id);
      const { seen, missing, isDone } = model.recording;
      const text = seen.get("sum")?.text.trim();
      assertEquals({ text, images: seen.get("sum")?.images, isDone }, { text: "sum 3", images: 1, isDone: true });
      assertEquals(missing, ["gone"]);
    });
  }
}

Deno.test("the fake model loads a tool whose definition the client holds back", async () => {
  await using model = await startModel([{ step: "sum", tool: "add" }]);
  const response = await fetch(`${model.url}/v1/messages`, {
    method: "POST",
    body: JSON.stringify({
      tools: [{ name: "ToolSearch", input_schema: schema }],
      messages: [{ role: "user", content: [{ type: "text", text: `Deferred: ${name}` }] }],
    }),
  });
  const { content: [{ name: called, input }] } = await response.json();
  assertEquals([called, input.query], ["ToolSearch", `select:${name}`]);
});
