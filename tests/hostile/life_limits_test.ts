// The server enforces every limit, and the error names the limit.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { INTERNALS } from "../../src/core/internals.ts";
import { type Authentication, extension, type Observer, resource, type ServerOptions, tool } from "../../mod.ts";
import { idempotent } from "../../src/layers/layers.ts";
import { basicAuth } from "../../src/auth/auth.ts";
import { oauth } from "../../src/auth/oauth/oauth.ts";
import type { ExtensionSteps } from "../../src/extensions/extension.ts";
import type { BoundOptions, Bounds, LimitOptions } from "../../src/server/capacity/limits.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";
import { gate, started, turn, until } from "../support/behaviour.ts";
import { random } from "../support/random.ts";
import { META, toMeta } from "./http.ts";
import { readData, startSession, toCall } from "./unread.ts";
import { BOUNDS, testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { openServer } from "../support/servers.ts";

type Json = { readonly [key: string]: unknown };

const url = "http://localhost/mcp";
const any = { type: "object" } as const;
const yes = { type: "object", properties: { ok: { type: "boolean" } } } as const;

function start(limits: LimitOptions, more: Partial<ServerOptions> = {}) {
  const clock = fakeClock();
  const faults: string[] = [];
  const { pass, open } = gate();
  const counts = { started: 0, aborted: 0, said: 0 };
  const handlers = [
    tool({ name: "quick", input: any, run: () => "quick" }),
    tool({
      name: "hold",
      async run(_input, { signal }) {
        counts.started++;
        signal.addEventListener("abort", () => counts.aborted++);
        await pass;
        return "held";
      },
    }),
    tool({
      name: "say",
      input: any,
      async run({ n, size }: { readonly n?: unknown; readonly size?: unknown }, ctx) {
        for (let i = 0; i < Number(n); i++) {
          await ctx.log.info("x".repeat(Number(size)));
          counts.said++;
        }
        return "said";
      },
    }),
    tool({ name: "give", input: any, run: ({ size }: { readonly size?: unknown }) => "x".repeat(Number(size)) }),
    tool({
      name: "stream",
      run() {
        counts.started++;
        return new ReadableStream({ cancel: () => void counts.aborted++ });
      },
    }),
    tool({
      name: "ask",
      input: any,
      async run({ size, times }: { readonly size?: unknown; readonly times?: unknown }, ctx) {
        for (let i = 0; i < Number(times ?? 1); i++) {
          await ctx.elicit(`q${i}`, { message: "?".repeat(Number(size ?? 1)), schema: yes });
        }
        return "asked";
      },
    }),
    tool({
      name: "forward",
      input: any,
      run: ({ size }: { readonly size?: unknown }, ctx) =>
        ctx.forward(() => ({
          resultType: "input_required",
          inputRequests: { q: { method: "elicitation/create", params: { message: "?", requestedSchema: yes } } },
          requestState: "x".repeat(Number(size)),
        }), { key: "k" }),
    }),
    ...["a", "b", "c"].map((name) => resource({ uri: `test://${name}`, name, read: () => "" })),
  ];
  const observer: Observer = {
    fault: ({ error }) => faults.push(String(error)),
    limit: ({ limit }) => reached.add(limit),
  };
  const server = openServer({ handlers, limits, clock, observer, ...more });
  return {
    ...{ server, clock, faults, open, counts },
    async [Symbol.asyncDispose]() {
      open();
      const closing = server.close();
      await clock.advance(60_000);
      await closing;
    },
  };
}

/** The limits that the tests of this file have reached, as reported to observers. */
const reached = new Set<string>();

type Held = ReturnType<typeof start>;

/** Creates a modern request, or a legacy request if `session` is given. */
function toRequest(
  method: string,
  params: Json = {},
  { session, principal }: { session?: string; principal?: string } = {},
) {
  const { headers } = toCall(String(params.name ?? ""), { session });
  const meta = toMeta({ [META + "clientCapabilities"]: { elicitation: {} }, ...Object(params._meta) });
  const body = { jsonrpc: "2.0", id: 1, method, params: session === undefined ? { ...params, _meta: meta } : params };
  const request = new Request(url, {
    method: "POST",
    headers: session === undefined ? { ...headers, "mcp-method": method } : headers,
    body: JSON.stringify(body),
  });
  return [request, principal === undefined ? undefined : { principal: { id: principal } }] as const;
}

async function send({ server }: Held, ...request: Parameters<typeof toRequest>) {
  const response = await server.fetch(...toRequest(...request));
  const text = await response.text();
  const message = text.startsWith("{") ? JSON.parse(text) : Object(readData(text).at(-1));
  return { status: response.status, headers: response.headers, ...message } as {
    readonly status: number;
    readonly headers: Headers;
    readonly result?: Json;
    readonly error?: { readonly code: number; readonly message: string };
  }; // The cast is safe, because the body is a JSON-RPC response.
}

/** Asserts that a request is refused with the given status, and that the error names the limit. */
async function refuse(held: Held, limit: string, status: number, ...request: Parameters<typeof toRequest>) {
  const { status: got, error, headers } = await send(held, ...request);
  assertEquals(got, status, error?.message);
  assertStringIncludes(error?.message ?? "", limit);
  if (status === 503 || status === 429) assertEquals(headers.get("retry-after"), "1");
}

const quick = { name: "quick" };
const listen = { notifications: { resourceSubscriptions: ["test://a"] } };

const large = { name: "hold", arguments: { text: "x".repeat(70_000) } };

function callLarge(held: Held, principal: string): Promise<Response> {
  return held.server.fetch(...toRequest("tools/call", large, { principal }));
}

/** Starts a server with a tool whose result uses most of a limit of 4400 bytes. */
function startKeyed(limits: LimitOptions) {
  const held = start(limits);
  held.server.handlers.add(tool({
    name: "once",
    input: { type: "object", properties: { key: { type: "string" } } } as const,
    use: [idempotent(({ key }) => key)],
    run() {
      held.counts.started++;
      return "x".repeat(1500);
    },
  }));
  return held;
}

/** Asserts that a large call by `principal` is refused while a call by ada is running. Returns the call by ada. */
async function refuseSecondCall(held: Held, limit: string, principal: string) {
  const first = callLarge(held, "ada");
  await until(() => held.counts.started === 1, "it runs");
  await refuse(held, limit, 503, "tools/call", large, { principal });
  return { first };
}

function startAuth(auth: BoundOptions["auth"]) {
  const { pass, open } = gate();
  const held = start(testLimits({ auth }), { auth: () => pass.then(() => ({ id: "ada" })) });
  return { ...held, [Symbol.asyncDispose]: () => (open(), held[Symbol.asyncDispose]()), open };
}

/** Asserts that the server refuses a peer while it is authenticating another peer, and serves both peers afterwards. */
async function refuseSecondAuth(held: ReturnType<typeof startAuth>, limit: string, hostname: string) {
  const { headers, body } = toCall("quick");
  const send = (hostname: string) =>
    held.server.fetch(new Request(url, { method: "POST", headers, body }), { remoteAddr: { hostname } });
  // Send a first request, because it loads the server's authentication module.
  await held.server.fetch(new Request(url, { method: "OPTIONS" }));
  const first = send("203.0.113.1");
  if (!limit) return { first };
  const refused = await send(hostname);
  assertEquals([refused.status, refused.headers.get("retry-after")], [503, "1"]);
  assertStringIncludes(await refused.text(), limit);
  held.open();
  assertEquals((await first).status, 200);
  assertEquals((await send(hostname)).status, 200);
  return { first };
}

const ISSUED = { resource: url, issuers: ["https://login.example.com"] };
const WRONG = `Basic ${btoa("ada:wrong")}`;
const PEERS = ["203.0.113.1", "203.0.113.2"];

/** A request with a credential. */
interface Guess {
  readonly response: Promise<Response>;
  /** `undefined` until the server has responded. */
  status?: number;
}

/** Starts a server that callers try to enter with wrong credentials. */
function startGuessing(auth: Authentication, bounds: BoundOptions["auth"] = {}) {
  const held = start(testLimits({ auth: bounds }), { auth });
  const { headers, body } = toCall("quick");
  /** Sends a credential, and lets the server do all work that needs no timer. */
  const guess = async (authorization: string, hostname = PEERS[0]): Promise<Guess> => {
    // Send a first request, because it loads the server's authentication module.
    await held.server.fetch(new Request(url, { method: "OPTIONS" }));
    const request = new Request(url, { method: "POST", headers: { ...headers, authorization }, body });
    const sent: Guess = { response: started(held.server.fetch(request, { remoteAddr: { hostname } })) };
    sent.response.then(({ status }) => sent.status = status);
    await turn(2);
    return sent;
  };
  return { ...held, guess };
}

async function refuseGuess({ response }: Guess, ...names: readonly string[]): Promise<void> {
  const refused = await response;
  assertEquals([refused.status, refused.headers.get("retry-after")], [429, "5"]);
  const text = await refused.text();
  for (const name of names) assertStringIncludes(text, name);
}

function pending(): Promise<never> {
  return new Promise(() => {});
}

/** Starts a server with the given limits for each tenant. */
function startTenants(perTenant: Partial<Bounds["perTenant"]>) {
  return start({ perTenant }, { path: "/t/:tenant/mcp" });
}

function callTenant(held: Held, tenant: string, name: string, principal: string, args?: Json): Promise<Response> {
  const { headers, body } = toCall(name, { args });
  const request = new Request(`http://localhost/t/${tenant}/mcp`, { method: "POST", headers, body });
  return started(held.server.fetch(request, { principal: { id: principal } }));
}

type Path = { [group in keyof Bounds]: `${group}.${Extract<keyof Bounds[group], string>}` }[keyof Bounds];

const cases: { readonly [path in Path]: (() => Promise<void>) | undefined } = {
  // Tests in tests/layers/quota/ and tests/stores/ check the rates of handlers.
  "rates.clients": undefined,
  async "request.bodyBytes"() {
    await using held = start({ request: { bodyBytes: 1000 } });
    await refuse(held, "request.bodyBytes", 413, "tools/call", { ...quick, arguments: { x: "x".repeat(1000) } });
    const { headers } = toCall("quick");
    // A body without a declared length is counted as it arrives.
    const body = new ReadableStream({
      pull: (controller) => controller.enqueue(new TextEncoder().encode(" ".repeat(300))),
    });
    const request = new Request(url, { method: "POST", headers, body, ...{ duplex: "half" } });
    const response = await held.server.fetch(request);
    assertEquals(response.status, 413);
    assertStringIncludes(await response.text(), "request.bodyBytes");
  },
  async "request.allBodiesBytes"() {
    const { headers, body } = toCall("quick", { args: { x: "x".repeat(200_000) } });
    await using held = start(testLimits({ request: { allBodiesBytes: 2 * body.length } }));
    const send = async (text: string, rest = "") => {
      const { readable, writable } = new TransformStream<Uint8Array>({}, { highWaterMark: 100 });
      const writer = writable.getWriter();
      const request = new Request(url, { method: "POST", headers, body: readable, ...{ duplex: "half" } });
      const answer = held.server.fetch(request);
      const write = (text: string) => writer.write(new TextEncoder().encode(text));
      await write(text);
      await turn(10);
      return async () => {
        await write(rest).then(() => writer.close()).catch(() => {});
        const response = await answer;
        return [response.status, response.headers.get("retry-after"), /allBodiesBytes/.test(await response.text())];
      };
    };
    const served = [200, null, false];
    const first = await send(body);
    const second = await send(body);
    assertEquals([await first(), await second()], [served, served], "both values have room");
    const halves = [body.slice(0, -1), body.slice(-1)] as const;
    const oldest = await send(...halves);
    const younger = [await send(...halves), await send(...halves)];
    assertEquals(await oldest(), [503, "1", true], "the oldest value is evicted for the third value");
    for (const end of younger) assertEquals(await end(), served);
    const large = toCall("quick", { args: { x: "x".repeat(700_000) } }).body;
    assertEquals(await (await send(large))(), served, "a single value may be larger");
  },
  async "request.bodyMs"() {
    await using held = start({ request: { bodyMs: 5000 } });
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode("{")) });
    const { headers } = toCall("quick");
    const coming = held.server.fetch(new Request(url, { method: "POST", headers, body, ...{ duplex: "half" } }));
    await until(() => held.server[INTERNALS].engine.accounts.memory.used > 0, "the body arrives");
    await held.clock.advance(7000);
    const response = await coming;
    assertEquals(response.status, 408);
    assertStringIncludes(await response.text(), "request.bodyMs");
  },
  async "request.depth"() {
    await using held = start(testLimits({ request: { depth: 10 } }));
    await refuse(held, "request.depth", 400, "tools/call", {
      ...quick,
      arguments: JSON.parse('{"a":'.repeat(9) + "1" + "}".repeat(9)),
    });
  },
  async "request.values"() {
    await using held = start(testLimits({ request: { values: 50 } }));
    await refuse(held, "request.values", 400, "tools/call", { ...quick, arguments: { list: Array(50).fill(0) } });
  },
  async "request.idCharacters"() {
    await using held = start(testLimits({ request: { idCharacters: 5 } }));
    const { headers, body } = toCall("quick", { id: "123456" });
    const response = await held.server.fetch(new Request(url, { method: "POST", headers, body }));
    assertEquals(response.status, 400);
    assertStringIncludes(await response.text(), "request.idCharacters");
  },
  async "request.methodCharacters"() {
    await using held = start(testLimits({ request: { methodCharacters: 20 } }));
    await refuse(held, "request.methodCharacters", 400, "x".repeat(21));
  },
  async "request.batchMessages"() {
    await using held = start(testLimits({ request: { batchMessages: 2 } }));
    await using client = await connectTest(held.server, { era: "legacy", revisions: ["2025-03-26"] });
    const one = { jsonrpc: "2.0", method: "notifications/x" };
    const { headers } = toCall("", { session: client.sessionId });
    for (const [count, status] of [[2, 202], [3, 400]]) {
      const body = JSON.stringify(Array.from({ length: count }, () => one));
      const response = await held.server.fetch(new Request(url, { method: "POST", headers, body }));
      assertEquals(response.status, status);
      if (status === 400) assertStringIncludes(await response.text(), "(request.batchMessages)");
    }
  },
  async "request.lineBytes"() {
    await using held = start({ request: { lineBytes: 500 } });
    const good = JSON.stringify({ jsonrpc: "2.0", id: 7, method: "ping" });
    const input = new Blob([`${"x".repeat(600)}\n${good}\n`]).stream();
    const decoder = new TextDecoder();
    let out = "";
    await serveStdio(held.server, {
      input,
      output(bytes) {
        out += decoder.decode(bytes, { stream: true });
        return Promise.resolve();
      },
    });
    const [long, pong] = out.trim().split("\n");
    assertStringIncludes(long, "request.lineBytes");
    assertEquals(JSON.parse(pong).id, 7);
  },
  async "calls.running"() {
    await using held = start(testLimits({ calls: { running: 1, waiting: 1 } }));
    const calls = [1, 2].map(() => started(send(held, "tools/call", { name: "hold" })));
    await until(() => held.counts.started === 1, "one runs");
    await refuse(held, "calls.running, calls.waiting", 503, "tools/call", quick);
    held.open();
    for (const { result } of await Promise.all(calls)) assert(result);
  },
  async "calls.runningPerClient"() {
    await using held = start(testLimits({ calls: { runningPerClient: 1, waiting: 1 } }));
    const session = await startSession(url, held.server.fetch);
    const calls = [1, 2].map(() => started(send(held, "tools/call", { name: "hold" }, { session })));
    await until(() => reached.has("calls.runningPerClient"), "one call runs and one call waits");
    await refuse(held, "calls.runningPerClient, calls.waiting", 429, "tools/call", quick, { session });
    held.open();
    for (const { result } of await Promise.all(calls)) assert(result);
  },
  async "calls.waiting"() {
    await using held = start(testLimits({ calls: { running: 1, waiting: 100 } }));
    // A quarter of the queue is reserved for clients with an identity.
    const calls = Array.from({ length: 76 }, () => started(send(held, "tools/call", { name: "hold" })));
    await until(() => held.counts.started === 1, "one runs");
    await refuse(held, "calls.waiting", 503, "tools/call", quick);
    held.open();
    for (const { result } of await Promise.all(calls)) assert(result);
  },
  async "calls.inner"() {
    const calls = tool({
      name: "calls",
      input: { type: "object", properties: { size: { type: "number" } }, required: ["size"] } as const,
      run: async ({ size }, ctx) => {
        for (let at = 0; at < size; at++) await ctx.list("tools");
        return "done";
      },
    });
    await using held = start({ calls: { inner: 3 } });
    held.server.handlers.add(calls);
    assert((await send(held, "tools/call", { name: "calls", arguments: { size: 3 } })).result);
    const { result } = await send(held, "tools/call", { name: "calls", arguments: { size: 4 } });
    assert(Object(result).isError);
    assertStringIncludes(held.faults.join(), "calls.inner");
  },
  async "calls.detached"() {
    const own = extension({ id: "com.example/later" });
    const { promise, resolve } = Promise.withResolvers<void>();
    const around: ExtensionSteps["around"] = (call, next) => {
      call.detach();
      next().catch(() => {});
      return { content: [] };
    };
    const later = tool({ name: "later", use: [own.layer({ around })], run: () => promise });
    await using held = start({ calls: { detached: 4 } });
    for (const handler of [own, later]) held.server.handlers.add(handler);
    // Clients without an identity can use three quarters of the limit.
    for (let i = 0; i < 3; i++) assert((await send(held, "tools/call", { name: "later" })).result);
    await refuse(held, "calls.detached", 503, "tools/call", { name: "later" });
    assert((await send(held, "tools/call", quick)).result);
    resolve();
  },
  async "idempotency.keyCharacters"() {
    await using held = startKeyed(testLimits({ idempotency: { keyCharacters: 5 } }));
    const once = (key: string) => ["tools/call", { name: "once", arguments: { key } }, { principal: "ada" }] as const;
    assert((await send(held, ...once("12345"))).result);
    await refuse(held, "idempotency.keyCharacters", 400, ...once("123456"));
  },
  async "idempotency.bytes"() {
    await using held = startKeyed(testLimits({ idempotency: { bytes: 4 * 4400 } }));
    const once = (key: string, principal = "ada") =>
      ["tools/call", { name: "once", arguments: { key } }, { principal }] as const;
    assert((await send(held, ...once("a"))).result);
    assert((await send(held, ...once("b"))).result, "the call runs, although there is no room for its result");
    const { error } = await send(held, ...once("b"));
    assertEquals(error?.code, -31409);
    assertEquals(error?.message, sentence("b"));
    await refuse(held, "idempotency.bytes", 503, ...once("c"));
    assertEquals(held.counts.started, 2);
    assert((await send(held, ...once("a"))).result, "a known key needs no room");
    assert((await send(held, ...once("c", "bob"))).result, "other clients have room");
    await held.clock.advance(615_000);
    assert((await send(held, ...once("c"))).result, "it has expired");
  },
  async "perTenant.running"() {
    await using held = startTenants({ running: 2 });
    const calls = ["ada", "bob"].map((principal) => callTenant(held, "a", "hold", principal));
    await until(() => held.counts.started === 2, "two run");
    const refused = await callTenant(held, "a", "hold", "cyd");
    assertEquals([refused.status, refused.headers.get("retry-after")], [503, "1"]);
    assertStringIncludes(await refused.text(), "perTenant.running");
    assertEquals((await callTenant(held, "b", "quick", "cyd")).status, 200);
    held.open();
    for (const call of await Promise.all(calls)) assertEquals([call.status, await call.text() !== ""], [200, true]);
    assertEquals((await callTenant(held, "a", "quick", "cyd")).status, 200);
  },
  async "perTenant.bytes"() {
    await using held = startTenants({ bytes: 200_000 });
    const text = "x".repeat(70_000);
    const first = callTenant(held, "a", "hold", "ada", { text });
    await until(() => held.counts.started === 1, "it runs");
    const refused = await callTenant(held, "a", "quick", "bob", { text });
    assertEquals([refused.status, refused.headers.get("retry-after")], [503, "1"]);
    assertStringIncludes(await refused.text(), "perTenant.bytes");
    assertEquals((await callTenant(held, "b", "quick", "bob", { text })).status, 200);
    held.open();
    assertEquals((await first).status, 200);
    assertEquals((await callTenant(held, "a", "quick", "bob", { text })).status, 200);
  },
  async "calls.timeoutMs"() {
    await using held = start({ calls: { timeoutMs: 10_000 } });
    const coming = started(send(held, "tools/call", { name: "hold" }));
    await until(() => held.counts.started === 1, "it runs");
    await held.clock.advance(9000);
    assertEquals(held.counts.aborted, 0);
    await held.clock.advance(2000);
    assertEquals(held.counts.aborted, 1);
    assertStringIncludes((await coming).error?.message ?? "", "calls.timeoutMs");
  },
  async "calls.answerMs"() {
    await using held = start({ calls: { answerMs: 10_000 } });
    await using client = await connectTest(held.server, {
      era: "legacy",
      onElicit: () => new Promise(() => {}),
    });
    const coming = started(client.callTool("ask").catch((error) => error.message));
    await until(
      () => client.transcript.some((line) => line.includes("elicitation/create")),
      "the client gets the question",
    );
    await held.clock.advance(11_000);
    assertStringIncludes(await coming, "calls.answerMs");
  },
  async "calls.rounds"() {
    await using held = start(testLimits({ calls: { rounds: 2 } }));
    let params: Json = { name: "ask", arguments: { times: 3 } };
    for (let round = 0; round < 2; round++) {
      const { result = {} } = await send(held, "tools/call", params);
      const inputResponses = { [`q${round}`]: { action: "accept", content: {} } };
      params = { ...params, requestState: result.requestState, inputResponses };
    }
    await refuse(held, "calls.rounds", 400, "tools/call", params);
  },
  async "calls.answersChecked"() {
    await using held = start(testLimits({ calls: { answersChecked: 1 } }));
    const check = gate();
    let isSlow = false;
    held.server.handlers.add(tool({
      name: "confirm",
      allow: async () => (isSlow && await check.pass, true),
      run: async (_, ctx) => (await ctx.elicit("sure", { message: "Sure?", schema: yes })).action,
    }));
    const session = await startSession(url, held.server.fetch);
    const response = await held.server.fetch(new Request(url, toCall("confirm", { session })));
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!text.includes("elicitation/create")) text += (await reader?.read())?.value;
    const { id } = Object(readData(text).at(-1));
    isSlow = true;
    const answer = { jsonrpc: "2.0", id, result: { action: "decline" } };
    const { headers } = toCall("", { session });
    const post = { method: "POST", headers, body: JSON.stringify(answer) };
    const answers = [1, 2].map(() => held.server.fetch(new Request(url, post)));
    const late = await Promise.race(answers);
    assertEquals(late.status, 503);
    assertStringIncludes(await late.text(), "calls.answersChecked");
    check.open();
    await Promise.all(answers);
    while (!text.includes("decline")) text += (await reader?.read())?.value;
  },
  async "calls.stateBytes"() {
    await using held = start(testLimits({ calls: { stateBytes: 1000 } }));
    const { error } = await send(held, "tools/call", { name: "ask", arguments: { size: 1000 } });
    assertEquals(error?.message, sentence());
    assertStringIncludes(held.faults.join(), "calls.stateBytes");
  },
  async "calls.forwardedStateBytes"() {
    await using held = start(testLimits({ calls: { forwardedStateBytes: 1000 } }));
    const { error } = await send(held, "tools/call", { name: "forward", arguments: { size: 1000 } });
    assertEquals(error?.message, sentence());
    assertStringIncludes(held.faults.join(), "calls.forwardedStateBytes");
  },
  async "calls.stateMs"() {
    await using held = start(testLimits({ calls: { stateMs: 10_000 } }));
    const { result = {} } = await send(held, "tools/call", { name: "ask" });
    await held.clock.advance(10_001);
    await refuse(held, "calls.stateMs", 400, "tools/call", { name: "ask", requestState: result.requestState });
  },
  async "calls.resultBytes"() {
    await using held = start({ calls: { resultBytes: 1000 } });
    const { error } = await send(held, "tools/call", { name: "give", arguments: { size: 1000 } });
    assertEquals(error?.message, sentence());
    assertStringIncludes(held.faults.join(), "calls.resultBytes");
  },
  async "calls.readMs"() {
    await using held = start(testLimits({ calls: { readMs: 5000 } }));
    const coming = send(held, "tools/call", { name: "stream" });
    await until(() => held.counts.started === 1, "it runs");
    await held.clock.advance(4000);
    assertEquals(held.counts.aborted, 0);
    await held.clock.advance(2000);
    assertEquals((await coming).error?.message, sentence());
    assertStringIncludes(held.faults.join(), "calls.readMs");
    assertEquals(held.counts.aborted, 1);
  },
  async "streams.openAfterMs"() {
    await using held = start(testLimits({ streams: { openAfterMs: 100 } }));
    const coming = held.server.fetch(...toRequest("tools/call", { name: "hold" }));
    let isOpen = false;
    coming.then(() => isOpen = true);
    await until(() => held.counts.started === 1, "it runs");
    await held.clock.advance(90);
    assert(!isOpen);
    await held.clock.advance(110);
    assert(isOpen);
    await (await coming).body?.cancel();
  },
  async "streams.heartbeatMs"() {
    await using held = start({ streams: { heartbeatMs: 4000 } });
    const coming = held.server.fetch(...toRequest("tools/call", { name: "hold" }));
    await until(() => held.counts.started === 1, "it runs");
    await held.clock.advance(60);
    const reading = (await coming).text();
    await held.clock.advance(40_000);
    held.open();
    const comments = (await reading).match(/^:$/gm)?.length ?? 0;
    assert(comments >= 10 && comments <= 15, `${comments} comments in 40 s`);
  },
  async "streams.waitingTexts"() {
    await using held = start(testLimits({ streams: { waitingTexts: 10, waitingCharacters: Infinity } }));
    const response = await held.server.fetch(...toRequest("tools/call", {
      name: "say",
      arguments: { n: 100, size: 1 },
      _meta: { [META + "logLevel"]: "info" },
    }));
    await until(() => held.counts.said >= 5, "the handler sends a message");
    await turn(10);
    assert(held.counts.said >= 5 && held.counts.said <= 12, `${held.counts.said} were accepted`);
    assertEquals(readData(await response.text()).length, 101);
  },
  async "streams.waitingCharacters"() {
    await using held = start(testLimits({ streams: { waitingCharacters: 1000, waitingTexts: Infinity } }));
    const response = await held.server.fetch(...toRequest("tools/call", {
      name: "say",
      arguments: { n: 100, size: 1 },
      _meta: { [META + "logLevel"]: "info" },
    }));
    await until(() => held.counts.said >= 5, "the handler sends a message");
    await turn(10);
    assert(held.counts.said >= 5 && held.counts.said <= 12, `${held.counts.said} were accepted`);
    assertEquals(readData(await response.text()).length, 101);
  },
  async "streams.writeMs"() {
    await using held = start(testLimits({ streams: { writeMs: 5000 } }));
    const coming = held.server.fetch(...toRequest("tools/call", { name: "hold" }));
    await until(() => held.counts.started === 1, "it runs");
    await held.clock.advance(60);
    const response = await coming;
    await held.clock.advance(4000);
    assertEquals(held.counts.aborted, 0);
    await held.clock.advance(3000);
    assertEquals(held.counts.aborted, 1);
    assertEquals(readData(await response.text()), []);
  },
  async "connections.streams"() {
    await using held = start({ connections: { streams: 2 } });
    const open = await Promise.all([1, 2].map(() => held.server.fetch(...toRequest("subscriptions/listen", listen))));
    await refuse(held, "connections.streams", 503, "subscriptions/listen", listen);
    await open[0].body?.cancel();
    const third = await held.server.fetch(...toRequest("subscriptions/listen", listen));
    assertEquals(third.status, 200);
    for (const each of [open[1], third]) await each.body?.cancel();
    // Legacy sessions can have the same number of streams.
    const visits: Response[] = [];
    for (let i = 0; i < 3; i++) {
      const headers = { accept: "text/event-stream", "mcp-session-id": await startSession(url, held.server.fetch) };
      visits.push(await held.server.fetch(new Request(url, { headers })));
    }
    const [first, second, last] = visits;
    assertEquals([first.status, second.status, last.status, last.headers.get("retry-after")], [200, 200, 503, "1"]);
    assertStringIncludes(await last.text(), "(connections.streams, connections.streamsPerClient)");
    for (const each of [first, second]) await each.body?.cancel();
  },
  async "connections.streamsPerClient"() {
    await using held = start({ connections: { streamsPerClient: 1 } });
    const ada = await held.server.fetch(...toRequest("subscriptions/listen", listen, { principal: "ada" }));
    await refuse(held, "connections.streamsPerClient", 503, "subscriptions/listen", listen, { principal: "ada" });
    const bob = await held.server.fetch(...toRequest("subscriptions/listen", listen, { principal: "bob" }));
    await ada.body?.cancel();
    const again = await held.server.fetch(...toRequest("subscriptions/listen", listen, { principal: "ada" }));
    assertEquals([bob.status, again.status], [200, 200]);
    for (const each of [bob, again]) await each.body?.cancel();
  },
  async "auth.running"() {
    await using held = startAuth({ running: 1 });
    await refuseSecondAuth(held, "auth.running", "203.0.113.2");
  },
  async "endpoints.open"() {
    const { pass, open } = gate();
    const hold = tool({ name: "hold", run: async () => (running++, await pass, "held") });
    let running = 0;
    const limits = testLimits({ endpoints: { open: 1 } });
    const observer: Observer = { limit: ({ limit }) => reached.add(limit) };
    const server = openServer({ path: "/:tenant/mcp", handlers: [hold], limits, observer });
    const send = (tenant: string) => {
      const { headers, body } = toCall("hold");
      return server.fetch(new Request(`http://localhost/${tenant}/mcp`, { method: "POST", headers, body }));
    };
    const first = send("ada");
    await until(() => running === 1, "the call runs");
    const refused = await send("bob");
    assertEquals([refused.status, refused.headers.get("retry-after")], [503, "1"]);
    assertStringIncludes(await refused.text(), "(endpoints.open)");
    open();
    await (await first).text();
    const second = await send("bob");
    assertEquals(second.status, 200);
    await second.text();
  },
  async "auth.runningPerPeer"() {
    await using held = startAuth({ runningPerPeer: 1 });
    await refuseSecondAuth(held, "auth.runningPerPeer", "203.0.113.1");
  },
  async "auth.timeoutMs"() {
    await using held = startAuth({ timeoutMs: 5000 });
    const { first } = await refuseSecondAuth(held, "", "");
    await held.clock.advance(5000);
    const response = await first;
    assertEquals([response.status, response.headers.get("retry-after")], [503, "1"]);
    assertStringIncludes(await response.text(), "auth.timeoutMs");
    assertEquals(held.faults.length, 1);
  },
  async "auth.failuresPerPeer"() {
    await using held = startGuessing(oauth({ ...ISSUED, introspection: () => pending() }));
    for (let i = 0; i < 60; i++) assertEquals((await held.guess(`Bearer junk-${i}`)).status, undefined);
    assertEquals((await held.guess("Bearer first")).status, undefined, "it has its turn");
    const next = await held.guess("Bearer next");
    await held.clock.advance(5000);
    await refuseGuess(next, "auth.failuresPerPeer", "auth.delayMs");
  },
  async "auth.failuresPerUser"() {
    await using held = startGuessing(basicAuth({ users: { ada: "right" } }));
    for (let i = 0; i < 10; i++) assertEquals((await held.guess(WRONG)).status, 401);
    const next = await held.guess(WRONG);
    assertEquals(next.status, undefined);
    await held.clock.advance(1000);
    assertEquals((await next.response).status, 401);
  },
  async "auth.delayed"() {
    await using held = startGuessing(basicAuth({ users: { ada: "right" } }), { delayed: 1 });
    for (const hostname of PEERS) for (let i = 0; i < 10; i++) await held.guess(WRONG, hostname);
    assertEquals((await held.guess(WRONG)).status, undefined);
    await refuseGuess(await held.guess(WRONG, PEERS[1]), "auth.delayed");
    await held.clock.advance(1000);
  },
  async "auth.delayedPerPeer"() {
    await using held = startGuessing(basicAuth({ users: { ada: "right" } }), { delayedPerPeer: 1 });
    for (let i = 0; i < 10; i++) await held.guess(WRONG);
    assertEquals((await held.guess(WRONG)).status, undefined);
    await refuseGuess(await held.guess(WRONG), "auth.delayedPerPeer");
    await held.clock.advance(1000);
  },
  async "auth.delayMs"() {
    await using held = startGuessing(basicAuth({ users: { ada: "right" } }), { delayMs: 500 });
    for (let i = 0; i < 10; i++) await held.guess(WRONG);
    const next = await held.guess(WRONG);
    await held.clock.advance(499);
    assertEquals(next.status, undefined);
    await held.clock.advance(1);
    await refuseGuess(next, "auth.failuresPerUser", "auth.delayMs");
  },
  async "memory.bytesPerClient"() {
    await using held = start({ memory: { bytesPerClient: 200_000 } });
    const { first } = await refuseSecondCall(held, "memory.bytesPerClient", "ada");
    const other = callLarge(held, "bob");
    held.open();
    assertEquals([(await first).status, (await other).status], [200, 200]);
    for (const each of [first, other]) await (await each).body?.cancel();
  },
  async "memory.bytes"() {
    await using held = start({ memory: { bytes: 200_000 } });
    const { first } = await refuseSecondCall(held, "memory.bytes", "bob");
    held.open();
    await (await first).body?.cancel();
    const again = await callLarge(held, "bob");
    assertEquals(again.status, 200);
    await again.body?.cancel();
  },
  async "streams.watchedUris"() {
    await using held = start(testLimits({ streams: { watchedUris: 2 } }));
    const many = { notifications: { resourceSubscriptions: ["test://a", "test://b", "test://c"] } };
    await refuse(held, "streams.watchedUris", 400, "subscriptions/listen", many);
    const session = await startSession(url, held.server.fetch);
    for (const uri of ["test://a", "test://b"]) {
      assert((await send(held, "resources/subscribe", { uri }, { session })).result);
    }
    const { error } = await send(held, "resources/subscribe", { uri: "test://c" }, { session });
    assertStringIncludes(error?.message ?? "", "streams.watchedUris");
  },
  async "connections.sessions"() {
    await using held = start({ connections: { sessions: 2 } });
    const busy = await Promise.all([1, 2].map(() => startSession(url, held.server.fetch)));
    const streams = await Promise.all(
      busy.map((session) =>
        held.server.fetch(new Request(url, { headers: { accept: "text/event-stream", "mcp-session-id": session } }))
      ),
    );
    const session = await startSession(url, held.server.fetch);
    await refuse(held, "(connections.sessions)", 503, "ping", {}, { session });
    const headers = { accept: "text/event-stream", "mcp-session-id": session };
    for (const method of ["GET", "DELETE"]) {
      const response = await held.server.fetch(new Request(url, { method, headers }));
      assertEquals([response.status, response.headers.get("retry-after")], [503, "1"]);
      assertStringIncludes(await response.text(), "(connections.sessions)");
    }
    // The first session becomes idle, so its state is evicted. The state is restored later, when another session can be
    // evicted.
    await streams[0].body?.cancel();
    assert((await send(held, "ping", {}, { session })).result);
    await streams[1].body?.cancel();
    for (const each of [...busy, session]) assert((await send(held, "ping", {}, { session: each })).result);
  },
  async "sessions.openPerClient"() {
    await using held = start({ sessions: { openPerClient: 2 } });
    const as = (id: string) => (request: Request) => held.server.fetch(request, { principal: { id } });
    const ping = async (session: string, fetch: (request: Request) => Promise<Response>) => {
      const { headers } = toCall("quick", { session });
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
      const response = await fetch(new Request(url, { method: "POST", headers, body }));
      return [response.status, /\(sessions\.openPerClient\)/.test(await response.text())];
    };
    const [ada, eve] = [as("ada"), as("eve")];
    const busy = await Promise.all([1, 2].map(() => startSession(url, ada)));
    const streams = await Promise.all(
      busy.map((session) =>
        ada(new Request(url, { headers: { accept: "text/event-stream", "mcp-session-id": session } }))
      ),
    );
    const third = await startSession(url, ada);
    assertEquals(await ping(third, ada), [503, true]);
    const other = await startSession(url, eve);
    assertEquals(await ping(other, eve), [200, false], "another principal has room");
    // The server evicts an idle session of the same principal, not of another principal.
    await streams[0].body?.cancel();
    assertEquals(await ping(third, ada), [200, false]);
    assertEquals(await ping(busy[0], ada), [200, false], "its state is restored when there is room again");
    await streams[1].body?.cancel();
    // Sessions without a principal count only towards the limit for all clients.
    const nobody = await Promise.all([1, 2, 3].map(() => startSession(url, held.server.fetch)));
    for (const session of nobody) assertEquals(await ping(session, held.server.fetch), [200, false]);
    // After a session has ended, only the remaining sessions of the principal count.
    const end = (session: string) =>
      ada(new Request(url, { method: "DELETE", headers: { "mcp-session-id": session } }));
    const open = async () => {
      const session = await startSession(url, ada);
      const { status } = await ada(
        new Request(url, { headers: { accept: "text/event-stream", "mcp-session-id": session } }),
      );
      return { session, status };
    };
    for (const session of [third, busy[0], busy[1]]) await end(session);
    const first = await open();
    assertEquals([first.status, (await open()).status, (await open()).status], [200, 200, 503]);
    await end(first.session);
    assertEquals([(await open()).status, (await open()).status], [200, 503]);
  },
  async "connections.sessionIdleMs"() {
    await using held = start({ connections: { sessionIdleMs: 120_000 } });
    const session = await startSession(url, held.server.fetch);
    assert((await send(held, "ping", {}, { session })).result);
    await held.clock.advance(100_000);
    assert((await send(held, "ping", {}, { session })).result);
    await held.clock.advance(200_000);
    assertEquals((await send(held, "ping", {}, { session })).status, 404);
  },
  async "sessions.lifeMs"() {
    await using held = start(testLimits({ sessions: { lifeMs: 600_000 } }));
    const session = await startSession(url, held.server.fetch);
    const unused = await startSession(url, held.server.fetch);
    for (let i = 0; i < 5; i++) {
      assert((await send(held, "ping", {}, { session })).result);
      await held.clock.advance(110_000);
    }
    await held.clock.advance(120_000);
    assertEquals((await send(held, "ping", {}, { session })).status, 404);
    assertEquals((await send(held, "ping", {}, { session: unused })).status, 404);
  },
  // streams_pressure_test.ts and streams_events_test.ts test the limits on replay.
  "replay.events": undefined,
  "replay.bytes": undefined,
  "replay.ms": undefined,
  // tests/eras/resume_access_test.ts tests this limit.
  "replay.callsBytes": undefined,
  // tests/behaviour/handshake_test.ts tests this limit.
  "sessions.clientInfoBytes": undefined,
  // Tests in tests/search/ check these limits, which no request exceeds: more words are ignored.
  "search.words": undefined,
  "search.bytes": undefined,
  // Tests in tests/proxy/ test these limits.
  "proxy.connections": undefined,
  "proxy.connectionsPerClient": undefined,
  "proxy.parked": undefined,
  "proxy.parkedPerClient": undefined,
  "proxy.bytes": undefined,
  "proxy.watched": undefined,
  "proxy.watchedPerClient": undefined,
  // tests/stores/client_shares_test.ts tests this limit.
  "store.operations": undefined,
  async "calls.pageItems"() {
    await using held = start(testLimits({ calls: { pageItems: 2 } }));
    const { result = {} } = await send(held, "resources/list");
    assertEquals([Object(result.resources).length, typeof result.nextCursor], [2, "string"]);
    const next = await send(held, "resources/list", { cursor: result.nextCursor });
    assertEquals([Object(next.result?.resources).length, next.result?.nextCursor], [1, undefined]);
  },
  async "calls.closeMs"() {
    const held = start({ calls: { closeMs: 10_000 } });
    const coming = started(send(held, "tools/call", { name: "hold" }));
    await until(() => held.counts.started === 1, "it runs");
    const closing = held.server.close();
    await held.clock.advance(9000);
    assertEquals(held.counts.aborted, 0);
    await held.clock.advance(2000);
    await closing;
    assertEquals(held.counts.aborted, 1);
    assertStringIncludes((await coming).error?.message ?? "", "closing");
    held.open();
  },
};

const toPaths = (limits: Bounds) =>
  Object.entries(limits).flatMap(([group, values]) => Object.keys(values).map((name) => `${group}.${name}`));

Deno.test("this file has a test for every limit", () =>
  assertEquals(Object.keys(cases).sort(), toPaths(BOUNDS).sort()));

/**
 * Limits on the server's own messages. Clients cannot exceed these limits, so the server never reports them to an
 * observer.
 */
const unheard: readonly string[] = ["calls.pageItems", "streams.openAfterMs", "streams.heartbeatMs"];

for (const [name, run] of Object.entries(cases)) {
  if (!run) continue;
  Deno.test(`the server enforces limits.${name}, and reports reaching the limit to the observer`, async () => {
    reached.clear();
    await run();
    assertEquals(reached.has(name), !unheard.includes(name), `heard: ${[...reached]}`);
  });
}

Deno.test("the 769th subscription of clients without an address is refused, and the other subscriptions stay open", async () => {
  await using held = start({});
  const open = await Promise.all(
    Array.from({ length: 768 }, () => held.server.fetch(...toRequest("subscriptions/listen", listen))),
  );
  await refuse(held, "connections.streams", 503, "subscriptions/listen", listen);
  const reading = open.map((each) => each.text());
  held.server.resourceUpdated("test://a");
  held.server.resourceUpdated("test://b");
  await held.clock.advance(100);
  const closing = held.server.close();
  await held.clock.advance(10_000);
  await closing;
  for (const text of await Promise.all(reading)) {
    const messages = readData(text).map((message) => Object(message));
    assertEquals(messages.map(({ method }) => method ?? "result"), [
      "notifications/subscriptions/acknowledged",
      "notifications/resources/updated",
      "result",
    ]);
  }
});

Deno.test("an invalid subscription filter is refused, and entries that the server cannot serve are omitted", async () => {
  await using held = start({});
  for (
    const notifications of [undefined, null, 5, "x", [], { resourceSubscriptions: "x" }, { resourceSubscriptions: [5] }]
  ) {
    const { status, error } = await send(held, "subscriptions/listen", { notifications });
    assertEquals([status, error?.code], [400, -32602], JSON.stringify(notifications));
  }
  const uris = Array.from({ length: 50_000 }, (_, i) => `test://${i}`);
  await refuse(held, "streams.watchedUris", 400, "subscriptions/listen", {
    notifications: { resourceSubscriptions: uris },
  });
  const odd = JSON.parse('{"promptsListChanged":true,"toolsListChanged":true,"unknown":true,"__proto__":{"x":true}}');
  const response = await held.server.fetch(...toRequest("subscriptions/listen", { notifications: odd }));
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("acknowledged")) text += (await reader?.read())?.value;
  assertEquals(Object(readData(text)[0]).params.notifications, { toolsListChanged: true });
  await reader?.cancel();
});

Deno.test("new sessions beyond the limit evict the state of idle sessions, and the idle sessions stay valid", async () => {
  await using held = start({ connections: { sessions: 50 } });
  const sessions: string[] = [];
  for (let i = 0; i < 200; i++) sessions.push(await startSession(url, held.server.fetch));
  for (const session of [...sessions, ...sessions]) assert((await send(held, "ping", {}, { session })).result);
});

Deno.test("thousands of invalid session ids occupy no memory", async () => {
  await using held = start({ connections: { sessions: 50 } });
  const real = await startSession(url, held.server.fetch);
  for (let i = 0; i < 2000; i++) {
    const session = i % 2 ? `${real.slice(0, -8)}${String(i).padStart(8, "A")}` : crypto.randomUUID();
    assertEquals((await send(held, "ping", {}, { session })).status, 404);
  }
  assert((await send(held, "ping", {}, { session: real })).result);
});

Deno.test("after 10,000 calls in one session, no listener is left and no warning was printed", async () => {
  await using held = start({});
  const session = await startSession(url, held.server.fetch);
  for (let i = 0; i < 10_000; i++) assert((await send(held, "tools/call", quick, { session })).result);
  assertEquals(held.faults, []);
});

Deno.test("a response that is repeated, late or from another client does not reach a handler", async () => {
  await using held = start({ calls: { answerMs: 10_000 } });
  const asked: { readonly session: string; readonly id: unknown; readonly reading: Promise<string> }[] = [];
  for (let i = 0; i < 2; i++) {
    const session = await startSession(url, held.server.fetch);
    const response = await held.server.fetch(new Request(url, toCall("ask", { session })));
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!text.includes("elicitation/create")) text += (await reader?.read())?.value;
    const rest = (async () => {
      for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) text += read.value;
      return text;
    })();
    asked.push({ session, id: Object(readData(text).at(-1)).id, reading: rest });
  }
  const say = async (session: string, message: Json) => {
    const { headers } = toCall("", { session });
    const body = JSON.stringify({ jsonrpc: "2.0", ...message });
    const response = await held.server.fetch(new Request(url, { method: "POST", headers, body }));
    await response.text();
    return response.status;
  };
  const accepted = { action: "accept", content: {} };
  const [one, two] = asked;
  // Responses with an unknown id, the id of a question in the other session, or an id of another JSON type.
  for (const id of ["ask-99", "x", 1, 0, two.id]) assertEquals(await say(one.session, { id, result: accepted }), 202);
  assertEquals(await say(two.session, { id: two.id, result: accepted }), 202);
  assertEquals(await say(two.session, { id: two.id, result: { action: "decline" } }), 202);
  assertStringIncludes(await two.reading, '"asked"');
  await held.clock.advance(11_000);
  assertStringIncludes(await one.reading, "calls.answerMs");
  assertEquals(await say(one.session, { id: one.id, result: accepted }), 202);
});

Deno.test("with a ticket from ctx.once, a payment happens only once, even if the client repeats its answer", async () => {
  const used = new Set<string>();
  const pay = tool({
    name: "pay",
    async run(_input, ctx) {
      const ticket = await ctx.once("ticket", () => crypto.randomUUID());
      const sure = await ctx.elicit("sure", { message: "Pay $10?", schema: yes });
      if (sure.action !== "accept") return "not paid";
      if (used.has(ticket)) return "paid before";
      used.add(ticket);
      return "paid";
    },
  });
  await using held = start({}, { handlers: [pay] });
  const { result = {} } = await send(held, "tools/call", { name: "pay" });
  const inputResponses = JSON.parse(
    '{"sure":{"action":"accept","content":{"ok":true}},"other":5,"__proto__":{"x":1},"constructor":{}}',
  );
  const params = { name: "pay", requestState: result.requestState, inputResponses };
  const answers = await Promise.all(Array.from({ length: 50 }, () => send(held, "tools/call", params)));
  const texts = answers.map(({ result }) => Object(result?.content)[0].text).sort();
  assertEquals(texts, ["paid", ...Array.from({ length: 49 }, () => "paid before")].sort());
  assertEquals(held.faults, []);
});

Deno.test("an answer that accepts one price is not accepted for another price", async () => {
  let price = 10;
  const pay = tool({
    name: "pay",
    async run(_input, ctx) {
      const asked = price;
      const sure = await ctx.elicit("sure", { message: `Pay $${asked}?`, schema: yes });
      return sure.action === "accept" ? `paid ${asked}` : "not paid";
    },
  });
  await using held = start({}, { handlers: [pay] });
  const first = await send(held, "tools/call", { name: "pay" });
  price = 12;
  const inputResponses = { sure: { action: "accept", content: {} } };
  const again = await send(held, "tools/call", {
    name: "pay",
    requestState: first.result?.requestState,
    inputResponses,
  });
  assertEquals(Object(again.result?.inputRequests).sure.params.message, "Pay $12?");
  const last = await send(held, "tools/call", {
    name: "pay",
    requestState: again.result?.requestState,
    inputResponses,
  });
  assertEquals(Object(last.result?.content)[0].text, "paid 12");
});

Deno.test("requestState is valid if it was sealed with one of the server's secrets, and is refused otherwise", async () => {
  const [old, young, foreign] = ["old", "young", "foreign"].map((word) => word.repeat(20));
  const at = async (secret: string | readonly string[] | undefined, params: Json) => {
    await using held = start({}, { secret });
    return await send(held, "tools/call", { name: "ask", ...params });
  };
  const { result = {} } = await at(old, {});
  const inputResponses = { q0: { action: "accept", content: {} } };
  const params = { requestState: result.requestState, inputResponses };
  for (
    const [secret, isGood] of [[old, true], [[young, old], true], [[young], false], [foreign, false], [
      undefined,
      false,
    ]] as const
  ) {
    const { status, error } = await at(secret, params);
    assertEquals([status, error?.code], isGood ? [200, undefined] : [400, -32602], String(secret));
  }
});

const THIN: readonly (readonly (readonly [string, string])[])[] = [
  [["[", "]"]],
  [['{"":', "}"]],
  [["[", "]"], ['{"":', "}"]],
  [['{ "a" : [', "]}"]],
];

Deno.test("the limit on nesting levels is exact, however few characters a level takes", async () => {
  const { below, pick } = random(30);
  for (let i = 0; i < 300; i++) {
    const most = 1 + below(40);
    const depth = most + pick([-1, 0, 1]);
    const thin = pick(THIN);
    let body = "0";
    let levels = 0;
    while (levels < depth) {
      const [open, close] = pick(thin);
      levels += open.length > 5 ? 2 : 1;
      body = open + body + close;
    }
    await using held = start(testLimits({ request: { depth: most } }));
    const { headers } = toCall("quick");
    const response = await held.server.fetch(new Request(url, { method: "POST", headers, body }));
    assertEquals(
      (await response.text()).includes("request.depth"),
      levels > most,
      `${most} levels, and ${body}`,
    );
  }
});
