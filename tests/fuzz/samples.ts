// Valid messages of both eras, which the fuzzer turns into invalid messages.
import type { Random } from "../support/random.ts";
import { valueNames } from "./shapes.ts";

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
/** A JSON object. */
export type JsonObject = { readonly [key: string]: Json };

/** An HTTP request. The body has one character per byte, so that any body can be written as a line of text. */
export interface Input {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  /** The bytes of the whole request on a connection, if its head is no longer valid HTTP. */
  readonly raw?: string;
}

/** Values that the server issued, for use in valid messages. */
export interface Handed {
  /** Session ids, each with its protocol version. */
  readonly sessions: readonly (readonly [version: string, id: string])[];
  /** The request states of a call with a question and of a call with a form. */
  readonly state: string;
  readonly formState: string;
  /** The cursor for the second page of tools. */
  readonly cursor: string;
}

const META = "io.modelcontextprotocol/";
export const MODERN = "2026-07-28";

const state = { action: "accept", content: { ok: true, n: 3 } } as const;

const form = {
  action: "accept",
  content: { mail: "a@b.c", size: "s", colours: ["r", "g"], age: 3, sure: true },
} as const;

/** URIs of every kind, more than a client is allowed to watch. */
const manyUris: readonly string[] = Array.from(
  { length: 30 },
  (_, i) => ["note://one", `repo://o/${i}`, `dir://a/${i}`, `value://${i}`, `nowhere://${i}`][i % 5],
);

/** Methods with their parameters that are the same in every revision. */
const calls: readonly (readonly [method: string, params: JsonObject])[] = [
  ["tools/list", {}],
  ["tools/list", { cursor: "dG9vbHM6dHlwZWQ" }],
  ["tools/list", { cursor: "CURSOR" }],
  ["prompts/list", { cursor: "CURSOR" }],
  ...valueNames.flatMap((kind): [method: string, params: JsonObject][] => [
    ["tools/call", { name: "value", arguments: { kind, deep: kind > "f" } }],
  ]),
  ["tools/call", {
    name: "shape",
    arguments: {
      when: "2026-07-28T00:00:00Z",
      size: "12345678901234567890",
      tags: ["a", "a"],
      named: { a: 1 },
      count: "7",
    },
  }],
  ["tools/call", {
    name: "lenient",
    arguments: { list: "[1, 2]", map: '{"a": true}', flag: "false", either: "[1e3]" },
  }],
  ["tools/call", { name: "needy" }],
  ["resources/read", { uri: "value://stream" }],
  ["resources/read", { uri: "value://steps" }],
  ["prompts/get", { name: "shape", arguments: { count: "12", sure: "yes" } }],
  ["tools/call", { name: "good", arguments: {} }],
  ["tools/call", { name: "echo", arguments: { a: 1, b: [true, null, "x\u00e9\u{1f600}"], c: { d: { e: -1.5e3 } } } }],
  ["tools/call", {
    name: "typed",
    arguments: { name: "ada", count: 3, tags: ["a", "b"], choice: 2.5, deep: { x: {} } },
  }],
  ["tools/call", { name: "region", arguments: { region: "eu", count: 42 } }],
  ["tools/call", { name: "steps" }],
  ["tools/call", { name: "broken", arguments: {} }],
  ["resources/list", {}],
  ["resources/templates/list", {}],
  ["resources/read", { uri: "note://one" }],
  ["resources/read", { uri: "repo://ada/a/b%20c?ref=main" }],
  ["resources/read", { uri: "dir://a/b" }],
  ["prompts/list", {}],
  ["prompts/get", { name: "greet", arguments: { who: "Ada", how: "well" } }],
  ["completion/complete", { ref: { type: "ref/prompt", name: "greet" }, argument: { name: "how", value: "w" } }],
  [
    "completion/complete",
    {
      ref: { type: "ref/resource", uri: "repo://{owner}/{+path}{?ref}" },
      argument: { name: "owner", value: "a" },
      context: { arguments: { path: "x" } },
    },
  ],
];

/** Methods with their parameters in revision 2026-07-28. */
export const modern: typeof calls = [
  ...calls,
  ["server/discover", {}],
  ["subscriptions/listen", { notifications: { toolsListChanged: true, resourceSubscriptions: ["note://one"] } }],
  ["subscriptions/listen", { notifications: { resourceSubscriptions: manyUris.slice(0, 15) } }],
  ["subscriptions/listen", { notifications: { promptsListChanged: true, resourceSubscriptions: manyUris } }],
  ["tools/call", { name: "form", arguments: {} }],
  ["tools/call", { name: "form", arguments: {}, inputResponses: { form }, requestState: "FORM" }],
  ["tools/call", { name: "ask", arguments: {} }],
  ["tools/call", {
    name: "ask",
    arguments: {},
    inputResponses: { first: state, second: state },
    requestState: "STATE",
  }],
];

const legacy: typeof calls = [
  ...calls,
  ["initialize", {
    protocolVersion: "2025-11-25",
    capabilities: { roots: {} },
    clientInfo: { name: "f", version: "1" },
  }],
  ["ping", {}],
  ["logging/setLevel", { level: "debug" }],
  ["resources/subscribe", { uri: "note://one" }],
  ...manyUris.slice(0, 5).map((uri): [method: string, params: JsonObject] => ["resources/subscribe", { uri }]),
  ["resources/unsubscribe", { uri: "note://one" }],
  ["tools/call", { name: "form", _meta: { progressToken: 1 } }],
  ["tools/call", { name: "ask", arguments: {}, _meta: { progressToken: 1 } }],
];

const notes: readonly JsonObject[] = [
  { jsonrpc: "2.0", method: "notifications/initialized" },
  { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "nobody's", reason: "fuzz" } },
  { jsonrpc: "2.0", method: "notifications/roots/list_changed" },
  { jsonrpc: "2.0", id: "ask-1", result: { action: "decline" } },
  { jsonrpc: "2.0", id: "ask-2", error: { code: -1, message: "no" } },
  { jsonrpc: "2.0", id: "ask-3", result: form },
];

/** Replaces the placeholders with values that the server issued. */
export function fillIn(params: JsonObject, { state, formState, cursor }: Handed): JsonObject {
  return {
    ...params,
    ...params.requestState !== undefined && { requestState: params.requestState === "FORM" ? formState : state },
    ...params.cursor === "CURSOR" && { cursor },
  };
}

export const capabilities: readonly JsonObject[] = [
  { elicitation: { form: {} }, sampling: {}, roots: {} },
  { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} },
  { elicitation: {}, sampling: { tools: {} } },
  {},
];

/** Returns a random request of revision 2026-07-28. */
export function pickModern(random: Random, id: Json, handed: Handed): JsonObject {
  const [method, params] = random.pick(modern);
  const _meta: JsonObject = {
    [META + "protocolVersion"]: MODERN,
    [META + "clientInfo"]: { name: "fuzz", version: "1" },
    [META + "clientCapabilities"]: random.below(4) ? capabilities[0] : random.pick(capabilities),
    [META + "logLevel"]: "info",
    progressToken: "p",
  };
  return { jsonrpc: "2.0", id, method, params: { ...fillIn(params, handed), _meta } };
}

/** Returns a random message for a session. */
export function pickLegacy(random: Random, id: Json, handed: Handed): JsonObject {
  if (!random.below(8)) return random.pick(notes);
  const [method, params] = random.pick(legacy);
  return { jsonrpc: "2.0", id, method, ...random.below(4) ? { params: fillIn(params, handed) } : {} };
}

/**
 * Returns the headers that revision 2026-07-28 requires for a body. Parts of the body that cannot be read get no
 * header.
 */
export function toMirror(message: Json): [name: string, value: string][] {
  const { method, params } = toObject(message);
  const { name, uri, arguments: args } = toObject(params);
  const subject = method === "resources/read" ? uri : name;
  const { region, count } = toObject(args);
  const said: [string, Json | undefined][] = [
    ["mcp-method", method],
    ["mcp-name", subject],
    ...name === "region"
      ? [["mcp-param-region", region], ["mcp-param-count", count]] as [string, Json | undefined][]
      : [],
  ];
  // Runtimes refuse a request head of more than 16 KB, so leave out longer values.
  return said.flatMap(([header, value]): [string, string][] =>
    typeof value === "string" || typeof value === "number" ? [[header, encode(String(value).slice(0, 2000))]] : []
  );
}

function encode(value: string): string {
  if (/^[\x21-\x7e]*$/.test(value) && !value.startsWith("=?")) return value;
  return `=?base64?${new TextEncoder().encode(value).toBase64()}?=`;
}

/** Returns the value if it is an object, and an empty object for any other value. */
export function toObject(value: unknown): { readonly [key: string]: Json } {
  // The cast is safe, because callers only read single fields.
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value as JsonObject : {};
}
