// Handwritten requests that cost more than other requests, each with a variable size.
import { META, MODERN, toMeta } from "../../hostile/http.ts";

type Json = Readonly<Record<string, unknown>>;

/** A request. The body is a string, because some bodies are invalid JSON. */
export interface Sent {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The HTTP method. Defaults to POST. */
  readonly method?: string;
}

/** Sessions that cases need. */
export interface Known {
  /** The id of an open session. */
  readonly session: string;
  /** The id of a session of revision 2025-03-26, which supports batches. */
  readonly batching: string;
}

/** A request of variable size. */
export interface CostCase {
  readonly name: string;
  /** The maximum size in bytes. */
  readonly most: number;
  readonly make: (size: number, known: Known) => Sent;
}

const LARGE = 4_100_000;
/** Size of the largest request head in bytes. Runtimes refuse much larger heads. */
const HEAD = 12_000;
/** The limit on JSON values in a message, minus the values around the part that grows. */
const VALUES = 199_900;
const HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };

/** JSON texts of about the given number of characters, by shape. */
export const shapes: Readonly<Record<string, (size: number) => string>> = {
  "a string": (size) => `"${"x".repeat(size)}"`,
  "a string of é": (size) => `"${"é".repeat(size / 2)}"`,
  "a string of \\u0000": (size) => `"${"\\u0000".repeat(size / 6)}"`,
  "a string of commas": (size) => `"${",".repeat(size)}"`,
  "{},{},…": (size) => `[${"{},".repeat(Math.min(VALUES, size / 3))}0]`,
  "too many {},{},…": (size) => `[${"{},".repeat(size / 3)}0]`,
  '{"a":{}},…': (size) => `[${'{"a":{}},'.repeat(Math.min(VALUES / 2, size / 9))}0]`,
  '{"999":0},…': (size) => `[${'{"999":0},'.repeat(Math.min(VALUES / 2, size / 10))}0]`,
  "nested arrays": (size) => `[${`${"[".repeat(100)}${"]".repeat(100)},`.repeat(Math.min(VALUES / 101, size / 201))}0]`,
  "many keys": (size) => toKeys(size, (i) => `k${i}`),
  "many long keys": (size) => toKeys(size, (i) => `${"k".repeat(1000)}${i}`),
  "keys of digits": (size) => toKeys(size, (i) => `${i}`),
  "keys of large digits": (size) => toKeys(size, (i) => `${(i % 1000) + Math.floor(i / 1000) * 262_144}`),
  "texts of large digits": (size) => toList(size, (i) => `"${(i % 1000) + Math.floor(i / 1000) * 262_144}"`),
  "short texts": (size) => toList(size, (i) => `"t${i}"`),
  "numbers": (size) => toList(size, (i) => `${i}.5e-300`),
  "spaces": (size) => `[${" ".repeat(size)}]`,
};

function toKeys(size: number, name: (i: number) => string): string {
  const parts: string[] = [];
  for (let i = 0, length = 2; length < size && i < VALUES; i++) {
    length += parts[parts.push(`"${name(i)}":0`) - 1].length + 1;
  }
  return `{${parts.join(",")}}`;
}

function toList(size: number, item: (i: number) => string): string {
  const parts: string[] = [];
  for (let i = 0, length = 2; length < size && i < VALUES; i++) length += parts[parts.push(item(i)) - 1].length + 1;
  return `[${parts.join(",")}]`;
}

/** Size of trees in bytes. Such a tree has almost as many values as a message can have. */
const TREES = 1_200_000;

/** Returns nested folders, with the leaves in the innermost folder. */
function toTree(levels: number, leaves: string): string {
  return `${'{"children":['.repeat(levels)}${leaves}${"]}".repeat(levels)}`;
}

/** Replaces `"@"` in a message with a JSON text. */
function fill(message: Json, text: string): string {
  const [before, after = ""] = JSON.stringify(message).split('"@"');
  return before + text + after;
}

/** Creates a 2026-07-28 request with a JSON text in place of `"@"`. */
export function modern(method: string, params: Json, text: string, meta: Json = {}, id: unknown = 1): Sent {
  const named = params.name ?? params.uri;
  return {
    body: fill({ jsonrpc: "2.0", id, method, params: { ...params, _meta: toMeta(meta) } }, text),
    headers: {
      ...HEADERS,
      "mcp-protocol-version": MODERN,
      "mcp-method": method,
      ...typeof named === "string" && named !== "@" ? { "mcp-name": named } : {},
    },
  };
}

/**
 * Creates a request of an older revision, with a JSON text in place of `"@"`. Without `session`, the request has no
 * session.
 */
export function legacy(method: string, params: Json, text: string, session?: string, id: unknown = 1): Sent {
  return {
    body: fill({ jsonrpc: "2.0", id, method, params }, text),
    headers: { ...HEADERS, ...session ? { "mcp-session-id": session } : {} },
  };
}

/** Creates an `initialize` request with the given capabilities. */
export function initialize(text = "{}", version = "2025-11-25", more: Json = {}): Sent {
  const clientInfo = { name: "abuse", version: "1", ...more };
  return legacy("initialize", { protocolVersion: version, capabilities: "@", clientInfo }, text);
}

const call = (name: string, text: string, meta: Json = {}) =>
  modern("tools/call", { name, arguments: "@" }, text, meta);
const text = (unit: string, size: number) => unit.repeat(size / unit.length);
const large = (name: string, make: CostCase["make"]): CostCase => ({ name, most: LARGE, make });
const head = (name: string, make: CostCase["make"]): CostCase => ({ name, most: HEAD, make });
/** A case whose request grows in the place of `"@"`. */
const growing = (name: string, method: string, params: Json, make: (size: number) => string): CostCase =>
  large(name, (size) => modern(method, params, make(size)));
const growingInSession = (name: string, method: string, params: Json, make: (size: number) => string): CostCase =>
  large(name, (size, { session }) => legacy(method, params, make(size), session));
const toTexts = (size: number) => shapes["many keys"](size).replaceAll(":0", ':""');
const quoted = (unit: string, most = Infinity) => (size: number) => `"${text(unit, Math.min(size, most))}"`;
const ASKED = { name: "ask", arguments: {}, requestState: "@" };
/** Parameters of a call of the tool `steps` with a variable progress token. */
export const STEPS = { name: "steps", arguments: { count: 10 }, _meta: { progressToken: "@" } };
export const ANY = { name: "any", arguments: { v: "@" } };
/** A case whose request asks a question of the client. */
export const asking = (name: string, most: number, shape: string): CostCase => {
  const meta = { [`${META}clientCapabilities`]: { elicitation: {} } };
  const params = { name: "ask", arguments: { v: "@" } };
  return { name, most, make: (size) => modern("tools/call", params, shapes[shape](size), meta) };
};
const within = (name: string, tool: string, make: (size: number) => string): CostCase =>
  large(name, (size) => call(tool, `{"v":${make(size)}}`));

/** Creates a plain call. Costs are measured in multiples of the cost of this call. */
export const plain = (): Sent => call("quick", "{}");

const withHeaders = (headers: Record<string, string>): Sent => ({
  ...plain(),
  headers: { ...plain().headers, ...headers },
});

/** The requests that are measured over HTTP. */
export const costCases: readonly CostCase[] = [
  ...Object.entries(shapes).map(([name, make]) => within(`modern, tools/call: ${name}`, "any", make)),
  ...Object.entries(shapes).slice(0, 10).map(([name, make]) =>
    growingInSession(`session, tools/call: ${name}`, "tools/call", ANY, make)
  ),
  large("bare, tools/call: many keys", (size) => legacy("tools/call", ANY, shapes["many keys"](size))),
  large("no JSON: quotes", (size) => ({ ...plain(), body: text('"', size) })),
  large("no JSON: backslashes", (size) => ({ ...plain(), body: `"${text("\\", size)}` })),
  large("no JSON: brackets and spaces", (size) => ({ ...plain(), body: text("[ ", size) })),
  large("no JSON: U+FFFD", (size) => ({ ...plain(), body: text("\ufffd", size / 3) })),
  within("enum of objects: {},{},…", "enum", shapes["{},{},…"]),
  within("enum of objects: equal objects", "enum", (size) => toList(size, (i) => `{"b":[${i % 200}],"a":${i % 200}}`)),
  within('const: {"a":{}},…', "const", shapes['{"a":{}},…']),
  within("enum of texts: good ones", "texts", (size) => toList(size, (i) => `"name ${i % 200}"`)),
  within("enum of texts: a long one", "texts", (size) => `["${text("x", size)}"]`),
  within("uniqueItems: short texts", "unique", shapes["short texts"]),
  within("uniqueItems: texts of digits", "unique", shapes["texts of large digits"]),
  within('uniqueItems: {"a":{}},…', "unique", shapes['{"a":{}},…']),
  within("uniqueItems: an object of many keys", "unique", (size) => `[${shapes["many keys"](size)},0]`),
  within("uniqueItems: an object of many long keys", "unique", (size) => `[${shapes["many long keys"](size)},0]`),
  within("uniqueItems: long texts", "unique", (size) => toList(size, (i) => `"${text("x", 10_000)}${i}"`)),
  within("contains: {},{},…", "contains", shapes["{},{},…"]),
  within("anyOf of 20: {},{},…", "forms", shapes["{},{},…"]),
  within("anyOf of 20: kinds", "forms", (size) => toList(size, () => '{"kind":"19"}')),
  within(
    "a recursive anyOf: wrong trees of 20 levels",
    "tree",
    (size) => toList(Math.min(size, TREES), () => toTree(20, "1")),
  ),
  within("a recursive anyOf: one tree of many wrong leaves", "tree", (size) => {
    const leaves = toList(Math.min(size, TREES) - 300, () => '{"children":1}').slice(1, -1);
    return `[${toTree(10, leaves)}]`;
  }),
  within(
    "a recursive allOf: trees of 20 levels",
    "both",
    (size) => toList(Math.min(size, TREES), () => toTree(20, "{}")),
  ),
  large("patternProperties: many keys", (size) => call("patterns", shapes["many keys"](size))),
  large("patternProperties: a long key", (size) => call("patterns", `{"${text("x", size)}":0}`)),
  within("maxLength: a string", "lengths", shapes["a string"]),
  within("maxLength: a string of é", "lengths", shapes["a string of é"]),
  within("unevaluatedProperties: {},{},…", "unevaluated", shapes["{},{},…"]),
  within("unevaluatedProperties: many keys", "unevaluated", (size) => `[${shapes["many keys"](size)}]`),
  large("dependent…: many keys", (size) => call("dependent", shapes["many keys"](size))),
  ...["many keys", "many long keys", '{"a":{}},…', "a string"].map((name) => asking(`question: ${name}`, LARGE, name)),
  growing("requestState", "tools/call", ASKED, quoted("A")),
  growing("requestState within bounds", "tools/call", ASKED, quoted("A", 131_072)),
  growing("name of a tool", "tools/call", { name: "@" }, quoted("x")),
  large("method", (size) => ({ ...plain(), body: `{"jsonrpc":"2.0","id":1,"method":"${text("x", size)}"}` })),
  large("id", (size) => ({ ...plain(), body: plain().body.replace('"id":1', `"id":"${text("x", size)}"`) })),
  growing("cursor", "tools/list", { cursor: "@" }, quoted("A")),
  growing("cursor within bounds", "tools/list", { cursor: "@" }, quoted("A", 65_536)),
  large("progressToken", (size) => call("steps", '{"count":10}', { progressToken: text("x", size) })),
  growingInSession("session, progressToken", "tools/call", STEPS, quoted("x")),
  ...["x", "%2F", "%", "/", "-", "w://r/-", "é"].map((unit) =>
    large(`uri of ${unit}`, (size) => legacy("resources/read", { uri: "@" }, `"w://r/${text(unit, size)}"`))
  ),
  large("uri of a query", (size) => legacy("resources/read", { uri: "@" }, `"w://q/?${text("a=1&", size)}"`)),
  growing("prompts/get: many keys", "prompts/get", { name: "ask", arguments: "@" }, toTexts),
  growing("prompts/get: {},{},…", "prompts/get", { name: "ask", arguments: "@" }, shapes["{},{},…"]),
  growing("completion: context", "completion/complete", {
    ref: { type: "ref/prompt", name: "ask" },
    argument: { name: "word", value: "" },
    context: { arguments: "@" },
  }, toTexts),
  growing("completion: uri", "completion/complete", {
    ref: { type: "ref/resource", uri: "@" },
    argument: { name: "id", value: "" },
  }, (size) => `"w://${text("%2F", size)}"`),
  growing(
    "listen: too many uris",
    "subscriptions/listen",
    { notifications: { resourceSubscriptions: "@" } },
    (size) => shapes["short texts"](Math.max(16_000, size)),
  ),
  large("initialize: {},{},…", (size) => initialize(`{"a":${shapes["{},{},…"](size)}}`)),
  large("initialize: good capabilities", (size) => initialize(`{"a":"${text("x", Math.min(size, 4000))}"}`)),
  large("initialize: name", (size) => initialize("{}", "2025-11-25", { name: text("x", size) })),
  growingInSession("subscribe: uri", "resources/subscribe", { uri: "@" }, quoted("x")),
  large("response to nothing", (size, { session }) => ({
    ...legacy("", {}, "", session),
    body: `{"jsonrpc":"2.0","id":"ask-9","result":{"a":${shapes["{},{},…"](size)}}}`,
  })),
  large("notification", (size, { session }) => ({
    ...legacy("", {}, "", session),
    body: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${shapes["a string"](size)}}}`,
  })),
  large(
    "batch of pings",
    (size, { batching }) => toBatch(size, batching, (i) => `{"jsonrpc":"2.0","id":${i},"method":"ping"}`),
  ),
  large("batch of garbage", (size, { batching }) => toBatch(size, batching, () => "0")),
  ...([["anyOf", "forms", 12_500, '{"kind":"19"}'], ["enum", "enum", 5700, "{}"]] as const).map((
    [name, tool, most, item],
  ) =>
    large(`batch of 100: ${name}`, (size, { batching }) =>
      toBatch(size, batching, (i) => {
        const v = toList(Math.min(most, size / 100), () => item);
        return legacy("tools/call", { name: tool, arguments: { v: "@" } }, v, undefined, i).body;
      }))
  ),
  head("session id", (size) => legacy("ping", {}, "", text("A", Math.max(1, size)))),
  head("session id, unknown and of its length", () => legacy("ping", {}, "", text("A", 300))),
  head("Last-Event-ID", (size, { session }) => ({
    method: "GET",
    body: "",
    headers: { accept: "text/event-stream", "mcp-session-id": session, "last-event-id": text("0-", Math.max(2, size)) },
  })),
  head("Accept", (size) => withHeaders({ accept: text("a/b;q=0,", Math.max(8, size)) })),
  head("Mcp-Name", (size) => withHeaders({ "mcp-name": `=?base64?${text("AAAA", size)}?=` })),
  head("Origin", (size) => withHeaders({ origin: `http://${text("a.", size)}b` })),
  head(
    "many headers",
    (size) => withHeaders(Object.fromEntries(Array.from({ length: size / 200 }, (_, i) => [`x-${i}`, text("x", 180)]))),
  ),
];

function toBatch(size: number, session: string, item: (i: number) => string): Sent {
  const count = size < 200 ? 1 : 100;
  return { ...legacy("", {}, "", session), body: `[${Array.from({ length: count }, (_, i) => item(i)).join(",")}]` };
}
