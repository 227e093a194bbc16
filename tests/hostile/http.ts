// Serves a server on a port, and sends test cases to the server over raw sockets. After each case, the server must
// still respond to a valid call, have reported no fault, and have shown no internals.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { createServer, prompt, type Server, type ServerOptions, tool } from "../../mod.ts";
import { startHttpServer } from "../../src/testing/http_server.ts";
import { hasSentence } from "../support/messages.ts";
import { connectRaw, type RawAnswer, type RawConnection } from "./raw.ts";
import { findSecret } from "./secrecy.ts";
import { toReply } from "../support/requests.ts";

export type Json = { readonly [key: string]: unknown };

export const MODERN = "2026-07-28";
export const LEGACY = "2025-11-25";
export const META = "io.modelcontextprotocol/";

/** The runtime that runs the tests. */
export const runtime: "deno" | "bun" = "Bun" in globalThis ? "bun" : "deno";

/**
 * Header lines that replace the lines of a valid call. A list becomes several lines with the same name, `null` removes
 * a line, and `undefined` changes nothing.
 */
export type HeaderLines = Readonly<Record<string, string | readonly string[] | null | undefined>>;

/** The parts of a raw request. Omitted parts are taken from a valid call. */
export interface RawRequest {
  readonly method?: string;
  readonly target?: string;
  readonly headers?: HeaderLines;
  readonly body?: string | Uint8Array;
}

/** How the runtime refuses a request before the server receives it: with a status, or by closing the connection. */
type Dropped = number | "closed";

/** A request and its expected result. If the request needs no socket, it is also passed to `fetch` directly. */
export interface Case extends RawRequest {
  /** Name of the test step. */
  readonly name: string;
  /** The whole raw request. Replaces all parts. */
  readonly raw?: string | ((port: number) => string);
  readonly status: number;
  /** Expected code of the error. `undefined` if the response has no error. */
  readonly code?: number;
  /** Expected id of the JSON-RPC response. `undefined` if the response has no id. */
  readonly id?: unknown;
  /** Text that the body must contain, or the error's message. */
  readonly says?: string;
  /** Headers that the response must have. */
  readonly has?: Readonly<Record<string, string | null>>;
  /** Whether a tool is allowed to run. By default, the case fails if a tool runs. */
  readonly runs?: boolean;
  /** Expected result on runtimes that refuse the request before the server receives it. */
  readonly dropped?: { readonly deno?: Dropped; readonly bun?: Dropped };
}

/** A running server, and functions that send requests to the server. */
export interface Fixture extends AsyncDisposable {
  readonly server: Server;
  readonly port: number;
  /** Names of the tools that have run, in order. */
  readonly ran: string[];
  /** Errors that `observer.fault` has received. */
  readonly faults: unknown[];
  connect(): Promise<RawConnection>;
  /** Sends a request over a new connection, and reads the response. */
  send(request: RawRequest): Promise<RawAnswer | undefined>;
  /** The header lines and the body of a valid call. */
  readonly good: Required<RawRequest>;
  /** Asserts that a valid call gets a response. */
  checkAlive(what: string): Promise<void>;
  check(each: Case): Promise<void>;
}

export interface FixtureOptions {
  /** Revision of the session in which requests are sent. If omitted, requests have no session. */
  readonly version?: string;
  readonly server?: Omit<Partial<ServerOptions>, "observer">;
  readonly create?: (options: ServerOptions) => Server;
}

/** Returns the `_meta` of a valid modern request, with additional fields. */
export function toMeta(more: Json = {}): Json {
  return {
    [META + "protocolVersion"]: MODERN,
    [META + "clientInfo"]: { name: "hostile", version: "1" },
    [META + "clientCapabilities"]: {},
    ...more,
  };
}

export const initialize = {
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: "hostile", version: "1" } },
};

/** Returns the message of a valid tool call in the given era, with changed fields. */
export function toMessage(era: "modern" | "legacy", change: Json = {}, params: Json = {}, meta: Json = {}): Json {
  return {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "good", arguments: {}, ...era === "modern" ? { _meta: toMeta(meta) } : {}, ...params },
    ...change,
  };
}

/** Starts a server on a free port. With `version`, opens a session first. */
export async function startFixture({ version, server: more, create = createServer }: FixtureOptions = {}): Promise<
  Fixture
> {
  const ran: string[] = [];
  const faults: unknown[] = [];
  const any = { type: "object" } as const;
  const server = create({
    name: "hostile",
    version: "1.0.0",
    handlers: [
      tool({ name: "good", run: () => (ran.push("good"), "good") }),
      tool({ name: "echo", input: any, run: (input) => (ran.push("echo"), JSON.stringify(input)) }),
      tool({
        name: "steps",
        async run(_input, ctx) {
          ran.push("steps");
          await ctx.progress(1);
          await ctx.progress(2);
          return "done";
        },
      }),
      tool({
        name: "hold",
        run: (_input, { signal }) =>
          new Promise<string>((resolve) => {
            ran.push("hold");
            signal.addEventListener("abort", () => {
              ran.push("aborted");
              resolve("aborted");
            });
          }),
      }),
      tool({
        name: "region",
        input: {
          type: "object",
          properties: {
            region: { type: "string", "x-mcp-header": "Region" },
            count: { type: "integer", "x-mcp-header": "Count" },
            constructor: { type: "string", "x-mcp-header": "Built" },
          },
        },
        run: () => (ran.push("region"), "here"),
      }),
      prompt({ name: "gr\u00fcezi", run: () => "Hello" }),
    ],
    observer: { fault: ({ error }) => faults.push(error) },
    ...more,
  });
  const host = startHttpServer(server.fetch);
  const port = Number(new URL(host.origin).port);
  const connections = new Set<RawConnection>();

  async function connect(): Promise<RawConnection> {
    const connection = await connectRaw(port);
    connections.add(connection);
    return connection;
  }

  async function send(request: RawRequest): Promise<RawAnswer | undefined> {
    const connection = await connect();
    await connection.write(toBytes(port, good, request));
    const answer = await connection.read({ isHead: request.method === "HEAD" });
    connection.close();
    return answer;
  }

  const body = JSON.stringify(toMessage(version ? "legacy" : "modern"));
  let good: Required<RawRequest> = {
    method: "POST",
    target: "/mcp",
    headers: {
      host: `127.0.0.1:${port}`,
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
    },
    body,
  };
  if (version) {
    const hello = JSON.stringify({ ...initialize, params: { ...initialize.params, protocolVersion: version } });
    const answer = await send({ body: hello });
    assertEquals(answer?.status, 200, answer?.body);
    const session = answer?.headers.get("mcp-session-id") ?? "";
    good = { ...good, headers: { ...good.headers, "mcp-protocol-version": version, "mcp-session-id": session } };
  } else {
    const own = { "mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "good" };
    good = { ...good, headers: { ...good.headers, ...own } };
  }
  // This connection stays open, to check that requests on other connections do not affect it.
  const witness = await connect();

  async function checkAlive(what: string): Promise<void> {
    await witness.write(toBytes(port, good, {}));
    const answer = await witness.read();
    assert(answer, `${what}: the server closed the connection of another client`);
    assertEquals(answer.status, 200, `${what}: the next valid call got ${answer.body}`);
    assertEquals(JSON.parse(toReply(answer.body)).result.content[0].text, "good", what);
    const at = ran.lastIndexOf("good");
    assert(at >= 0, `${what}: the next valid call did not run`);
    ran.splice(at, 1);
    assertEquals(faults, [], what);
  }

  async function check(each: Case): Promise<void> {
    const { name, raw, runs = each.status === 200 } = each;
    ran.length = 0;
    const connection = await connect();
    try {
      const text = typeof raw === "function" ? raw(port) : raw;
      await connection.write(text === undefined ? toBytes(port, good, each) : latin1(text));
      judge(each, await connection.read({ isHead: each.method === "HEAD" }));
    } finally {
      connection.close();
    }
    const request = toRequest(good, each);
    if (request) {
      const { status, headers, body } = await server.fetch(request, { remoteAddr: { hostname: "127.0.0.1" } });
      judge(each, { status, headers, body: await new Response(body).text() });
    }
    if (!runs && each.dropped?.[runtime] !== 200) assertEquals(ran, [], `${name}: a tool ran`);
    ran.length = 0;
    await checkAlive(name);
  }

  return {
    server,
    port,
    ran,
    faults,
    get good() {
      return good;
    },
    connect,
    send,
    checkAlive,
    check,
    async [Symbol.asyncDispose]() {
      for (const connection of connections) connection.close();
      await server.close();
      await host.stop();
    },
  };
}

/** Registers a test that sends each case to the same server, as a separate step. */
export function cases(title: string, options: FixtureOptions, list: (fixture: Fixture) => readonly Case[]): void {
  Deno.test(title, async (t) => {
    await using fixture = await startFixture(options);
    for (const each of list(fixture)) await t.step(each.name, () => fixture.check(each));
  });
}

/** Returns the JSON-RPC error of a body. Throws if the body contains anything else. */
export function readError(body: string): { readonly code: number; readonly message: string; readonly id?: unknown } {
  const { jsonrpc, id, error, ...rest } = JSON.parse(body);
  assertEquals(
    [jsonrpc, Number.isInteger(error?.code), typeof error?.message, rest],
    ["2.0", true, "string", {}],
    body,
  );
  return { code: error.code, message: error.message, id };
}

/** Asserts that a text contains no stack, file path or parser message. */
export function checkSecrecy(text: string, what: string): void {
  assertEquals(findSecret(text), undefined, `${what}: shows internals: ${text.slice(0, 500)}`);
}

function judge({ name, status, code, id, says, has = {}, dropped }: Case, answer: RawAnswer | undefined): void {
  const drop = dropped?.[runtime];
  if (answer) checkSecrecy(answer.body, name);
  // Check only the status of a response by the runtime itself.
  if (drop !== undefined) return assertEquals(answer?.status ?? "closed", drop, name);
  assert(answer, `${name}: the connection was closed without a response`);
  const { headers, body } = answer;
  const error = answer.status >= 400 && body !== "" ? readError(body) : undefined;
  const inside = error ??
    (body && headers.get("content-type") === "application/json" ? JSON.parse(body).error : undefined);
  assertEquals([answer.status, inside?.code], [status, code], `${name}: ${body.slice(0, 500)}`);
  if (code !== undefined) {
    const said = JSON.parse(body);
    assertEquals([said.id, "id" in said], [id, id !== undefined], `${name}: ${body.slice(0, 500)}`);
    assertEquals(headers.get("content-type"), "application/json", name);
    assert(body.length < 1500, `${name}: the error repeats the input`);
  }
  if (says) assertStringIncludes(hasSentence(says) ? inside?.message : body, says, name);
  for (const [header, value] of Object.entries(has)) assertEquals(headers.get(header), value, `${name}: ${header}`);
}

/** Encodes a request as bytes. The head is encoded as Latin-1, so that it can contain any byte. */
export function toBytes(port: number, good: Required<RawRequest>, request: RawRequest): Uint8Array {
  const { method = good.method, target = good.target, headers = {}, body = good.body } = request;
  const hasBody = !["GET", "HEAD", "DELETE", "OPTIONS", "TRACE", "CONNECT"].includes(method) ||
    request.body !== undefined;
  const bytes = !hasBody ? new Uint8Array(0) : typeof body === "string" ? new TextEncoder().encode(body) : body;
  const lines = new Map<string, string | readonly string[] | null | undefined>(
    Object.entries({ host: `127.0.0.1:${port}`, ...good.headers }),
  );
  if (hasBody) lines.set("content-length", `${bytes.length}`);
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) lines.set(name, value);
  let head = `${method} ${target} HTTP/1.1\r\n`;
  for (const [name, value] of lines) for (const each of [value ?? []].flat()) head += `${name}: ${each}\r\n`;
  const first = latin1(`${head}\r\n`);
  const all = new Uint8Array(first.length + bytes.length);
  all.set(first);
  all.set(bytes, first.length);
  return all;
}

/** Headers that a runtime reads itself. */
const FRAMING = ["host", "content-length", "transfer-encoding"];

/** Returns the request of a case, or `undefined` if only a socket can send it. */
function toRequest(good: Required<RawRequest>, each: Case): Request | undefined {
  const { method = "POST", headers = {}, body = good.body } = each;
  const all = Object.entries({ ...good.headers, ...headers });
  const lines = all.filter((line): line is [string, string] => typeof line[1] === "string");
  const isPlain = all.every(([, value]) => !Array.isArray(value)) && !FRAMING.some((name) => name in headers);
  if (!isPlain || each.raw || each.target || each.dropped || !/^(POST|PUT|PATCH|GET|DELETE|OPTIONS)$/.test(method)) {
    return;
  }
  // The body is sent as bytes, because a string would set its own Content-Type.
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : Uint8Array.from(body);
  const hasBody = method.startsWith("P") || each.body !== undefined;
  return new Request("http://localhost/mcp", { method, headers: lines, body: hasBody ? bytes : undefined });
}

/** Encodes text with one byte per character. */
export function latin1(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}
