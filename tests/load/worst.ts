// Finds the slowest 100 KB input for each parser that gets client input. Runs on either runtime, and prints the slowest
// input.
import { BOUNDS } from "../support/limits.ts";
import { decodeHeaderValue } from "../../src/core/protocol/header_value.ts";
import { parseMessage } from "../../src/core/protocol/message_parser.ts";
import { createServer, resource } from "../../mod.ts";
import { isJsonType, readAccept } from "../../src/server/transports/http/accept.ts";
import { isLoopbackHost } from "../../src/server/transports/http/access.ts";
import { LineSplitter } from "../../src/core/line_splitter.ts";
import { startSession, toCall } from "../hostile/unread.ts";

const templates = ["w://{id}", "w://p/{+path}", "w://q/{?a,b}", "w://r/{a}-{b}-{c}", "w://s/{a}/{b}/{c}"];
const server = createServer({
  name: "worst",
  version: "1.0.0",
  handlers: templates.map((uri, i) => resource({ uri, name: `t${i}`, read: () => "" })),
});
const url = "http://localhost/mcp";
const session = await startSession(url, server.fetch);
const { headers } = toCall("", { session });

async function send(method: string, params: object, more: Readonly<Record<string, string>> = {}): Promise<void> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  await (await server.fetch(new Request(url, { method: "POST", headers: { ...headers, ...more }, body }))).text();
}

const parsers: readonly (readonly [name: string, parse: (text: string) => unknown])[] = [
  ["Accept", readAccept],
  ["Content-Type", (text) => isJsonType(`application/json${text}`)],
  ["Host", isLoopbackHost],
  ["mirrored header", (text) => decodeHeaderValue(`=?base64?${text}?=`)],
  ["message", (text) => parseMessage(text, BOUNDS.request)],
  [
    "message string",
    (text) =>
      parseMessage(`{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":${JSON.stringify(text)}}}`, BOUNDS.request),
  ],
  ["cursor", (text) => send("tools/list", { cursor: text })],
  ["line", (text) => new LineSplitter(BOUNDS.request.lineBytes).push(new TextEncoder().encode(text))],
  ["uri", (text) => send("resources/read", { uri: text })],
  ["uri w://", (text) => send("resources/read", { uri: `w://${text}` })],
  ["uri w://r/", (text) => send("resources/read", { uri: `w://r/${text}` })],
  ["method", (text) => send(text, {})],
  ["session", (text) => send("ping", {}, { "mcp-session-id": encodeURIComponent(text) })],
  ["Last-Event-ID", async (text) => {
    const get = { accept: "text/event-stream", "mcp-session-id": session, "last-event-id": encodeURIComponent(text) };
    await (await server.fetch(new Request(url, { headers: get }))).text();
  }],
];
const units = [
  ..."aA0,;:/\\\"'=?&#%.-_ \t[]{}",
  "a,",
  ",;",
  "[[],",
  '{"a":',
  "%2F",
  "é",
  "\\u0000",
  "=?",
  "q=0;",
  "*/*,",
  "0-",
  "_1",
];

async function time(parse: (text: string) => unknown, text: string): Promise<number> {
  let best = Infinity;
  for (let i = 0; i < 5; i++) {
    const start = performance.now();
    try {
      await parse(text);
    } catch {
      // A refused input counts as a result.
    }
    best = Math.min(best, performance.now() - start);
  }
  return best;
}

let worst = { ms: 0, what: "" };
let steepest = { ratio: 0, steep: "" };
let count = 0;
for (const [name, parse] of parsers) {
  for (const unit of units) {
    const make = (length: number) => unit.repeat(length / unit.length);
    const ms = await time(parse, make(100_000));
    const what = `${name} of ${JSON.stringify(unit)}`;
    count++;
    if (ms > worst.ms) worst = { ms, what };
    // Estimates the growth from two doublings of the size. A steep growth is measured again, because other work on the
    // machine can distort a single measurement.
    let ratio = ms > 1 ? Infinity : 0;
    for (let again = 0; again < 4 && ratio > 2.4; again++) {
      ratio = Math.min(ratio, Math.sqrt(await time(parse, make(400_000)) / await time(parse, make(100_000))));
    }
    if (ratio > steepest.ratio) steepest = { ratio, steep: what };
  }
}
console.log(JSON.stringify({ count, ...worst, ...steepest }));
await server.close();
