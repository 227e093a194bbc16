// Memory for bodies that arrive in unusual ways, such as one byte at a time.
import { assert, assertEquals, assertLess, assertStringIncludes } from "@std/assert";
import { readAnswer, readReply, toRequest } from "../support/requests.ts";
import { tool } from "../../mod.ts";
import { serve } from "../peers/runtime.ts";
import { any, as, start, toCall, toLegacy, toSlowCall } from "./attack.ts";
import { connectRaw } from "./raw.ts";
import { until } from "../support/behaviour.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { openPipe } from "../../src/server/transports/channel.ts";
import { openServer } from "../support/servers.ts";
import { adaptInput } from "../../src/core/schema/adapt_input.ts";
import { BOUNDS } from "../support/limits.ts";
import { encode } from "../../src/server/handlers/encoders.ts";

import { startCost } from "../support/cost.ts";
import { sentence } from "../support/messages.ts";

const { process } = globalThis as unknown as { process: { memoryUsage(): { external: number } } };

Deno.test({
  name: "the buffers of large bodies that are cut off are freed without a garbage collection",
  ignore: typeof Deno === "undefined", // Bun counts freed buffers until the next garbage collection
  async fn() {
    const held = await measureUnfinished();
    assert(held < FEW, `unfinished bodies of 4 MB, one after the other, hold up to ${held}`);
  },
});

const FEW = 4 * 1024 * 1024;

/** Returns the largest growth of the process's buffers while the server reads 20 bodies. */
async function measureUnfinished(): Promise<number> {
  await using server = start({ handlers: [] });
  const piece = new Uint8Array(100_000);
  const before = process.memoryUsage().external;
  let most = 0;
  for (let i = 0; i < 20; i++) {
    let pieces = 0;
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>) =>
      ++pieces < 40 ? controller.enqueue(piece) : controller.error(new Error("disconnected"));
    const { url, headers } = toCall("any");
    const streamed = { method: "POST", headers, body: new ReadableStream({ pull }), duplex: "half" };
    const response = await server.fetch(new Request(url, streamed));
    assertEquals(response.status, 400);
    await response.text();
    most = Math.max(most, process.memoryUsage().external - before);
  }
  return most;
}

Deno.test("the buffer of a large body is detached once the body has been decoded", async () => {
  const decoded: ArrayBuffer[] = [];
  const { decode } = TextDecoder.prototype;
  TextDecoder.prototype.decode = function (input, options) {
    if (input instanceof ArrayBuffer && input.byteLength > 1_000_000) decoded.push(input);
    return decode.call(this, input, options);
  };
  try {
    await using server = start({ handlers: [tool({ name: "size", input: any, run: ({ v }) => `${v}`.length })] });
    for (const v of ["x", "é"]) {
      const response = await server.fetch(toCall("size", { v: v.repeat(1_500_000) }));
      assertEquals((await readAnswer(response)).result.structuredContent ?? 1_500_000, 1_500_000);
    }
    const rejected = await server.fetch(toLegacy(" ".repeat(1_500_000)));
    assertEquals(rejected.status, 400, "a string is not a valid message");
    await rejected.text();
    await until(() => decoded.every(({ byteLength }) => byteLength === 0), "the buffers to be detached");
    assertEquals(decoded.map((buffer) => buffer.byteLength), [0, 0, 0]);
  } finally {
    TextDecoder.prototype.decode = decode;
  }
});

Deno.test("a body in one-byte chunks uses memory in proportion to its length", async () => {
  // Use the smallest of several measurements, because other tests in the process allocate memory too.
  let least = Infinity;
  for (let i = 0; i < 5 && least >= MOST; i++) least = Math.min(least, await measure());
  assert(least < MOST, `3,000 bytes hold ${least}`);
});

const MOST = 32 * 1024 * 1024;

async function measure(): Promise<number> {
  await using server = start({ handlers: [tool({ name: "quick", input: any, run: () => "" })] });
  await using port = serve(server);
  const connection = await connectRaw(Number(port.host.split(":")[1]));
  const before = process.memoryUsage().external;
  await connection.write(
    `POST /mcp HTTP/1.1\r\nHost: ${port.host}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
  );
  for (let i = 0; i < 30; i++) await connection.write("1\r\n \r\n".repeat(100));
  // Wait for a fixed time, because a test cannot detect when all sent bytes have arrived.
  // Fixed wait: the memory of bytes on their way to a server cannot be observed as a state.
  await new Promise((resolve) => setTimeout(resolve, 500));
  const held = process.memoryUsage().external - before;
  connection.close();
  return held;
}

// Bodies that do not declare their length.

const handlers = [tool({ name: "quick", run: () => "" })];

Deno.test("a body without a declared length is charged from its first byte, and a slow body also for the runtime's buffer", async () => {
  await using server = start({ handlers });
  const { memory } = server[INTERNALS].engine.accounts;
  const { request, write, abort } = toSlowCall("quick");
  const answer = server.fetch(request, as("eve"));
  write(1);
  await until(() => memory.used > 0, "it is charged");
  assert(memory.used <= 1024, `${memory.used} bytes are charged for one byte`);
  await until(() => memory.used >= 196_608, "it is slow");
  write(2000);
  await until(() => memory.used >= 196_608 + 2001, "its buffer grows");
  abort();
  await (await answer).text();
  assertEquals(memory.used, 0);
});

Deno.test("thousands of one-byte bodies do not use more memory than the client's limit", async () => {
  await using server = start({ handlers, limits: { memory: { bytes: 4_000_000, bytesPerClient: 1_000_000 } } });
  const { accounts } = server[INTERNALS].engine;
  const slow = Array.from({ length: 2000 }, () => toSlowCall("quick"));
  const statuses: number[] = [];
  const answers = slow.map(async ({ request, write }) => {
    const answer = server.fetch(request, as("eve"));
    write(1);
    const response = await answer;
    statuses.push(response.status);
    await response.text();
  });
  await until(() => statuses.length >= 1990, "most are refused");
  assert(accounts.memory.used <= 1_000_000, `${accounts.memory.used}`);
  assertEquals(new Set(statuses), new Set([503]));
  const ada = await server.fetch(toCall("quick"), as("ada"));
  assertEquals(ada.status, 200, await ada.text());
  for (const { abort } of slow) abort();
  await Promise.all(answers);
});

// Duplicate keys in a message: the last key counts, and every check uses the same value as the handler.

const meta =
  '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}';

function makeServer() {
  const ran: string[] = [];
  const make = (name: string) =>
    tool({ name, scopes: name === "admin" ? ["admin"] : [], run: () => void ran.push(name) });
  const server = openServer({ handlers: [make("free"), make("other"), make("admin")] });
  return { server, ran };
}

/** Messages with a duplicate key, each with the tool that its last key selects. */
const MESSAGES: readonly (readonly [text: string, tool: string])[] = [
  [`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"free","name":"other",${meta}}}`, "other"],
  [`{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{"name":"other",${meta}}}`, "other"],
  [
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"free",${meta}},"params":{"name":"other",${meta}}}`,
    "other",
  ],
  [`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"free","n\\u0061me":"other",${meta}}}`, "other"],
];

function toDuplicate(body: string, name: string): Request {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": name,
  };
  return new Request("http://localhost/mcp", { method: "POST", headers, body });
}

Deno.test("HTTP: the headers must match the last key, which selects the tool", async () => {
  const { server, ran } = makeServer();
  for (const [body, name] of MESSAGES) {
    assertEquals((await server.fetch(toDuplicate(body, name))).status, 200, body);
    assertEquals(ran.splice(0), [name], body);
    const first = await server.fetch(toDuplicate(body, "free"));
    assertEquals([first.status, (await readReply(first)).error.code], [400, -32020], body);
    assertEquals(ran, []);
  }
});

Deno.test("HTTP: the scopes of the tool with the last name are required", async () => {
  const { server, ran } = makeServer();
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"free","name":"admin",${meta}}}`;
  assertEquals((await server.fetch(toDuplicate(body, "admin"))).status, 403);
  assertEquals((await server.fetch(toDuplicate(body, "free"))).status, 400);
  assertEquals(ran, []);
});

Deno.test("over a channel, the last key selects the tool, and the response has the last id", async () => {
  const { server, ran } = makeServer();
  const written: string[] = [];
  const pipe = openPipe(server, { write: (text) => void written.push(text) });
  for (const [body, name] of MESSAGES) {
    await pipe.receive(body.replace('"id":1', '"id":1,"id":2'));
    await pipe.idle();
    assertEquals(ran.splice(0), [name], body);
    assertStringIncludes(written.splice(0).join(), '"id":2');
  }
  pipe.close();
});

// JSON text in arguments, and in the HTTP responses that handlers return. Parsing the text must not cost more than
// parsing the message that contains the text.

const object = { type: "object" } as const;
const escaped = '{"\\u0039\\u0039\\u0039":1},';

function adapt(given: Record<string, unknown>, property: Record<string, unknown>): unknown {
  const adapted = adaptInput(given, { type: "object", properties: { x: property } }, { jsonText: BOUNDS.request });
  return adapted.problem === undefined ? adapted.value : adapted;
}

function time(run: () => unknown): number {
  const cost = startCost();
  run();
  return cost();
}

async function encodeJson(text: string) {
  return await encode(new Response(text, { headers: { "content-type": "application/json" } }), {
    signal: new AbortController().signal,
    maxBytes: BOUNDS.calls.resultBytes,
    readMs: 60_000,
    startTimer: () => () => {},
  });
}

Deno.test("an argument that consists of escaped quotes does not block the server", () => {
  for (const text of ['"' + '\\"'.repeat(100_000), '"'.repeat(100_000), "[".repeat(1_000_000), "\\".repeat(100_001)]) {
    assertLess(time(() => assertEquals(adapt({ x: text }, object), { x: text })), 500, text.slice(0, 5));
  }
});

Deno.test("a long JSON text is parsed only once, however many alternatives its schema has", () => {
  const anyOf = Array.from({ length: 200 }, (_, i) => ({
    type: "object",
    properties: { list: { type: "array" }, kind: { const: i } },
  }));
  const list = JSON.stringify(["x".repeat(500_000)]);
  const x = { list, kind: 199 };
  assertLess(time(() => assertEquals(adapt({ x }, { anyOf }), { x: { ...x, list: JSON.parse(list) } })), 500);
});

Deno.test("two properties with the same text do not share the parsed value", () => {
  const text = JSON.stringify(Array(1000).fill(1));
  const array = { type: "array", items: { type: "array" } };
  const { x }: { readonly x?: unknown } = Object(adapt({ x: [text, text] }, array));
  const [a, b]: readonly unknown[] = Array.isArray(x) ? x : [];
  assertEquals(a, JSON.parse(text));
  assertEquals(a === b, false);
});

Deno.test("the number of values in all JSON texts of a call is limited like the number of values in a message", () => {
  const text = `[${"0,".repeat(90_000)}0]`;
  const { x }: { readonly x?: unknown } = Object(adapt({ x: [text, text, text] }, { items: { type: "array" } }));
  assertEquals(Array.isArray(x) && x.map((item) => typeof item), ["object", "object", "string"]);
});

Deno.test("the number of integer keys in JSON text is limited, because engines can allocate a lot of memory for them", () => {
  for (const part of ['{"999":1},', escaped]) {
    const text = `[${part.repeat(90_000)}0]`;
    assertEquals(adapt({ x: text }, { type: "array" }), { x: text });
    const few = `[${part.repeat(50)}0]`;
    assertEquals(adapt({ x: few }, { type: "array" }), { x: JSON.parse(few) });
  }
});

Deno.test("a response that consists of brackets does not block the server", async () => {
  const cost = startCost();
  const { lost } = await encodeJson("[".repeat(4_000_000));
  assertLess(cost(), 250);
  assertEquals(lost, sentence("128"));
});

Deno.test("a response with too many integer keys is not parsed", async () => {
  for (const part of ['{"999":1},', escaped]) {
    const text = `[${part.repeat(90_000)}0]`;
    const { value } = await encodeJson(text);
    assertEquals(value === text, true);
  }
  const list = Array.from({ length: 20_000 }, (_, i) => String(i % 1000));
  assertEquals((await encodeJson(JSON.stringify(list))).value, list);
});

Deno.test("a long key is counted once, however many media blocks its value contains", async () => {
  const many = tool({
    name: "many",
    run: () => ({ ["k".repeat(500_000)]: Array.from({ length: 5000 }, () => new Uint8Array(1)) }),
  });
  const server = openServer({ handlers: [many] });
  const cost = startCost();
  const text = await (await server.fetch(toRequest("tools/call", { name: "many", arguments: {} }))).text();
  assertLess(cost(), 2000);
  assertEquals(text.includes('"blob"'), true);
});
