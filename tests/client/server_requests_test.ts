// The client's capabilities and answers. The client validates answers before sending them, without running patterns
// from the server.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { type AnswerOptions, toCapabilities } from "../../src/client/answer_options.ts";
import { createRequestHandler } from "../../src/client/server_requests.ts";
import { connect, type ConnectOptions, McpError } from "../../src/client/client.ts";
import { findFormMisfit } from "../../src/core/schema/form_answer.ts";
import { createServer, tool } from "../../mod.ts";
import { discovered, type FakeHttp, fakeHttp, type Heard, ok } from "./fakes.ts";
import { sentence } from "../support/messages.ts";

const url = "http://server.example/mcp";

/** Creates a modern server that responds to every method except `server/discover` with the result of `answer`. */
function modern(answer: (heard: Heard) => Response): FakeHttp {
  return fakeHttp((heard) => heard.method === "server/discover" ? discovered(heard) : answer(heard));
}

// A pattern with exponential backtracking.
const EVIL = "^(([a-z])+.)+[A-Z]([a-z])+$";
const long = "a".repeat(60);

const text = { type: "string" };
for (
  const [field, value, verdict, ...names] of [
    [text, "x", "valid"],
    [text, 1, "invalid"],
    [text, null, "invalid"],
    [{ ...text, minLength: 2 }, "a", "invalid", 2],
    [{ ...text, maxLength: 1 }, "ab", "invalid", 1],
    [{ ...text, maxLength: 1 }, "😀", "valid"],
    [{ ...text, enum: ["a", "b"] }, "c", "invalid"],
    [{ ...text, enum: ["a", "b"] }, "b", "valid"],
    [{ ...text, const: "a" }, "b", "invalid"],
    [{ ...text, oneOf: [{ const: "a", title: "A" }] }, "A", "invalid"],
    [{ ...text, anyOf: [{ const: "a", title: "A" }] }, "a", "valid"],
    [{ ...text, format: "email" }, "a@b", "valid"],
    [{ ...text, format: "email" }, "ab", "invalid", "email"],
    [{ ...text, format: "uri" }, "no", "invalid", "uri"],
    [{ ...text, format: "date" }, "2026-02-31x", "invalid", "date"],
    [{ ...text, format: "date-time" }, "2026-02-01", "invalid", "date-time"],
    [{ ...text, format: "other" }, "x", "valid"],
    [{ ...text, pattern: EVIL }, long, "valid"],
    [{ ...text, allOf: [{ pattern: EVIL }] }, long, "valid"],
    [{ type: "integer" }, 1.5, "invalid", "integer"],
    [{ type: "integer" }, "1", "invalid"],
    [{ type: "number", minimum: 18 }, 17, "invalid", 18],
    [{ type: "number", maximum: 18 }, 19, "invalid", 18],
    [{ type: "number" }, NaN, "invalid"],
    [{ type: "boolean" }, "true", "invalid"],
    [{ type: "array", items: { enum: ["a"] } }, ["a"], "valid"],
    [{ type: "array", items: { enum: ["a"] } }, ["b"], "invalid"],
    [{ type: "array", items: { anyOf: [{ const: "a" }] } }, ["b"], "invalid"],
    [{ type: "array", minItems: 2 }, ["a"], "invalid", 2],
    [{ type: "array", maxItems: 1 }, ["a", "b"], "invalid", 1],
    [{ type: "array" }, [1], "invalid"],
    [{ type: "array", items: { pattern: EVIL } }, [long], "valid"],
    [{}, { a: 1 }, "invalid"],
    [{ type: "object" }, ["a"], "valid"],
  ] as const
) {
  Deno.test(`the form value ${JSON.stringify(value)} is checked against ${JSON.stringify(field)}: ${verdict}`, async () => {
    const schema = { type: "object", properties: { f: field } };
    assertEquals(findFormMisfit(schema, { f: value }), verdict === "valid" ? undefined : sentence("f: ", ...names));
    // Check the same value with a request handler of the client.
    const answer = createRequestHandler({
      onElicit: () => ({ action: "accept", content: { f: Object(value) && value } as never }),
    });
    const ask = async () =>
      await answer(
        { method: "elicitation/create", params: { message: "?", requestedSchema: schema } },
        new AbortController().signal,
      );
    if (verdict === "valid") assertEquals(await ask(), { action: "accept", content: { f: value } });
    else await assertRejects(ask, TypeError, sentence("f: ", "onElicit", ...names));
  });
}

Deno.test("an accepted form must have its required fields and no unknown fields, and a declined form needs no content", async () => {
  const schema = { properties: { a: text, b: { ...text, default: "b" } }, required: ["a", "b"] };
  assertEquals(findFormMisfit(schema, { b: "x" }), sentence("a: "));
  assertEquals(findFormMisfit(schema, { a: "x", b: "x", c: 1 }), undefined);
  assertEquals(
    findFormMisfit({ ...schema, additionalProperties: false }, { a: "x", b: "x", c: 1 }),
    sentence("c: "),
  );
  assertEquals(findFormMisfit({ properties: {}, required: ["toString"] }, {}), sentence("toString: "));
  const params = { message: "?", requestedSchema: schema };
  const ask = async (result: unknown) =>
    await createRequestHandler({ onElicit: () => result as never })(
      { method: "elicitation/create", params },
      new AbortController().signal,
    );
  assertEquals(await ask({ action: "accept", content: { a: "x" } }), { action: "accept", content: { a: "x", b: "b" } });
  assertEquals(await ask({ action: "accept", content: { a: "x", b: undefined, c: undefined } }), {
    action: "accept",
    content: { a: "x", b: "b" },
  });
  await assertRejects(
    () => ask({ action: "accept", content: { a: undefined } }),
    TypeError,
    sentence("a: ", "onElicit"),
  );
  assertEquals(await ask({ action: "decline" }), { action: "decline" });
  await assertRejects(() => ask({ action: "yes" }), TypeError, sentence("yes", "accept", "decline", "cancel"));
  await assertRejects(() => ask({ action: "accept" }), TypeError, sentence("a: ", "onElicit"));
});

Deno.test("the fields of a form can have any names", async () => {
  const answers: AnswerOptions = {
    onElicit: ({ message }) =>
      message === "a" ? { action: "accept", content: { a: "x" } } : { action: "accept", content: { b: 1 } },
  };
  const answer = createRequestHandler(answers);
  const params = { message: "b", requestedSchema: { properties: {} } };
  const result = await answer({ method: "elicitation/create", params }, new AbortController().signal);
  assertEquals(result, { action: "accept", content: { b: 1 } });
});

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`the client does not send an invalid answer to a ${era} server`, async () => {
    let answered = 0;
    const ask = tool({
      name: "ask",
      async run(_, ctx) {
        const schema = { type: "object", properties: { age: { type: "integer" } }, required: ["age"] };
        await ctx.elicit("age", { message: "Age?", schema });
        answered++;
        return "done";
      },
    });
    await using server = createServer({ name: "s", version: "1.0.0", handlers: [ask] });
    const warnings: string[] = [];
    const onElicit = () => ({ action: "accept" as const, content: { age: "old" } });
    await using client = await connect(server, { era, onElicit, onWarning: (warning) => warnings.push(warning) });
    if (era === "modern") await assertRejects(() => client.callTool("ask"), TypeError, sentence("age: ", "onElicit"));
    else {
      await assertRejects(() => client.callTool("ask"));
      assertEquals(warnings, [sentence("age: ", "onElicit")]);
    }
    assertEquals(answered, 0);
  });
}

Deno.test("the client declares its sampling features, and refuses requests that need other features", async () => {
  const onSample = () => ({ role: "assistant", content: { type: "text", text: "" }, model: "m" }) as const;
  assertEquals(toCapabilities({ onSample }), { sampling: {} });
  assertEquals(toCapabilities({ onSample, sampling: { tools: true, context: true } }), {
    sampling: { tools: {}, context: {} },
  });
  assertEquals(toCapabilities({ sampling: { tools: true } }), {});
  const ask = async (options: Parameters<typeof createRequestHandler>[0], params: object) =>
    await createRequestHandler(options)(
      { method: "sampling/createMessage", params: { messages: [], ...params } },
      new AbortController().signal,
    );
  for (const params of [{ tools: [] }, { toolChoice: { mode: "auto" } }]) {
    const error = await assertRejects(() => ask({ onSample }, params), McpError, sentence("sampling.tools"));
    assertEquals(error.code, -32602);
    assertEquals(await ask({ onSample, sampling: { tools: true } }, params), onSample());
    assertEquals(await ask({ onSample, capabilities: { sampling: { tools: {} } } }, params), onSample());
  }
  assertEquals(await ask({ onSample }, {}), onSample());
});

Deno.test("the result of onSample is checked before it is sent", async () => {
  const text = { type: "text", text: "Hi" } as const;
  const use = { type: "tool_use", id: "1", name: "t", input: {} } as const;
  const ask = async (result: unknown, params: object = {}) =>
    await createRequestHandler({ onSample: () => Object(result), sampling: { tools: true } })(
      { method: "sampling/createMessage", params: { messages: [], ...params } },
      new AbortController().signal,
    );
  for (
    const [result, field] of [
      [undefined, "role"],
      [{ role: "system", content: text, model: "m" }, "role"],
      [{ role: "assistant", content: text }, "model"],
      [{ role: "assistant", content: "Hi", model: "m" }, "content"],
      [{ role: "assistant", model: "m" }, "content"],
      [{ role: "assistant", content: [text, use], model: "m" }, "content"],
      [{ role: "assistant", content: [text, null], model: "m" }, "content"],
    ] as const
  ) await assertRejects(() => ask(result), TypeError, sentence(field, "onSample"));
  const fine = { role: "assistant", content: [text, use], model: "m" };
  assertEquals(await ask(fine, { tools: [] }), fine);
});

Deno.test("a root must be a file:// URI", async () => {
  const roots = ["https://example.com/", "/home/me", "file:/home/me", ""].map((uri) => [{ uri }]);
  for (const wrong of roots) {
    assertThrows(() => createRequestHandler({ roots: wrong }), TypeError, sentence(wrong[0].uri, "file://"));
    const ask = async () =>
      await createRequestHandler({ roots: () => wrong })(
        { method: "roots/list", params: {} },
        new AbortController().signal,
      );
    await assertRejects(ask, TypeError, sentence(wrong[0].uri, "file://"));
  }
  const fine = [{ uri: "file:///home/me", name: "me" }, { uri: "FILE:///C:/x" }];
  assertEquals(
    await createRequestHandler({ roots: fine })({ method: "roots/list", params: {} }, new AbortController().signal),
    {
      roots: fine,
    },
  );
  await assertRejects(
    () => connect("http://x.example/", { roots: [{ uri: "x" }] }),
    TypeError,
    sentence("x", "file://"),
  );
});

Deno.test("a failure of the client's answer is an Error, not an McpError from the server", async () => {
  const asking = modern((heard) =>
    ok(heard, { resultType: "input_required", inputRequests: { q: { method: "roots/list" } } })
  );
  await using client = await connect(url, { fetch: asking.fetch });
  for (const call of [() => client.callTool("t"), () => client.listTools()]) {
    const error = await assertRejects(call, Error, sentence("roots/list"));
    assert(!(error instanceof McpError));
    assert(error.cause instanceof McpError);
  }
});

Deno.test("a result with a resultType of an extension is accepted only if the client has declared the extension", async () => {
  const call = async (resultType: unknown, extensions?: object) => {
    const server = modern((heard) => ok(heard, { resultType, content: [] }));
    const options: ConnectOptions = {
      fetch: server.fetch,
      ...extensions && { capabilities: { extensions: { ...extensions } } },
    };
    await using client = await connect(url, options);
    return (await client.callTool("t")).resultType;
  };
  const tasks = { "io.modelcontextprotocol/tasks": {} };
  assertEquals(await call("task", tasks), "task");
  assertEquals(await call("other", { "com.example/x": {} }), "other");
  for (
    const [resultType, extensions] of [
      ["task"],
      ["task", {}],
      ["task", { "com.example/x": {} }],
      ["task", { "io.modelcontextprotocol/ui": {} }],
      ["other", tasks],
      ["other"],
      ["toString", tasks],
      [7, { "com.example/x": {} }],
      [null, { "com.example/x": {} }],
    ] as const
  ) {
    await assertRejects(() => call(resultType, extensions), Error, sentence(String(resultType)));
  }
});

Deno.test("a cursor can repeat, and can be any text", async () => {
  const cursors = ["same", "same", "", "same"];
  const server = modern((heard) => {
    const nextCursor = cursors.shift();
    return ok(heard, {
      tools: [{ name: `t${cursors.length}`, inputSchema: { type: "object" } }],
      ...nextCursor !== undefined && { nextCursor },
    });
  });
  await using client = await connect(url, { fetch: server.fetch });
  assertEquals((await client.listTools()).length, 5);
  assertEquals(server.heard.slice(1).map(({ params }) => params?.cursor), [undefined, "same", "same", "", "same"]);
});

Deno.test("the client detects the era of an origin once, and again after the era has changed", async () => {
  let isLegacy = true;
  const heard: unknown[] = [];
  const server = fakeHttp((message) => {
    heard.push(message.method);
    if (message.id === undefined) return;
    const info = { serverInfo: { name: "s", version: "1" }, capabilities: {} };
    if (message.method === "initialize" && isLegacy) return ok(message, { protocolVersion: "2025-06-18", ...info });
    if (message.method === "server/discover" && !isLegacy) {
      return ok(message, { resultType: "complete", supportedVersions: ["2026-07-28"], ...info });
    }
    return new Response(JSON.stringify({ jsonrpc: "2.0", id: message.id, error: { code: -32601, message: "no" } }), {
      status: 404,
      headers: { "content-type": "application/json" },
    });
  });
  const meet = async (path: string) => {
    heard.length = 0;
    await using client = await connect(`http://era.example${path}`, { fetch: server.fetch });
    return [client.server.era, ...heard.filter((method) => /initialize$|discover/.test(String(method)))];
  };
  assertEquals(await meet("/a"), ["legacy", "server/discover", "initialize"]);
  assertEquals(await meet("/b"), ["legacy", "initialize"]);
  isLegacy = false;
  assertEquals((await meet("/a"))[0], "modern");
  assertEquals(await meet("/a"), ["modern", "server/discover"]);
});
