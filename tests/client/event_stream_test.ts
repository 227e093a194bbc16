// Parsing event streams: chunks that end anywhere, all kinds of line breaks, and endless streams.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { readText } from "../../src/client/response_text.ts";
import { readEvents, type StreamEvent } from "../../src/core/kit/event_stream.ts";
import { type Message, readMessages } from "../../src/client/message.ts";
import { sentence } from "../support/messages.ts";
import { connect } from "../../src/client/client.ts";
import { until } from "../support/behaviour.ts";
import { agreed, discovered, fakeHttp, type Heard, ok, stream, url } from "./fakes.ts";

const encoder = new TextEncoder();

function toResponse(chunks: Iterable<string | Uint8Array<ArrayBuffer>>): Response {
  const iterator = chunks[Symbol.iterator]();
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      const { done, value } = iterator.next();
      if (done) return controller.close();
      controller.enqueue(typeof value === "string" ? encoder.encode(value) : value);
    },
  });
  return new Response(body);
}

async function readAll(chunks: Iterable<string | Uint8Array<ArrayBuffer>>): Promise<StreamEvent[]> {
  return await Array.fromAsync(readEvents(toResponse(chunks)));
}

/** Removes the fields whose value is `undefined` from each event. */
function toPlain(events: readonly StreamEvent[]): unknown[] {
  return events.map((event) => Object.fromEntries(Object.entries(event).filter(([, value]) => value !== undefined)));
}

const source = [
  "\uFEFFdata: one\n\n",
  ": a comment\n\n",
  "event: endpoint\r\ndata: /messages\r\n\r\n",
  "id: 7\rretry: 250\rdata:\r\r",
  "data: two\ndata:  lines\ndata\n\n",
  'id\nfoo: bar\nretry: soon\ndata:{"a":"ünïcödé\u2028世界"}\n\n',
  "data: cut off",
].join("");

const expected = [
  { data: "one" },
  { type: "endpoint", data: "/messages" },
  { id: "7", retry: 250 },
  { data: "two\n lines\n" },
  { id: "", data: '{"a":"ünïcödé\u2028世界"}' },
];

Deno.test("events are read with every kind of line break, and an incomplete event is dropped", async () => {
  assertEquals(toPlain(await readAll([source])), expected);
});

Deno.test("events are read completely wherever the stream is split into chunks", async () => {
  const bytes = encoder.encode(source);
  for (let at = 1; at < bytes.length; at++) {
    assertEquals(toPlain(await readAll([bytes.slice(0, at), bytes.slice(at)])), expected, `split at ${at}`);
  }
  assertEquals(toPlain(await readAll([...bytes].map((byte) => Uint8Array.of(byte)))), expected);
});

/** Reads a stream, and counts the characters that the parser searches for line breaks. */
async function countSearched(chunks: Iterable<string>): Promise<{ events: StreamEvent[]; searched: number }> {
  const { split } = String.prototype;
  let searched = 0;
  String.prototype.split = function (this: string, ...args: [never, number?]) {
    searched += this.length;
    return split.apply(this, args);
  };
  try {
    const events = await readAll(chunks);
    return { events, searched };
  } finally {
    String.prototype.split = split;
  }
}

Deno.test("the parser takes linear time for a long event in many chunks", async () => {
  const pieces = 2000;
  const { events: [event], searched } = await countSearched([
    "data: ",
    ...Array(pieces).fill("x".repeat(1000)),
    "\n\n",
  ]);
  assertEquals(event.data?.length, 1000 * pieces);
  // The parser searches each character once. If it searched all earlier chunks again for each chunk, the time would be
  // quadratic. The test counts characters, because times depend on the machine.
  assert(searched >= 1000 * pieces && searched < 1100 * pieces, `${searched} characters were searched`);
});

Deno.test("the size of a response or an event is limited, so an endless response does not fill the memory", async () => {
  const megabyte = new Uint8Array(1024 * 1024).fill(120);
  function* endless() {
    while (true) yield megabyte;
  }
  await assertRejects(() => readAll(endless()), RangeError, sentence(67108864));
  await assertRejects(() => readText(toResponse(endless())), RangeError, sentence(67108864));
});

Deno.test("aborting ends a stream that is idle", async () => {
  const stop = new AbortController();
  let isCancelled = false;
  const body = new ReadableStream({ cancel: () => void (isCancelled = true) });
  const reading = Array.fromAsync(readEvents(new Response(body), stop.signal));
  stop.abort(new Error("enough"));
  await assertRejects(() => reading, Error, "enough");
  assertEquals(isCancelled, true);
});

Deno.test("parsing returns JSON-RPC messages, and refuses other JSON", () => {
  const good: readonly Message[] = [
    { id: 1, result: {} },
    { id: 1, result: null },
    { id: null, error: { code: 1, message: "m" } },
    { error: { code: 1, message: "m", data: 1 } },
    { id: 1, method: "m" },
    { method: "m", params: {} },
  ].map((message) => ({ jsonrpc: "2.0" as const, ...message }));
  const bad = [
    ...["", "{", "null", "1", '"a"', "[1]", "{}"],
    ...[
      { id: 1 },
      { id: 1, result: {}, error: { code: 1, message: "m" } },
      { id: 1, error: {} },
      { id: 1, error: null },
      { id: 1, error: { code: "1", message: "m" } },
      { id: 1, error: { code: 1 } },
      { method: 1 },
      { method: "m", params: [] },
      { method: "m", params: "p" },
    ].map((message) => JSON.stringify({ jsonrpc: "2.0", ...message })),
    JSON.stringify({ jsonrpc: "1.0", id: 1, result: {} }),
  ];
  for (const message of good) assertEquals(readMessages(JSON.stringify(message)), [message]);
  assertEquals(readMessages(JSON.stringify(good)), good);
  for (const text of bad) assertThrows(() => readMessages(text), Error, sentence());
});

// Events of other types than `message`, which servers and proxies send to keep a stream open.

/** Events without a message, as servers, proxies and libraries send them. */
const OTHERS = [
  "event: ping\ndata: 2026-01-01T00:00:00Z\n\n",
  "event: ping\ndata: {}\n\n",
  'event: heartbeat\nid: 1\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n',
  "event: keep-alive\ndata: not JSON\n\n",
  "event: endpoint\ndata: /other\n\n",
];

const toEvent = (message: object, type: string) =>
  `event: ${type}\ndata: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`;
const content = [{ type: "text" as const, text: "done" }];

for (const type of ["message", ""]) {
  Deno.test(`the client ignores events that are no messages, and reads events of the type "${type}"`, async () => {
    const notified: string[] = [];
    const changed = { method: "notifications/tools/list_changed", params: {} };
    const answer = (heard: Heard, result: object) =>
      stream([...OTHERS, toEvent({ id: heard.id, result }, type), ...OTHERS]);
    const onNotification = ({ method }: { readonly method: string }) => void notified.push(method);

    const modern = fakeHttp((heard) =>
      heard.method === "server/discover" ? discovered(heard) : answer(heard, { resultType: "complete", content })
    );
    await using client = await connect(url, { fetch: modern.fetch });
    assertEquals((await client.callTool("t")).content, content);

    const legacy = fakeHttp((heard) => {
      if (heard.http === "GET") return stream([...OTHERS, toEvent(changed, type), ...OTHERS], "open");
      if (heard.method === "initialize") return answer(heard, agreed);
      return heard.method === "tools/call" ? answer(heard, { content }) : undefined;
    });
    await using session = await connect(url, { fetch: legacy.fetch, era: "legacy", onNotification });
    assertEquals((await session.callTool("t")).content, content);
    await until(() => notified.length === 1, "the notification from the GET stream");
  });
}

Deno.test("the client ignores events that are no messages on the stream of revision 2024-11-05", async () => {
  let send = (_event: string) => {};
  const encoder = new TextEncoder();
  const server = fakeHttp((heard) => {
    if (heard.http === "GET") {
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          send = (event) => controller.enqueue(encoder.encode(event));
          send("event: ping\ndata: x\n\n");
          send("event: endpoint\ndata: /messages\n\n");
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    }
    const results: Record<string, object> = {
      initialize: { ...agreed, protocolVersion: "2024-11-05" },
      "tools/call": { content },
    };
    const result = results[heard.method ?? ""];
    if (!result) return heard.id === undefined ? new Response(null, { status: 202 }) : ok(heard);
    for (const event of [...OTHERS, toEvent({ id: heard.id, result }, "message")]) send(event);
    return new Response(null, { status: 202 });
  });
  const fetch = (request: Request) =>
    request.method === "POST" && request.url === url
      ? Promise.resolve(new Response(null, { status: 405 }))
      : server.fetch(request);
  await using client = await connect(url, { fetch });
  assertEquals((await client.callTool("t")).content, content);
});
