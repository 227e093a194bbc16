// Sends inputs to a server over three transports, and checks the responses.
import type { Server } from "../../mod.ts";
import { startHttpServer } from "../../src/testing/http_server.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";
import { connectRaw, type RawConnection } from "../hostile/raw.ts";
import { findSecret } from "../hostile/secrecy.ts";
import { type Random, random } from "../support/random.ts";
import { damageHead, fromLatin1, makeInput, makeLine, toLatin1 } from "./mutation.ts";
import { judge, type Kind, type Outcome, readKind } from "./oracle.ts";
import { type Handed, type Input, MODERN, toMirror, toObject } from "./samples.ts";
import { createTarget, LINE_BYTES, type Target } from "./target.ts";
import { readReply } from "../support/requests.ts";

/** An input with an unexpected response. */
export interface Failure {
  readonly reason: string;
  /** The seed that creates the input again. */
  readonly seed: number;
  /** The input, as a line of a corpus file. */
  readonly input: string;
}

/** The result of a run. */
export interface Tally {
  /** The number of responses, by kind. */
  readonly answers: ReadonlyMap<string, number>;
  readonly failures: readonly Failure[];
}

/** The first seed, and the number of inputs. */
export interface Run {
  readonly seed: number;
  readonly count: number;
}

const HANG_TICKS = 10;
const TICK_MS = 250;
/**
 * A longer time between two ticks, in milliseconds, means that this process was blocked. A busy machine suspends a
 * process for a shorter time.
 */
const STANDSTILL_MS = 4000;

/** Sends inputs directly to `fetch`. */
export function fuzzFetch(run: Run): Promise<Tally> {
  return drive(run, 16, ({ server }) => ({
    async open() {
      const visitor = await createVisitor(server);
      return async (seed) => {
        const input = makeInput(random(seed), visitor.handed, `id-${seed}`);
        return { input, ...await visitor.check(input, () => fetchOutcome(server, input)) };
      };
    },
    end: async () => {},
  }));
}

/** Sends inputs over connections that stay open for as long as the server allows. Some requests have a damaged head. */
export function fuzzSockets(run: Run): Promise<Tally> {
  return drive(run, 8, ({ server }) => {
    const host = startHttpServer(server.fetch);
    const lines: Line[] = [];
    return {
      async open() {
        const visitor = await createVisitor(server);
        const line = createLine(Number(new URL(host.origin).port));
        lines.push(line);
        return async (seed) => {
          const draw = random(seed);
          const made = makeInput(draw, visitor.handed, `id-${seed}`);
          if (draw.below(20)) return { input: made, ...await visitor.check(made, () => line.exchange(made)) };
          const raw = damageHead(draw, toHead(made, line.port)) + made.body;
          return { input: { ...made, raw }, ...await checkRaw(raw, line.port) };
        };
      },
      async end() {
        for (const line of lines) line.close();
        await host.stop();
      },
    };
  });
}

/** Sends lines through pipes, 200 lines per pipe, split at random positions. */
export async function fuzzLines({ seed, count }: Run): Promise<Tally> {
  const target = createTarget();
  const { handed } = await createVisitor(target.server);
  const answers = new Map<string, number>();
  const failures: Failure[] = [];
  for (let from = seed; from < seed + count && failures.length < 10; from += 200) {
    const draw = random(from);
    const lines = Array.from(
      { length: Math.min(200, seed + count - from) },
      (_, i) => makeLine(draw, handed, `id-${from + i}`),
    );
    const { reasons, tally } = await checkLines(target, cut(draw, lines));
    for (const [name, times] of tally) answers.set(name, (answers.get(name) ?? 0) + times);
    const input = JSON.stringify({ lines: lines.map(toLatin1) });
    failures.push(...reasons.slice(0, 3).map((reason) => ({ reason, seed: from, input })));
  }
  await target.server.close();
  return { answers, failures };
}

/** Sends one corpus input over every transport. Returns what is wrong with the responses. */
export async function replay(text: string): Promise<string[]> {
  const input: Input | { readonly lines: readonly string[] } = JSON.parse(text);
  const target = createTarget();
  const reasons: string[] = [];
  if ("lines" in input) {
    for (const seed of [1, 2, 3]) {
      const chunks = seed === 3
        ? everyByte(input.lines.map(fromLatin1))
        : cut(random(seed), input.lines.map(fromLatin1));
      reasons.push(...(await checkLines(target, chunks)).reasons);
    }
  } else {
    const visitor = await createVisitor(target.server);
    const host = startHttpServer(target.server.fetch);
    const line = createLine(Number(new URL(host.origin).port));
    const ready = visitor.complete(input);
    if (input.raw !== undefined) reasons.push((await checkRaw(input.raw, line.port)).reason ?? "");
    else {
      reasons.push((await visitor.check(ready, () => fetchOutcome(target.server, ready))).reason ?? "");
      reasons.push((await visitor.check(ready, () => line.exchange(ready))).reason ?? "");
      const alive = await line.exchange(visitor.complete(good));
      if (alive?.status !== 200) reasons.push(`the next valid call got ${alive?.status}`);
    }
    line.close();
    await host.stop();
  }
  await target.server.close();
  return [...reasons, ...target.faults.map(toReason)].filter(Boolean);
}

/** The outcome of one attempt. */
interface Verdict {
  readonly name: string;
  readonly reason?: string;
}

/** Creates the input for a seed, and sends the input. */
type Attempt = (seed: number) => Promise<Verdict & { readonly input?: Input }>;

interface Driver {
  /**
   * Opens a lane with its own sessions. If lanes shared a session, a lane that ends the session would end the other
   * lanes' calls.
   */
  open(): Promise<Attempt>;
  end(): Promise<void>;
}

// Runs several attempts concurrently, to detect input of one client that affects another client.
async function drive({ seed, count }: Run, lanes: number, start: (target: Target) => Driver): Promise<Tally> {
  const target = createTarget();
  const driver = start(target);
  const answers = new Map<string, number>();
  const failures: Failure[] = [];
  const running = new Map<number, { ticks: number; readonly giveUp: () => void }>();
  let last = performance.now();
  // Count ticks of this process instead of elapsed time, so that the time in which the machine is suspended does not
  // count.
  const watch = setInterval(() => {
    const stood = performance.now() - last - TICK_MS;
    last += stood + TICK_MS;
    if (stood > STANDSTILL_MS) {
      const reason = `nothing else ran for ${stood.toFixed(0)} ms`;
      failures.push({ reason, seed: Math.max(...running.keys()), input: "" });
    }
    for (const each of running.values()) if (++each.ticks > HANG_TICKS) each.giveUp();
  }, TICK_MS);
  let next = seed;
  await Promise.all(Array.from({ length: Math.min(lanes, count) }, async () => {
    const attempt = await driver.open();
    while (next < seed + count && failures.length < 10) {
      const at = next++;
      const { promise, resolve } = Promise.withResolvers<Awaited<ReturnType<Attempt>>>();
      const fail = (reason: string) => resolve({ name: "none", reason });
      running.set(at, { ticks: 0, giveUp: () => fail(`no response in ${HANG_TICKS * TICK_MS} ms`) });
      attempt(at).then(resolve, (error) => fail(`no answer: ${error}`));
      const { name, reason, input } = await promise;
      running.delete(at);
      answers.set(name, (answers.get(name) ?? 0) + 1);
      const problems = [...reason ? [reason] : [], ...target.faults.splice(0).map(toReason)];
      failures.push(...problems.map((reason) => ({ reason, seed: at, input: input ? JSON.stringify(input) : "" })));
    }
  }));
  clearInterval(watch);
  await driver.end();
  await target.server.close();
  return { answers, failures };
}

function toReason(fault: unknown): string {
  return `observer.fault got: ${fault instanceof Error ? fault.stack ?? fault.message : String(fault)}`;
}

/** A client that opens its sessions again when they end. */
export interface Visitor {
  readonly handed: Handed;
  /** Replaces the placeholders in an input with a live session and a live state. */
  complete(input: Input): Input;
  check(input: Input, send: () => Promise<Outcome | undefined>): Promise<Verdict>;
}

const VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const SESSION = "SESSION";

const good: Input = toInput({
  "mcp-protocol-version": "2025-11-25",
  "mcp-session-id": SESSION,
}, { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "good", arguments: {} } });

export function toInput(headers: Readonly<Record<string, string>>, body: unknown): Input {
  const all = { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers };
  return {
    method: "POST",
    target: "/mcp",
    headers: Object.entries(all),
    body: toLatin1(new TextEncoder().encode(JSON.stringify(body))),
  };
}

export async function createVisitor(server: Server): Promise<Visitor> {
  async function shake(version: string): Promise<readonly [string, string]> {
    const params = {
      protocolVersion: version,
      capabilities: { elicitation: {}, sampling: {} },
      clientInfo: { name: "f", version: "1" },
    };
    const input = toInput({}, { jsonrpc: "2.0", id: 0, method: "initialize", params });
    const response = await server.fetch(toRequest(input));
    await response.text();
    return [version, response.headers.get("mcp-session-id") ?? ""];
  }

  async function ask(name: string): Promise<string> {
    const meta = {
      "io.modelcontextprotocol/protocolVersion": MODERN,
      "io.modelcontextprotocol/clientCapabilities": { elicitation: {}, sampling: {} },
    };
    const message = {
      jsonrpc: "2.0",
      id: 0,
      method: "tools/call",
      params: { name, arguments: {}, _meta: meta },
    };
    const headers = {
      accept: "application/json",
      "mcp-protocol-version": MODERN,
      ...Object.fromEntries(toMirror(message)),
    };
    const { result } = await readReply(await server.fetch(toRequest(toInput(headers, message))));
    return result.requestState;
  }

  async function turnPage(): Promise<string> {
    const [, id] = sessions[0];
    const headers = { "mcp-protocol-version": VERSIONS[0], "mcp-session-id": id, accept: "application/json" };
    const message = { jsonrpc: "2.0", id: 0, method: "tools/list" };
    const { result } = await readReply(await server.fetch(toRequest(toInput(headers, message))));
    return result.nextCursor;
  }

  const sessions = await Promise.all(VERSIONS.map(shake));
  const handed = { sessions, state: await ask("ask"), formState: await ask("form"), cursor: await turnPage() };
  let sent = 0;

  return {
    handed,
    complete: (input) => ({
      ...input,
      headers: input.headers.map(([name, value]) => [name, value === SESSION ? sessions[0][1] : value]),
      body: input.body.replace('"STATE"', () => JSON.stringify(handed.state)),
    }),
    async check(input, send) {
      if (++sent % 20_000 === 0) [handed.state, handed.formState] = [await ask("ask"), await ask("form")];
      const outcome = await send();
      if (!outcome) return { name: "closed", reason: "the connection was closed without a response" };
      if (input.method === "DELETE" || outcome.status === 404) {
        const used = input.headers.find(([name]) => name === "mcp-session-id")?.[1];
        const at = sessions.findIndex(([, id]) => id === used);
        if (at >= 0) sessions[at] = await shake(VERSIONS[at]);
      }
      const kind = readKind(fromLatin1(input.body));
      return { name: `${outcome.status}`, reason: judge(input.method, kind, outcome) };
    },
  };
}

function hasBody({ method }: Input): boolean {
  return method !== "GET" && method !== "HEAD";
}

function toRequest(input: Input): Request {
  const headers = new Headers();
  for (const [name, value] of input.headers) headers.append(name, value);
  const body = hasBody(input) ? fromLatin1(input.body) : undefined;
  return new Request(`http://localhost${input.target}`, { method: input.method, headers, body });
}

export async function fetchOutcome({ fetch }: Server, input: Input): Promise<Outcome> {
  const response = await fetch(toRequest(input));
  const { status, headers, body } = response;
  const type = headers.get("content-type") ?? "";
  if (!isEndless(input, type) || !body) return { status, type, body: await response.text() };
  const reader = body.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return { status, type, body: new TextDecoder().decode(value), isOpen: true };
}

/** Returns whether a response is a stream that stays open. */
function isEndless({ method, body }: Input, type: string): boolean {
  if (!type.startsWith("text/event-stream")) return false;
  const kind = readKind(fromLatin1(body));
  return method === "GET" || (kind.kind === "request" && kind.method === "subscriptions/listen");
}

function toHead({ method, target, headers, body, ...rest }: Input, port: number): string {
  const length = hasBody({ method, target, headers, body, ...rest }) ? `content-length: ${body.length}\r\n` : "";
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return `${method} ${target} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n${lines}${length}\r\n`;
}

/** Sends inputs over one connection at a time. */
interface Line {
  readonly port: number;
  exchange(input: Input): Promise<Outcome | undefined>;
  close(): void;
}

function createLine(port: number): Line {
  let connection: RawConnection | undefined;

  async function attempt(input: Input): Promise<Outcome | undefined> {
    connection ??= await connectRaw(port);
    const sent = connection.write(fromLatin1(toHead(input, port) + (hasBody(input) ? input.body : "")));
    const head = await connection.readHead({ ms: 2500 });
    if (head) {
      const type = head.headers.get("content-type") ?? "";
      const isOpen = isEndless(input, type);
      const body = isOpen ? "" : await connection.readBody(head, { ms: 2500, isHead: input.method === "HEAD" });
      // Close the connection. After an early response, the server would read the rest of the request as the next
      // request.
      if (isOpen || head.status === 413 || head.headers.get("connection") === "close") close();
      else await sent;
      return { status: head.status, type, body, isOpen };
    }
    close();
  }

  function close(): void {
    connection?.close();
    connection = undefined;
  }

  return {
    port,
    close,
    async exchange(input) {
      const isOld = connection !== undefined;
      try {
        // Retry on a new connection, because the server may close an idle connection at any time.
        return await attempt(input) ?? (isOld ? await attempt(input) : undefined);
      } catch (error) {
        close();
        throw error;
      }
    },
  };
}

/**
 * Sends bytes that may not be valid HTTP. A failure is only a hang, an unexpected error, or a response that shows
 * internals.
 */
async function checkRaw(raw: string, port: number): Promise<Verdict> {
  const connection = await connectRaw(port);
  try {
    const sent = connection.write(fromLatin1(raw));
    const early = await connection.readRest({ ms: 60 }).catch(() => undefined);
    if (early === undefined) connection.end();
    const text = early || await connection.readRest({ ms: 2500 });
    await sent;
    const secret = findSecret(text);
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(text)?.[1] ?? 0);
    const isFault = status >= 500 && ![501, 503, 505].includes(status);
    return {
      name: `damaged ${status || "closed"}`,
      reason: secret ? `the response shows ${secret}` : isFault ? `status ${status}` : undefined,
    };
  } finally {
    connection.close();
  }
}

function cut(draw: Random, lines: readonly Uint8Array[]): Uint8Array[] {
  const bytes = fromLatin1(lines.map((line) => `${toLatin1(line)}\n`).join(""));
  const most = draw.pick([1, 7, 100, 5000]);
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length;) {
    const size = 1 + draw.below(most);
    chunks.push(bytes.slice(at, at + size));
    at += size;
  }
  return chunks;
}

function everyByte(lines: readonly Uint8Array[]): Uint8Array[] {
  return [...fromLatin1(lines.map((line) => `${toLatin1(line)}\n`).join(""))].map((byte) => Uint8Array.of(byte));
}

const HELLO = {
  jsonrpc: "2.0",
  id: "hello",
  method: "initialize",
  params: {
    protocolVersion: "2025-11-25",
    capabilities: { elicitation: {}, sampling: {} },
    clientInfo: { name: "f", version: "1" },
  },
};

/** Serves one pipe after a handshake, and checks the number of responses to each id. */
async function checkLines(
  { server, faults }: Target,
  chunks: readonly Uint8Array[],
): Promise<{ readonly reasons: readonly string[]; readonly tally: ReadonlyMap<string, number> }> {
  const hello = new TextEncoder().encode(`${JSON.stringify(HELLO)}\n`);
  const input = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of [hello, ...chunks]) controller.enqueue(chunk);
      controller.close();
    },
  });
  const written: Uint8Array[] = [];
  const output = (bytes: Uint8Array) => Promise.resolve(written.push(bytes));
  await serveStdio(server, { input, output, drainMs: 2500 });
  const got = new Map<string, number>();
  const tally = new Map<string, number>();
  const reasons: string[] = [];
  const text = new TextDecoder("utf-8", { fatal: true }).decode(fromLatin1(written.map(toLatin1).join("")));
  const secret = findSecret(text);
  if (secret) reasons.push(`a response shows ${secret}`);
  for (const line of text.split("\n").slice(0, -1)) {
    const message = toObject(JSON.parse(line));
    if ("method" in message) continue;
    const key = toKey(message.id);
    got.set(key, (got.get(key) ?? 0) + 1);
    const name = "result" in message ? "result" : `${toObject(message.error).code}`;
    tally.set(name, (tally.get(name) ?? 0) + 1);
  }
  const all = fromLatin1(chunks.map(toLatin1).join(""));
  for (const [key, [least, most]] of expectAnswers(all)) {
    const times = got.get(key) ?? 0;
    if (times < least || times > most) reasons.push(`${times} responses to ${key}, not ${least} to ${most}`);
    got.delete(key);
  }
  reasons.push(...[...got.keys()].map((key) => `a response to ${key}, which no request has`));
  reasons.push(...faults.splice(0).map(toReason));
  return { reasons, tally };
}

function toKey(id: unknown): string {
  return id === undefined || id === null ? "nobody" : JSON.stringify(id);
}

/** Returns the minimum and the maximum number of responses for each id. */
function expectAnswers(bytes: Uint8Array): Map<string, readonly [least: number, most: number]> {
  const wanted = new Map<string, readonly [number, number]>([[toKey("hello"), [1, 1]]]);
  const cancelled = new Set<string>();
  const add = (key: string, least: number) => {
    const [low, high] = wanted.get(key) ?? [0, 0];
    wanted.set(key, [low + least, high + 1]);
  };
  for (let at = 0; at < bytes.length;) {
    const end = bytes.indexOf(10, at);
    const line = bytes.subarray(at, end < 0 ? bytes.length : end);
    at += line.length + 1;
    const kind: Kind = line.length > LINE_BYTES ? { kind: "broken" } : readKind(line);
    if (!new TextDecoder().decode(line).trim()) continue;
    // A new handshake ends the session, and cancels its running calls. They get no response.
    if (kind.kind === "request" && kind.method === "initialize") {
      for (const [key, [, most]] of wanted) if (key !== toKey("hello")) wanted.set(key, [0, most]);
    }
    if (kind.kind === "request") add(toKey(kind.id), kind.method === "subscriptions/listen" ? 0 : 1);
    if (kind.kind === "broken") add(toKey(kind.id), 1);
    // A pipe in this revision accepts no batches, so a batch gets one error.
    if (kind.kind === "batch") add(toKey(null), 1);
    if (kind.kind === "note" && kind.method === "notifications/cancelled") cancelled.add(toKey(kind.requestId));
  }
  for (const key of cancelled) {
    const [, most] = wanted.get(key) ?? [0, 0];
    if (most) wanted.set(key, [0, most]);
  }
  return wanted;
}
