// The checks of wire types, compared with the schemas of the official client: a value without a misfit must be valid
// for this client, and a value that the client accepts must have no misfit.
import { isSpecType } from "@modelcontextprotocol/client";
import { fitEntries, fitParams, fitResult, type Members } from "../../src/core/protocol/wire.ts";
import { assert, assertEquals } from "../support/std.ts";
import { random } from "../support/random.ts";

/** Values of each type of JSON, of which each member accepts only some. */
const ODD: readonly unknown[] = [
  null,
  undefined,
  "",
  "text",
  "data:image/png;base64,aGk=",
  "a-_b",
  "aGk=",
  "2026-01-01 10:00:00",
  "2026-02-30T10:00:00Z",
  "2026-01-01T10:00:00+02:00",
  0,
  0.5,
  2,
  -1,
  true,
  [],
  ["user"],
  ["user", 1],
  {},
  { type: "object" },
  { type: "text", text: "x" },
];

const annotations = { audience: ["user"], priority: 1, lastModified: "2025-01-12T15:00:58Z" };
const icons = [{ src: "https://a.test/i.png", mimeType: "image/png", sizes: ["48x48"], theme: "dark" }];
const described = { name: "n", title: "t", description: "d", icons, _meta: { a: 1 } };
const resource = { ...described, uri: "note://1", mimeType: "text/plain", size: 1, annotations };
const blocks = [
  { type: "text", text: "x", annotations, _meta: {} },
  { type: "image", data: "aGk=", mimeType: "image/png" },
  { ...resource, type: "resource_link" },
  { type: "resource", resource: { uri: "a://b", mimeType: "text/plain", text: "x", _meta: {} } },
  { type: "resource", resource: { uri: "a://b", blob: "aGk=" }, annotations },
];
const hints = { title: "t", readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };

/** A value of a type, the check of the library, and the check of the official client. */
type Case = readonly [sample: Members, isFit: (value: Members) => boolean, isOfficial: (value: unknown) => boolean];

const entry = (method: string) => (value: Members) => {
  let isFit = true;
  fitEntries(method, [value], () => isFit = false, { isReceived: true });
  return isFit;
};
const result = (method: string) => (value: Members) => !fitResult(method, value, { isReceived: true }).misfits.length;
const params = (method: string) => (value: Members) => !fitParams(method, value, { isReceived: true }).misfits.length;

const CASES: Readonly<Record<string, Case>> = {
  tool: [
    { ...described, inputSchema: { type: "object" }, outputSchema: { $schema: "s" }, annotations: hints },
    entry("tools/list"),
    isSpecType.Tool,
  ],
  resource: [resource, entry("resources/list"), isSpecType.Resource],
  template: [
    { ...described, uriTemplate: "note://{id}", mimeType: "text/plain", annotations },
    entry("resources/templates/list"),
    isSpecType.ResourceTemplate,
  ],
  prompt: [
    { ...described, arguments: [{ name: "a", description: "d", required: true }] },
    entry("prompts/list"),
    isSpecType.Prompt,
  ],
  "result of a tool": [
    { content: blocks, structuredContent: { a: 1 }, isError: false, _meta: { b: 2 } },
    result("tools/call"),
    isSpecType.CallToolResult,
  ],
  "result of a prompt": [
    { description: "d", messages: blocks.map((content) => ({ role: "user", content })) },
    result("prompts/get"),
    isSpecType.GetPromptResult,
  ],
  contents: [
    { contents: [{ uri: "a://b", mimeType: "text/plain", text: "x" }, { uri: "a://b", blob: "aGk=", _meta: {} }] },
    result("resources/read"),
    isSpecType.ReadResourceResult,
  ],
  completion: [
    { completion: { values: ["a"], total: 1, hasMore: false } },
    result("completion/complete"),
    isSpecType.CompleteResult,
  ],
  handshake: [
    {
      protocolVersion: "2025-11-25",
      capabilities: {},
      serverInfo: { name: "n", version: "1", title: "t", description: "d", websiteUrl: "https://a.test/", icons },
      instructions: "i",
    },
    result("initialize"),
    isSpecType.InitializeResult,
  ],
  progress: [
    { progressToken: 1, progress: 0.5, total: 1, message: "m" },
    params("notifications/progress"),
    (params) => isSpecType.ProgressNotification({ method: "notifications/progress", params }),
  ],
  "sampling request": [
    {
      messages: [
        { role: "user", content: blocks[0] },
        { role: "assistant", content: [{ type: "tool_use", id: "1", name: "n", input: { a: 1 } }] },
        { role: "user", content: [{ type: "tool_result", toolUseId: "1", content: [blocks[0]], isError: false }] },
      ],
      maxTokens: 5,
      systemPrompt: "s",
      temperature: 0.5,
      stopSequences: ["."],
      includeContext: "none",
      metadata: { a: 1 },
      modelPreferences: { hints: [{ name: "n" }], costPriority: 0, speedPriority: 1, intelligencePriority: 0.5 },
      tools: [{ name: "n", inputSchema: { type: "object" } }],
      toolChoice: { mode: "auto" },
    },
    params("sampling/createMessage"),
    (params) => isSpecType.CreateMessageRequest({ method: "sampling/createMessage", params }),
  ],
  "log message": [
    { level: "info", data: "d", logger: "l" },
    params("notifications/message"),
    (params) => isSpecType.LoggingMessageNotification({ method: "notifications/message", params }),
  ],
};

/** Returns the paths to all members of a value. */
function listPaths(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [path];
  const inner = Object.entries(value).flatMap(([name, member]) => listPaths(member, [...path, name]));
  return path.length ? [path, ...inner] : inner;
}

function replace(value: unknown, [name, ...rest]: readonly string[], odd: unknown): unknown {
  if (name === undefined) return odd;
  const copy: Record<string, unknown> = Object.assign(Array.isArray(value) ? [] : {}, value);
  copy[name] = replace(copy[name], rest, odd);
  return copy;
}

/** Members that the official client does not check, or for which it has a default. */
const UNCHECKED = /^content$/;

for (const [name, [sample, isFit, isOfficial]] of Object.entries(CASES)) {
  Deno.test(`the check of a ${name} agrees with the official client about each member`, () => {
    assert(isFit(sample) && isOfficial(sample), "the sample is not valid");
    for (const path of listPaths(sample)) {
      for (const odd of ODD) {
        // Both clients see only JSON.
        const value: Members = JSON.parse(JSON.stringify(replace(sample, path, odd)));
        const place = path.join(".");
        if (UNCHECKED.test(place)) continue;
        assertEquals(isFit(value), isOfficial(value), `${place}: ${JSON.stringify(odd)}`);
      }
    }
  });

  Deno.test(`a ${name} without its misfits is accepted by the official client`, () => {
    const { below, pick } = random(7);
    const paths = listPaths(sample);
    let kept = 0;
    for (let i = 0; i < 500; i++) {
      let value: unknown = sample;
      for (let changes = 1 + below(3); changes > 0; changes--) value = replace(value, pick(paths), pick(ODD));
      const given: Members = JSON.parse(JSON.stringify(value));
      const fitted = isEntry(name) ? fitEntries(`${name}s/list`, [given], () => {})[0] : fit(name, given);
      if (fitted === undefined) continue;
      kept++;
      assert(isOfficial(fitted), `${i}: ${JSON.stringify(given)}`);
    }
    assert(kept > 25, `only ${kept} values were kept`);
  });
}

function isEntry(name: string): boolean {
  return ["tool", "resource", "prompt"].includes(name);
}

function fit(name: string, value: Members): Members | undefined {
  switch (name) {
    case "template":
      return fitEntries("resources/templates/list", [value], () => {})[0];
    case "sampling request":
      return fitParams("sampling/createMessage", value).value;
    case "progress":
      return fitParams("notifications/progress", value).value;
    case "log message":
      return fitParams("notifications/message", value).value;
    default: {
      const { value: left, misfits } = fitResult(METHODS[name], value);
      return misfits.length ? undefined : left;
    }
  }
}

const METHODS: Readonly<Record<string, string>> = {
  "result of a tool": "tools/call",
  "result of a prompt": "prompts/get",
  contents: "resources/read",
  completion: "completion/complete",
  handshake: "initialize",
};
