// Turns valid messages into invalid messages. The same seed gives the same messages on every runtime.
import type { Random } from "../support/random.ts";
import { type Handed, type Input, type Json, MODERN, pickLegacy, pickModern, toMirror } from "./samples.ts";

const encoder = new TextEncoder();

/** Unusual values, as JSON text. */
const ODD = [
  ...["null", "true", "false", "0", "-0", "-1", "1.5", "1e400", "-1e400", "1e-400", "9007199254740993", "4294967296"],
  ...['""', '" "', '"\\u0000"', '"\\ud800"', '"\\uffff"', '"__proto__"', '"constructor"', '"toString"', '"2.0"', '"1"'],
  ...["[]", "{}", "[[]]", '[null,1,"x",{}]', '{"":""}', '{"__proto__":{"a":1}}', '{"constructor":{}}', '{"toJSON":1}'],
  ...[
    '{"then":1}',
    '{"length":1e9}',
    '"../../etc/passwd"',
    '"%2e%2e%2f%00"',
    '"{a}"',
    '"=?base64?eA==?="',
    '"\\u2028"',
  ],
  `"${"x".repeat(300)}"`,
  `"${"y".repeat(5000)}"`,
  "9".repeat(400),
  "[".repeat(60) + "]".repeat(60),
  '{"a":'.repeat(140) + "1" + "}".repeat(140),
  '"2025-06-18"',
  '"2026-07-28"',
  '"tools/call"',
  '"initialize"',
  '"server/discover"',
  '"subscriptions/listen"',
];

const KEYS = [
  ...["id", "ID", "method", "Method", "params", "result", "error", "jsonrpc", "_meta", "name", "uri", "arguments", ""],
  ...["__proto__", "constructor", "cursor", "requestState", "inputResponses", "notifications", "ref", "argument"],
  "io.modelcontextprotocol/protocolVersion",
  "io.modelcontextprotocol/clientCapabilities",
];

const TOKENS = [
  ...['"', "\\", "{", "}", "[", "]", ",", ":", "\n", "\r\n", "\0", "\u00ef\u00bb\u00bf", "\u00ff", "\u00c0\u00af"],
  ...[
    "\u00ed\u00a0\u0080",
    "//",
    "/*",
    "'",
    "NaN",
    "Infinity",
    "undefined",
    "\\u",
    "\\ud800",
    "\\u0000",
    "1e9999",
    "--1",
  ],
];

const HEADERS = [
  ...[
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "mcp-session-id",
    "mcp-param-region",
    "last-event-id",
    "accept",
  ],
  ...["content-type", "content-encoding", "origin", "x-forwarded-host", "access-control-request-method"],
];

const VALUES = [
  ...["", "x", "2026-07-28", "2025-11-25", "2025-03-26", "2099-01-01", "tools/call", "tools/list", "good", "*/*"],
  ...[
    "text/event-stream",
    "application/json",
    "application/json;q=0",
    "text/plain",
    "application/json; charset=utf-16",
  ],
  ...["gzip", "identity", "null", "http://evil.example", "https://app.example.com", "__proto__", "=?base64?Z29vZA==?="],
  ...["=?base64?Z29vZA?=", "=?base64?!!?=", "abc_1", "\u00e9", "a, b", ";;;;", ",,,,", "x".repeat(3000), "POST"],
];

const ACCEPTED = [
  ...[
    "application/json, text/event-stream",
    "application/json, text/event-stream",
    "application/json, text/event-stream",
  ],
  ...["text/event-stream", "application/json", "*/*"],
];

/** Creates a request from a valid request, with up to four changes. */
export function makeInput(random: Random, handed: Handed, id: Json): Input {
  const isModern = random.below(2) === 0;
  const method = random.below(40) ? "POST" : random.pick(["GET", "DELETE", "OPTIONS", "PUT", "HEAD", "PATCH"]);
  const [version, session] = random.pick(handed.sessions);
  const message = isModern ? pickModern(random, id, handed) : pickLegacy(random, id, handed);
  const many = !isModern && !random.below(20);
  const text = JSON.stringify(many ? [message, pickLegacy(random, "second", handed)] : message);
  const isGood = random.below(10) === 0;
  const bytes = isGood ? encoder.encode(text) : mutateBody(random, text, handed);
  let headers: [string, string][] = [
    ["content-type", "application/json"],
    ["accept", random.pick(ACCEPTED)],
    ...isModern
      // Sometimes the headers match the changed body, because such a request reaches deeper code.
      ? [
        ["mcp-protocol-version", MODERN] as [string, string],
        ...toMirror(random.below(2) ? tryParse(bytes, message) : message),
      ]
      : [["mcp-protocol-version", version], ["mcp-session-id", session]] as [string, string][],
  ];
  if (!isGood && !random.below(4)) headers = mutateHeaders(random, headers);
  const target = random.below(200)
    ? "/mcp"
    : random.pick(["/", "/mcp/", "//mcp", "/mcp?x", "/%6dcp", "/mcp/..", "/mcp%00"]);
  return { method, target, headers, body: toLatin1(bytes) };
}

/** Returns lines for one pipe, as bytes. */
export function makeLine(random: Random, handed: Handed, id: Json): Uint8Array {
  const message = random.below(2) ? pickModern(random, id, handed) : pickLegacy(random, id, handed);
  const text = JSON.stringify(random.below(20) ? message : [message, pickLegacy(random, "second", handed)]);
  if (random.below(3) === 0) return encoder.encode(text);
  // Replace line breaks, which would split the line.
  return mutateBody(random, text, handed).map((byte) => byte === 10 ? 32 : byte);
}

/** Damages the head of a request that is sent over a connection. */
export function damageHead(random: Random, head: string): string {
  let text = head;
  for (let i = random.below(3); i >= 0; i--) {
    const at = random.below(text.length);
    text = random.pick([
      () => text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ (1 << random.below(8))) + text.slice(at + 1),
      () => text.slice(0, at) + random.pick(TOKENS) + text.slice(at),
      () => text.slice(0, at) + text.slice(at + 1 + random.below(20)),
      () => text.slice(0, at) + text.slice(Math.max(0, at - random.below(40))),
    ])();
  }
  return text;
}

function mutateBody(random: Random, text: string, handed: Handed): Uint8Array {
  let bytes: Uint8Array | undefined;
  let json = text;
  // Half of the inputs get one change, because of several changes only the first error is found.
  for (let i = random.below(2) ? 0 : random.below(4); i >= 0; i--) {
    if (random.below(6)) json = mutateJson(random, json);
    else bytes = mutateBytes(random, bytes ?? encoder.encode(json), handed);
  }
  return bytes ?? encoder.encode(json);
}

/** Changes JSON text into text that is valid or almost valid JSON. */
function mutateJson(random: Random, text: string): string {
  const keys = [...text.matchAll(/"((?:[^"\\]|\\.)*)":/g)];
  const values = [...text.matchAll(/(?<=[:[,])(?:"(?:[^"\\]|\\.)*"(?!:)|-?\d[\d.eE+-]*|true|false|null|\{\}|\[\])/g)];
  const put = (at: number, size: number, by: string) => text.slice(0, at) + by + text.slice(at + size);
  return random.pick([
    () => replace(values, () => random.pick(ODD)),
    () => replace(values, () => random.pick(ODD)),
    () => replace(values, () => random.pick(values)?.[0] ?? "1"),
    () =>
      replace(
        values,
        ([value]) => random.pick([`[${value}]`, `{"a":${value}}`, `${value},${value}`, `"${value}"`, ""]),
      ),
    () => replace(keys, () => `${JSON.stringify(random.pick(KEYS))}:`),
    () => replace(keys, ([, key]) => `"${random.below(2) ? key.toUpperCase() : key.slice(1)}":`),
    // Adds a duplicate key. The last value of a key counts.
    () => replace(keys, ([key]) => `${key}${random.pick(ODD)},${key}`),
    () => replace(keys, ([key]) => `${JSON.stringify(random.pick(KEYS))}:${random.pick(ODD)},${key}`),
    // Replaces a key with another key of the text.
    () => replace(keys, () => random.pick(keys)?.[0] ?? '"a":'),
    () => {
      const close = text.lastIndexOf("}");
      return put(close, 0, `,${JSON.stringify(random.pick(KEYS))}:${random.pick(ODD)}`);
    },
  ])();

  function replace(found: readonly RegExpExecArray[], by: (match: RegExpExecArray) => string): string {
    if (!found.length) return text;
    const match = random.pick(found);
    return put(match.index, match[0].length, by(match));
  }
}

function mutateBytes(random: Random, bytes: Uint8Array, handed: Handed): Uint8Array {
  const at = random.below(bytes.length + 1);
  const end = Math.min(bytes.length, at + 1 + random.below(30));
  return random.pick([
    () => {
      const flipped = bytes.slice();
      for (let i = random.below(4); i >= 0; i--) flipped[random.below(flipped.length)] ^= 1 << random.below(8);
      return flipped;
    },
    () => bytes.slice(0, at),
    () => join(bytes.slice(0, at), bytes.slice(end)),
    () => join(bytes.slice(0, end), bytes.slice(at)),
    () => join(bytes.slice(0, at), fromLatin1(random.pick(TOKENS)), bytes.slice(at)),
    () => {
      const other = encoder.encode(
        JSON.stringify(random.below(2) ? pickModern(random, 3, handed) : pickLegacy(random, "x", handed)),
      );
      return join(bytes.slice(0, at), other.slice(random.below(other.length)));
    },
    () =>
      join(
        bytes.slice(0, at),
        new Uint8Array(random.below(random.below(50) ? 100 : 80_000)).fill(32 + random.below(95)),
        bytes.slice(at),
      ),
  ])();
}

function mutateHeaders(random: Random, headers: readonly (readonly [string, string])[]): [string, string][] {
  const changed = headers.map(([name, value]): [string, string] => [name, value]);
  for (let i = random.below(3); i >= 0; i--) {
    const at = random.below(changed.length || 1);
    const [name, value] = changed[at] ?? ["x", "y"];
    const cut = random.below(value.length + 1);
    const next: [string, string][] = random.pick<() => [string, string][]>([
      () => [],
      () => [[name, random.pick(VALUES)]],
      () => [[name, value], [name, random.pick(VALUES)]],
      () => [[name, value], [random.pick(HEADERS), random.pick(VALUES)]],
      () => [[name, value.toUpperCase()]],
      () => [[name, value.slice(0, cut) + String.fromCharCode(33 + random.below(94)) + value.slice(cut)]],
      () => [[name, value.slice(0, cut) + value.slice(cut + 1)]],
      () => [[random.pick(HEADERS), value]],
    ])();
    changed.splice(at, 1, ...next);
  }
  return changed;
}

function tryParse(bytes: Uint8Array, otherwise: Json): Json {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return otherwise;
  }
}

/** Converts bytes to a text with one character per byte. */
export function toLatin1(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
}

/** Converts a text from {@linkcode toLatin1} back to bytes. */
export function fromLatin1(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

function join(...parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
