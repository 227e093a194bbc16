// Stdio: every request gets one response on one line, whatever the input is, and the process exits.
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import { createServer, type Handler, service, tool } from "../../mod.ts";
import { INTERNAL_ERROR } from "../../src/core/protocol/errors.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { advanceUntil, gate, plainTool, textOf, turn, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { openStdio } from "../support/open_stdio.ts";
import { toHello } from "../support/sessions.ts";
import { startTalk, toServer } from "../support/stdio_talk.ts";
import { withTimersOn } from "../support/timers.ts";

const file = new URL("../support/stdio_server.ts", import.meta.url);
const utf8 = new TextEncoder();

type Json = { readonly [key: string]: unknown };
const meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
};

function call(id: unknown, name: string, args: Json = {}): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args, _meta: meta } });
}

/** Returns the parts of a response that are compared: its id, and its text or code. */
function digest(line: string): readonly [id: unknown, outcome: unknown] {
  const { jsonrpc, id, result, error } = JSON.parse(line);
  assertEquals(jsonrpc, "2.0");
  return [id, error ? error.code : textOf(result)];
}

/** Serves the bytes in `chunks` in this process. Returns the lines of output. */
async function serveChunks(chunks: readonly Uint8Array[], handlers = [echo]): Promise<string[]> {
  await using server = createServer({ name: "here", version: "1.0.0", handlers });
  const client = openStdio(server, { input: ReadableStream.from(chunks) });
  await client.serving;
  return client.text.split("\n").slice(0, -1);
}

const echo = tool({
  name: "echo",
  input: { type: "object", properties: { text: { type: "string" } } },
  run: (input) => String(Object(input).text),
});

const odd = "é😀\u2028\u2029\r\n\0";

Deno.test("a line can be split at every byte", async () => {
  const bytes = utf8.encode(`${call(1, "echo", { text: odd })}\r\n${call("b", "echo", { text: "two" })}\n`);
  for (let at = 0; at <= bytes.length; at++) {
    const lines = await serveChunks([bytes.subarray(0, at), bytes.subarray(at)]);
    assertEquals(lines.map(digest), [[1, odd], ["b", "two"]], `split at ${at}`);
  }
  const single = await serveChunks(Array.from(bytes, (byte) => Uint8Array.of(byte)));
  assertEquals(single.map(digest), [[1, odd], ["b", "two"]]);
});

// The bytes of a line, and the expected error codes in the responses.
const lines: readonly {
  readonly what: string;
  readonly line: string | Uint8Array;
  readonly answers: readonly unknown[];
}[] = [
  { what: "an empty line", line: "", answers: [] },
  { what: "white space", line: " \t ", answers: [] },
  { what: "a carriage return", line: "\r", answers: [] },
  { what: "garbage", line: "garbage", answers: [-32700] },
  { what: "an incomplete message", line: call(1, "echo").slice(0, -1), answers: [-32700] },
  { what: "a number", line: "42", answers: [-32600] },
  { what: "null", line: "null", answers: [-32600] },
  { what: "an empty object", line: "{}", answers: [-32600] },
  { what: "an id that is null", line: call(null, "echo"), answers: [-32600] },
  { what: "an id that is an object", line: call({}, "echo"), answers: [-32600] },
  { what: "a batch", line: `[${call(1, "echo")}]`, answers: [-32600] },
  { what: "an empty batch", line: "[]", answers: [-32600] },
  { what: "bytes that are not UTF-8", line: Uint8Array.of(0x22, 0xff, 0xfe, 0x22), answers: [-32700] },
  { what: "an incomplete character", line: Uint8Array.of(0x22, 0xc3, 0x22), answers: [-32700] },
  { what: "1,000 levels", line: "[".repeat(1000), answers: [-32600] },
  { what: "12 MiB", line: `"${"x".repeat(12 * 1024 * 1024)}"`, answers: [-32600] },
  {
    what: "a request of an unknown revision",
    line: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    answers: [-32600],
  },
];

function toOutcomes(lines: readonly string[]): unknown[] {
  return lines.map((line) => digest(line)[1]).sort();
}

function* toBytes(line: string | Uint8Array): Iterable<Uint8Array> {
  yield typeof line === "string" ? utf8.encode(line) : line;
  yield Uint8Array.of(10);
}

Deno.test("an invalid line gets an error response or no response, and the next line is served", async (t) => {
  for (const { what, line, answers } of lines) {
    await t.step(what, async () => {
      const good = [...toBytes(call("good", "echo", { text: "ok" }))];
      const first = await serveChunks([...toBytes(line), ...good]);
      assertEquals(toOutcomes(first), [...answers, "ok"]);
      // The error response can come at any position, because responses arrive in any order, and a call takes longer
      // than a refusal.
      const second = await serveChunks([...good, ...toBytes(line), ...good]);
      assertEquals(toOutcomes(second), [...answers, "ok", "ok"]);
    });
  }
});

Deno.test("a byte order mark before the first line is skipped, and is invalid before any other line", async () => {
  const line = (id: string) => `\ufeff${call(id, "echo", { text: id })}\n`;
  const bytes = utf8.encode(line("a") + line("b"));
  for (const size of [bytes.length, 1, 2, 3, 4]) {
    const chunks = Array.from(
      { length: Math.ceil(bytes.length / size) },
      (_, at) => bytes.subarray(at * size, (at + 1) * size),
    );
    assertEquals(toOutcomes(await serveChunks(chunks)), [-32700, "a"]);
  }
  for (const start of ["\ufeff\n", "\ufeff\r\n"]) {
    assertEquals(toOutcomes(await serveChunks([utf8.encode(start + call("c", "echo", { text: "c" }))])), ["c"]);
  }
});

Deno.test("the line break after the last line is optional", async () => {
  const [line] = await serveChunks([utf8.encode(call(1, "echo", { text: "last" }))]);
  assertEquals(digest(line), [1, "last"]);
});

Deno.test("the server stops reading from a client that does not read its responses", async () => {
  const big = tool({ name: "big", run: () => "x".repeat(1_000_000) });
  const server = createServer({ name: "here", version: "1.0.0", handlers: [big] });
  const { promise: reads, resolve: read } = Promise.withResolvers<void>();
  let asked = 0;
  let written = 0;
  const serving = serveStdio(server, {
    input: new ReadableStream({
      pull(controller) {
        if (++asked > 200) controller.close();
        else controller.enqueue(utf8.encode(`${call(asked, "big")}\n`));
      },
    }, { highWaterMark: 0 }),
    async output(bytes) {
      await reads;
      written += bytes.length;
    },
  });
  await until(() => asked > 0, "requests are read");
  await turn(50);
  assert(asked < 100, `${asked} requests were read, although no response was read`);
  read();
  await serving;
  await server.close();
  assertEquals([asked, written > 200_000_000], [201, true]);
});

for (const turns of [0, 200]) {
  Deno.test(`if a reader stalls, only some of many calls in one chunk start (after ${turns} microtasks)`, () =>
    stall(turns));
}

async function stall(turns: number): Promise<void> {
  let runs = 0;
  const big = plainTool("big", async () => {
    const text = "x".repeat(1_000_000 + runs++);
    for (let i = 0; i < turns; i++) await undefined;
    return text;
  });
  await using server = createServer({ name: "here", version: "1.0.0", handlers: [big] });
  const { promise: room, resolve: read } = Promise.withResolvers<void>();
  let size = 0;
  const chunk = utf8.encode(Array.from({ length: 60 }, (_, i) => call(i, "big") + "\n").join(""));
  const serving = serveStdio(server, {
    input: new Blob([chunk]).stream(),
    output: (bytes) => room.then(() => void (size += bytes.length)),
  });
  await until(() => runs > 0, "a call runs");
  await turn(50);
  assert(runs > 0 && runs < 16, `${runs} ran`);
  read();
  await serving;
  assertEquals(runs, 60);
  assert(size > 60_000_000);
}

Deno.test("messages that wait for later messages do not stop the server from reading", async () => {
  const { pass, open } = gate();
  let running = 0;
  const wait = tool({ name: "wait", run: () => pass.then(() => void running++) });
  const go = tool({ name: "go", run: open });
  await using server = createServer({ name: "here", version: "1.0.0", handlers: [wait, go] });
  const lines = [...Array.from({ length: 100 }, (_, i) => call(i, "wait")), call(100, "go")];
  const client = openStdio(server, { input: new Blob([lines.join("\n")]).stream() });
  await client.serving;
  assertEquals([running, client.text.split("\n").length], [100, 102]);
});

for (const way of ["the signal", "the end of input", "the server"] as const) {
  Deno.test(`subscriptions end with a result when ${way} ends serving`, async () => {
    await using server = createServer({ name: "here", version: "1.0.0", title: "Here", handlers: [echo] });
    const stop = new AbortController();
    const client = openStdio(server, { signal: stop.signal });
    const ids = [1, "1", "two"];
    const params = { notifications: { toolsListChanged: true }, _meta: meta };
    await client.write(...ids.map((id) => ({ jsonrpc: "2.0", id, method: "subscriptions/listen", params })));
    await until(() => client.text.split("acknowledged").length > ids.length, "the subscriptions are open");
    client.text = "";
    if (way === "the signal") stop.abort();
    else if (way === "the server") await server.close();
    if (way !== "the signal") await client.writer.close();
    await client.serving;
    const place = ({ id, params }: Json) => ids.indexOf((id ?? Object(params).requestId) as string);
    const messages = client.text.trim().split("\n").map((line) => JSON.parse(line)).sort((a, b) => place(a) - place(b));
    const subscriptionId = "io.modelcontextprotocol/subscriptionId";
    assertEquals(
      messages,
      ids.flatMap((id) => [
        {
          jsonrpc: "2.0",
          id,
          result: {
            resultType: "complete",
            _meta: { "io.modelcontextprotocol/serverInfo": { name: "here", version: "1.0.0" }, [subscriptionId]: id },
          },
        },
        {
          jsonrpc: "2.0",
          method: "notifications/cancelled",
          params: { requestId: id, reason: "closing", _meta: { [subscriptionId]: id } },
        },
      ]),
    );
    await client.writer.abort().catch(() => {});
  });
}

Deno.test("a subscription that its client cancels gets no result", async () => {
  const params = { notifications: { toolsListChanged: true }, _meta: meta };
  const cancelled = { requestId: 1, reason: "Symbol(shutdown)" };
  await using server = createServer({ name: "here", version: "1.0.0", handlers: [echo] });
  const client = openStdio(server);
  await client.write({ jsonrpc: "2.0", id: 1, method: "subscriptions/listen", params });
  await until(() => client.text.includes("acknowledged"), "the subscription is open");
  await client.write(
    { jsonrpc: "2.0", method: "notifications/cancelled", params: cancelled },
    { jsonrpc: "2.0", id: "p", method: "ping" },
  );
  await until(() => client.text.includes('"p"'), "the messages before the ping have been read");
  await client.writer.close();
  await client.serving;
  assertEquals(client.text.trim().split("\n").length, 2);
});

Deno.test("with a signal that is already aborted, serving ends immediately", async () => {
  await using server = createServer({ name: "here", version: "1.0.0", handlers: [echo] });
  const input = new ReadableStream<Uint8Array>();
  await serveStdio(server, { input, output: () => Promise.resolve(), signal: AbortSignal.abort() });
});

Deno.test("aborting the signal ends serving", async () => {
  await using server = createServer({ name: "here", version: "1.0.0", handlers: [echo] });
  const stop = new AbortController();
  const client = openStdio(server, { signal: stop.signal });
  await client.write(JSON.parse(call(1, "echo", { text: "x" })));
  stop.abort();
  await client.serving;
  assertEquals(digest(client.text), [1, "x"]);
  await client.writer.abort().catch(() => {});
});

/** Milliseconds without reading after which serving no longer waits for the client. */
const STALLED_MS = 10_000;

for (const way of ["the end of the input", "a signal"]) {
  Deno.test(`serving ends after ${way} although the client does not read, and services are disposed`, async () => {
    let disposed = 0;
    const db = service("db", () => ({ [Symbol.asyncDispose]: () => Promise.resolve(void disposed++) }));
    const big = tool({ name: "big", services: { db }, run: () => "x".repeat(3_000_000) });
    const server = createServer({ name: "here", version: "1.0.0", handlers: [big] });
    const stop = new AbortController();
    let asked = 0;
    const input = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (way !== "a signal" && asked === 1) controller.close();
        else controller.enqueue(utf8.encode(`${call(++asked, "big")}\n`));
      },
    }, { highWaterMark: 0 });
    let writes = 0;
    const output = () => new Promise<void>(() => void writes++);
    const clock = fakeClock();
    await withTimersOn(clock, STALLED_MS, async () => {
      const serving = serveStdio(server, { input, output, signal: stop.signal, drainMs: 20 });
      await until(() => writes === 1, "the first write");
      if (way === "a signal") await turn(50);
      stop.abort();
      await advanceUntil(clock, STALLED_MS, serving);
    });
    await server.close();
    assertEquals([writes, disposed], [1, 1]);
  });
}

Deno.test("when serving ends, a client that reads slowly gets all responses", async () => {
  const big = tool({ name: "big", run: () => "x".repeat(5_000_000) });
  const server = createServer({ name: "here", version: "1.0.0", handlers: [big] });
  const input = new Response(`${call(1, "big")}\n`).body!; // The assertion is safe, because the response has a body.
  let written = 0;
  const clock = fakeClock();
  await withTimersOn(clock, STALLED_MS, () =>
    serveStdio(server, {
      input,
      async output(bytes) {
        await clock.advance(STALLED_MS - 1);
        written += bytes.length;
      },
    }));
  await server.close();
  assert(written > 5_000_000, `${written} bytes`);
});

Deno.test("a process can read a request byte by byte, and writes only responses to its standard output", async () => {
  await using talk = startTalk(toServer());
  for (const byte of utf8.encode(`${call(1, "echo", { text: odd })}\r\n`)) await talk.write(Uint8Array.of(byte));
  assertEquals(digest(await talk.read()), [1, odd]);
  await talk.write(`${call(2, "noisy")}\n`);
  assertEquals(digest(await talk.read()), [2, "quiet"]);
  await talk.write(`garbage\n[]\n`);
  assertEquals([digest(await talk.read()), digest(await talk.read())], [[undefined, -32700], [undefined, -32600]]);
  await talk.write(`"${"x".repeat(12 * 1024 * 1024)}"\n`);
  const long = await talk.read();
  assertStringIncludes(long, "request.lineBytes");
  assertEquals(digest(long), [undefined, -32600]);
  await talk.write(`${call(1, "echo", { text: "a" })}\n${call(1, "echo", { text: "b" })}\n`);
  assertEquals([digest(await talk.read()), digest(await talk.read())], [[1, "a"], [1, "b"]]);
  await talk.write(call("last", "echo", { text: "no line break" }));
  const { code, lines, stderr } = await talk.end();
  assertEquals([code, lines.map(digest)], [0, [["last", "no line break"]]]);
  for (const said of ["log", "info 1", "debug", "warn"]) assertStringIncludes(stderr, said);
});

Deno.test("direct output of a handler is redirected to standard error, and a handler's prompts do not read messages", async () => {
  await using talk = startTalk(toServer());
  await talk.write(`${call(1, "direct")}\n`);
  assertEquals(digest(await talk.read()), [1, "quiet"]);
  await talk.write(`${call(2, "direct")}\n${call(3, "echo", { text: "x" })}\n`);
  assertEquals([digest(await talk.read()), digest(await talk.read())].sort(), [[2, "quiet"], [3, "x"]]);
  const { code, lines, stderr } = await talk.end();
  assertEquals([code, lines], [0, []]);
  const own = "Deno" in globalThis || "Bun" in globalThis ? ["written\n", "written at once\n", "streamed\n"] : [];
  for (const said of [...own, "written by the process\n"]) assertStringIncludes(stderr, said);
});

Deno.test("a process continues if its standard error is closed, however much it writes there", async () => {
  await using talk = startTalk(["sh", "-c", 'exec "$@" 2>&-', "sh", ...toServer()]);
  await talk.write(`${call(1, "loud")}\n`);
  assertEquals(digest(await talk.read()), [1, "loud"]);
  await talk.write(`${call(2, "echo", { text: "x" })}\n`);
  assertEquals(digest(await talk.read()), [2, "x"]);
});

Deno.test("if its parent has exited, a process continues, uses no CPU time while idle, and exits when its input ends", async () => {
  // The shell that starts the process exits immediately. `cat` waits for the end of the process's output.
  await using talk = startTalk(["sh", "-c", '(exec 3<&0; "$@" <&3 &) | cat', "sh", ...toServer()]);
  const ask = async (id: number) => {
    await talk.write(`${call(id, "cpu")}\n`);
    const [answered, micros] = digest(await talk.read());
    assertEquals(answered, id);
    return Number(micros);
  };
  await ask(1);
  const before = await ask(2);
  // Fixed wait: the CPU time that an idle process uses during a fixed time.
  await new Promise((resolve) => setTimeout(resolve, 500));
  const used = await ask(3) - before;
  assert(used < 250_000, `${used} µs of CPU time in half a second without input`);
  const { code, lines } = await talk.end();
  assertEquals([code, lines], [0, []]);
});

Deno.test("a pipe serves requests without a session, before and after a handshake", async () => {
  const old = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } };
  const of = (id: number, method: string, params: Json) => JSON.stringify({ jsonrpc: "2.0", id, method, params });
  const unknown = { ...meta, "io.modelcontextprotocol/protocolVersion": "1900-01-01" };
  await using server = createServer({ name: "here", version: "1.0.0", handlers: [echo] });
  const lines = [
    of(1, "tools/list", { _meta: meta }),
    of(2, "server/discover", { _meta: meta }),
    of(3, "tools/list", { _meta: unknown }),
    of(4, "initialize", old),
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
    of(5, "tools/list", {}),
    of(6, "tools/list", { _meta: meta }),
    of(7, "initialize", { ...old, protocolVersion: "1900-01-01" }),
  ];
  const client = openStdio(server, { input: new Blob([lines.join("\n")]).stream() });
  await client.serving;
  const said: Json[] = client.text.trim().split("\n").map((line) => JSON.parse(line));
  // deno-lint-ignore no-explicit-any
  const answer = (id: number): any => said.find((each) => each.id === id);
  assertEquals(answer(1).result.resultType, "complete");
  assertEquals(answer(2).result.supportedVersions, ["2026-07-28"]);
  assertEquals([answer(3).error.code, answer(3).error.data.requested], [-32022, "1900-01-01"]);
  assertEquals(answer(4).result.protocolVersion, "2025-11-25");
  assertEquals([answer(5).result.tools.length, answer(5).result.resultType], [1, undefined]);
  assertEquals(answer(6).result.resultType, "complete");
  assertEquals(answer(7).result.protocolVersion, "2025-11-25");
  assertEquals(said.length, 7);
});

Deno.test("a process responds once to each of a thousand concurrent requests", async () => {
  await using talk = startTalk(toServer());
  const ids = Array.from({ length: 1000 }, (_, id) => id);
  const writing = talk.write(ids.map((id) => `${call(id, "echo", { text: `${id}` })}\n`).join(""));
  const answers: (readonly unknown[])[] = [];
  while (answers.length < ids.length) answers.push(digest(await talk.read()));
  await writing;
  assertEquals(answers.toSorted(([a], [b]) => Number(a) - Number(b)), ids.map((id) => [id, `${id}`]));
  assertEquals((await talk.end()).lines, []);
});

Deno.test("when the input ends, running calls have some time to finish", async () => {
  await using talk = startTalk(toServer());
  await talk.write(`${call(1, "slow", { ms: 200 })}\n${call(2, "echo", { text: "x" })}\n`);
  assertEquals(digest(await talk.read()), [2, "x"]);
  const { code, lines, stderr } = await talk.end();
  assertEquals([code, lines.map(digest)], [0, [[1, "slow"]]]);
  assertStringIncludes(stderr, "slow is done");
});

Deno.test("when the input ends, a call that takes too long is cancelled", async () => {
  await using talk = startTalk(toServer());
  await talk.write(`${call(1, "slow", { ms: 600_000 })}\n${call(2, "echo", { text: "x" })}\n`);
  assertEquals(digest(await talk.read()), [2, "x"]);
  const { code, lines, stderr } = await talk.end();
  assertEquals([code, lines.map(digest)], [0, [[1, INTERNAL_ERROR]]]);
  assertStringIncludes(stderr, "slow was cancelled");
});

for (const era of ["modern", "legacy"]) {
  Deno.test(`when the input ends, each call that takes too long gets an error, in the ${era} era`, async () => {
    const running: string[] = [];
    const hang = tool({
      name: "hang",
      input: { type: "object", properties: { as: { type: "string" } } },
      run(input, { signal }) {
        const { as } = Object(input);
        running.push(as);
        return new Promise<string>((_, reject) => {
          if (as === "stops") signal.addEventListener("abort", () => reject(signal.reason));
        });
      },
    });
    const limits = testLimits({ calls: { running: 3, runningPerClient: 3 } });
    await using server = createServer({ name: "here", version: "1.0.0", handlers: [hang], limits });
    const client = openStdio(server, { drainMs: 20 });
    if (era === "legacy") await client.write(toHello());
    const start = (as: string) => {
      const params = { name: "hang", arguments: { as }, ...era === "modern" && { _meta: meta } };
      return { jsonrpc: "2.0", id: as, method: "tools/call", params };
    };
    await client.write(...["is cancelled", "stops", "never returns", "waits for a slot"].map(start));
    await until(() => running.length === 3, "three calls run");
    const cancelled = { requestId: "is cancelled" };
    await client.write({ jsonrpc: "2.0", method: "notifications/cancelled", params: cancelled });
    await until(() => running.length === 4, "the slot of the cancelled call is free");
    await client.write(start("still waits"));
    await client.writer.close();
    await client.serving;
    const errors = client.text.trim().split("\n").map((line) => JSON.parse(line)).filter(({ error }) => error);
    const error = { code: INTERNAL_ERROR, message: sentence("keep the input open") };
    const late = ["stops", "never returns", "waits for a slot", "still waits"];
    assertEquals(errors, late.map((id) => ({ jsonrpc: "2.0", id, error })));
  });
}

Deno.test("when the input ends, each call of a batch that takes too long gets an error", async () => {
  let running = 0;
  const hang = plainTool("hang", () => {
    running++;
    return new Promise<string>(() => {});
  });
  await using server = createServer({ name: "here", version: "1.0.0", handlers: [hang] });
  const client = openStdio(server, { drainMs: 20 });
  await client.write(toHello({ version: "2025-03-26" }));
  const hanging = ["a", 2].map((id) => ({ jsonrpc: "2.0", id, method: "tools/call", params: { name: "hang" } }));
  await client.write([...hanging, { jsonrpc: "2.0", method: "notifications/initialized" }, "no message"]);
  await until(() => running === 2, "both calls run");
  await client.writer.close();
  await client.serving;
  const [, answers, ...more] = client.text.trim().split("\n").map((line) => JSON.parse(line));
  const error = { code: INTERNAL_ERROR, message: sentence("keep the input open") };
  assertEquals(answers, ["a", 2].map((id) => ({ jsonrpc: "2.0", id, error })));
  assertEquals(more, []);
});

Deno.test("a process exits when its standard output is closed", async () => {
  await using talk = startTalk(toServer());
  await talk.write(`${call(0, "echo", { text: "x" })}\n`);
  assertEquals(digest(await talk.read()), [0, "x"]);
  await talk.deafen();
  await talk.write(Array.from({ length: 50 }, (_, id) => `${call(id, "big")}\n`).join("")).catch(() => {});
  await talk.child.exited;
});

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`a client in the ${era} era can use a server process`, async () => {
    const client = await connectTest(file, {
      era,
      transport: "stdio",
      onElicit: () => ({ action: "accept", content: { name: "Ada" } }),
    });
    try {
      const names = (await client.listTools()).map(({ name }) => name);
      assertEquals(names, ["echo", "noisy", "slow", "ask", "big", "direct", "cpu", "loud"]);
      assertEquals(textOf(await client.callTool("echo", { text: odd })), odd);
      assertEquals(textOf(await client.callTool("ask")), "Hello, Ada");
      const stop = new AbortController();
      const options = { signal: stop.signal, meta: { progressToken: 1 }, onNotification: () => stop.abort() };
      await assertRejects(() => client.callTool("slow", { ms: 600_000 }, options));
      assertEquals(textOf(await client.callTool("echo", { text: "after" })), "after");
      assertEquals(client.received.length, 1);
    } finally {
      await client.close();
    }
    assertEquals(await client.child?.exitCode, 0);
    assertMatch(await client.child?.stderr ?? "", /slow began\s+slow was cancelled/);
  });
}

// A process that serves stdio exits when its input ends. A leaked timer would keep the process alive; Deno's test
// runner fails a test that leaks a timer.

/** Serves the line `first`, and then each line that `answer` returns for the output, until `answer` returns "end". */
async function serveLines(
  handlers: readonly Handler[],
  first: readonly unknown[],
  answer: (message: { id?: unknown; method?: string; result?: unknown }) => unknown,
): Promise<void> {
  const { readable, writable } = new TransformStream<Uint8Array>();
  const writer = writable.getWriter();
  const write = (message: unknown) => writer.write(new TextEncoder().encode(`${JSON.stringify(message)}\n`));
  const output = async (bytes: Uint8Array) => {
    for (const line of new TextDecoder().decode(bytes).trim().split("\n")) {
      const message = answer(JSON.parse(line));
      await (message === undefined ? undefined : message === "end" ? writer.close() : write(message));
    }
  };
  // Without a timeout, no sweep runs in the background.
  const limits = { calls: { timeoutMs: Infinity } };
  const server = createServer({ name: "short", version: "1.0.0", handlers, limits });
  const serving = serveStdio(server, { input: readable, output });
  for (const message of first) await write(message);
  await serving;
  // The server's timer stops shortly after it is no longer used.
  // Fixed wait: the test runner checks for timers after the last timer should have stopped.
  await new Promise((resolve) => setTimeout(resolve, 300));
}

const strict = { sanitizeOps: true, sanitizeResources: true };
const initialize = toHello({ id: "init", capabilities: { elicitation: {} } });

Deno.test({ name: "no timer is left when the input ends", ...strict }, async () => {
  await serveLines([], [initialize], () => "end");
});

Deno.test({ name: "no timer is left by a question that was answered", ...strict }, async () => {
  const ask = plainTool(
    "ask",
    async (ctx) => (await ctx.elicit("q", { message: "Why?", schema: { type: "object", properties: {} } })).action,
  );
  const call = { jsonrpc: "2.0", id: "call", method: "tools/call", params: { name: "ask" } };
  const results: unknown[] = [];
  await serveLines([ask], [initialize, call], ({ id, method, result }) => {
    if (method === "elicitation/create") return { jsonrpc: "2.0", id, result: { action: "decline" } };
    if (id !== "call") return;
    results.push(result);
    return "end";
  });
  assertEquals(results, [{ content: [{ type: "text", text: "decline" }] }]);
});
