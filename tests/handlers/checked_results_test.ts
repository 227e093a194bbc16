// Results and errors that handlers return are checked before a client gets them.
import { type Content, createServer, McpError, prompt, tool, ToolError } from "../../mod.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { sentence } from "../support/messages.ts";
import { throwing } from "../support/throwing.ts";
import { testClient, testServer } from "../support/test_server.ts";
import { assertEquals } from "@std/assert";

const text = { type: "text", text: "x" } as const;
const uri = "test://a";

async function run(give: () => unknown) {
  const told: string[] = [];
  const server = testServer({
    handlers: [
      tool({ name: "x", run: () => give() as never }),
      prompt({ name: "x", run: () => give() as never }),
    ],
    observer: { fault: ({ error }) => told.push(String(error)) },
  });
  await using client = await connectTest(server, { era: "modern", transport: "memory" });
  const ask = (method: string) =>
    client.request(method, { name: "x" }).then(() => "sent", (error: McpError) => error.code);
  const answers = [await ask("tools/call"), await ask("prompts/get")];
  await server.close();
  return { told, answers };
}

const wrong: Record<string, readonly [content: unknown, ...names: readonly string[]]> = {
  "an embedded resource without text or blob": [{ type: "resource", resource: { uri } }],
  "an embedded resource whose text is not a string": [{ type: "resource", resource: { uri, text: 1 } }],
  "a priority above 1": [{ ...text, annotations: { priority: 1.1 } }, "1.1"],
  "a priority below 0": [{ ...text, annotations: { priority: -0.1 } }, "-0.1"],
  "a priority that is not a number": [{ ...text, annotations: { priority: "high" } }, '"high"'],
  "a priority that is NaN": [{ ...text, annotations: { priority: NaN } }, "NaN"],
  "an unknown audience": [{ ...text, annotations: { audience: ["user", "admin"] } }, '["user","admin"]'],
  "an audience that is not a list": [{ ...text, annotations: { audience: "user" } }, '"user"'],
};

for (const [name, [content, ...names]] of Object.entries(wrong)) {
  Deno.test(`checked results: ${name} is refused with a remedy`, async () => {
    const places: readonly (readonly [unknown, number])[] = [
      [content, 0],
      [[text, content], 1],
      [{ content: [text, text, content], messages: [{ role: "user", content }] }, 2],
      [{ content: [content], structuredContent: new Map(), messages: [{ role: "user", content }] }, 0],
      [new Set([text, content]), 1],
    ];
    for (const [value, at] of places) {
      const { told, answers } = await run(() => value);
      assertEquals(answers, [-32603, -32603]);
      assertEquals(told, [
        sentence('tool "x"', `content[${at}]`, ...names),
        sentence('prompt "x"', ...names),
      ]);
    }
  });
}

Deno.test("checked results: a valid result is sent", async () => {
  const fine: readonly Content[] = [
    { ...text, annotations: {} },
    { ...text, annotations: { audience: [], priority: 0 } },
    { ...text, annotations: { audience: ["user", "assistant"], priority: 1, lastModified: "2025-01-12T15:00:58Z" } },
    { type: "resource", resource: { uri, text: "" } },
    { type: "resource", resource: { uri, blob: "" }, annotations: { priority: 0.5 } },
  ];
  assertEquals(await run(() => fine), { told: [], answers: ["sent", "sent"] });
});

for (
  const code of [
    1.5,
    NaN,
    Infinity,
    "-32602",
    undefined,
    -32023,
    -32041,
    -32050,
    -32099,
    -32100,
    -32604,
    -32768,
  ]
) {
  Deno.test(`checked results: an McpError with the code ${code} becomes an internal error, and the observer gets the reason`, async () => {
    const { told, answers } = await run(throwing(new McpError(code as number, "x")));
    assertEquals(answers, [-32603, -32603]);
    assertEquals(told.length, 2);
    for (const one of told) assertEquals(one, sentence(String(code), -32768, -32000));
  });
}

for (const code of [0, 1, 4711, -1, -31999, -32769, -32602, -32603, -32002, -32000, -32019, -32042]) {
  Deno.test(`checked results: an McpError with the code ${code} is sent unchanged`, async () => {
    const { told, answers } = await run(throwing(new McpError(code, "x")));
    assertEquals([told, answers], [[], [code, code]]);
  });
}

Deno.test("checked results: the model gets the content blocks of a ToolError", async () => {
  assertEquals(
    (await run(throwing(new ToolError([text])))).answers,
    ["sent", -32603],
  );
});

const fail = tool({
  name: "fail",
  run: (): string => {
    throw new RangeError("the disk /dev/sda1 is full");
  },
});

async function callFailing(mapError?: (error: unknown) => string | ToolError | undefined): Promise<unknown> {
  const options = { name: "t", version: "1", handlers: [fail], observer: { fault() {} } };
  const server = createServer({ ...options, mapError, development: false });
  await using client = await connectTest(server, { era: "modern", transport: "memory" });
  const { content, isError } = await client.callTool("fail");
  await server.close();
  return { content, isError };
}

Deno.test("mapError can give the model a text for a tool's unexpected error", async () => {
  assertEquals(await callFailing((error) => error instanceof RangeError ? "Storage is full; try later." : undefined), {
    content: [{ type: "text", text: "Storage is full; try later." }],
    isError: true,
  });
  const blocks = [{ type: "text" as const, text: "one" }, { type: "text" as const, text: "two" }];
  assertEquals(await callFailing(() => new ToolError(blocks)), { content: blocks, isError: true });
});

Deno.test("if mapError returns undefined, the client does not see the error", async () => {
  for (const mapError of [undefined, () => undefined]) {
    const result = await callFailing(mapError);
    const [id] = /[0-9a-f]{8}/.exec(JSON.stringify(result)) ?? [];
    assertEquals(result, { content: [{ type: "text", text: `${sentence()} (${id})` }], isError: true });
  }
});

Deno.test("an error in mapError is reported only to the observer", async () => {
  const reported: unknown[] = [];
  await using client = await testClient({
    handlers: [fail],
    observer: { fault: ({ error }) => reported.push(error) },
    mapError: throwing(new Error("the mapping is wrong")),
  }, { era: "modern", transport: "memory" });
  const error = await client.callTool("fail").then(() => undefined, (error) => error);
  assertEquals(error?.code, -32603);
  assertEquals(reported.map(String), ["RangeError: the disk /dev/sda1 is full", "Error: the mapping is wrong"]);
});

for (const cacheScope of ["public", "private", undefined] as const) {
  Deno.test(`lists have the cacheScope ${cacheScope ?? "public by default"}`, async () => {
    await using client = await testClient({ handlers: [fail], cacheScope, ttlMs: 500 }, {
      era: "modern",
      transport: "memory",
    });
    const result = await client.request("tools/list");
    assertEquals([result.cacheScope, result.ttlMs], [cacheScope ?? "public", 500]);
  });
}
