// Regular expressions and parsers take linear time. Each regular expression in the source is tested with long
// repetitions of its characters, and each parser that a client can reach is tested with the worst known input.
import { assert, assertEquals, assertGreater } from "@std/assert";
import { resource, tool } from "../../mod.ts";
import { BOUNDS } from "../support/limits.ts";
import { decodeHeaderValue } from "../../src/core/protocol/header_value.ts";
import { parseMessage } from "../../src/core/protocol/message_parser.ts";
import { isJsonType, readAccept } from "../../src/server/transports/http/accept.ts";
import { LineSplitter } from "../../src/core/line_splitter.ts";
import { compareCosts, leastCost } from "../support/cost.ts";
import { startSession, toCall } from "./unread.ts";
import config from "../../deno.json" with { type: "json" };
import { openServer } from "../support/servers.ts";

interface Pattern {
  readonly file: string;
  readonly source: string;
  readonly flags: string;
}

/** Files of the command line that read text from local files, or from a user. */
const CLI = ["import_graph.ts", "module_type.ts", "pack.ts", "client/form_field.ts"].map((path) => `src/cli/${path}`);

/**
 * Returns the source files that the package's exports import, except files that do not run in a server, and files of
 * the command line.
 */
async function listFiles(): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  const queue = [...Object.values(config.exports), ...CLI].map((path) =>
    new URL(path, new URL("../../", import.meta.url)).href
  );
  for (const url of queue) {
    const isOther = /\/src\/(testing|cli)\//.test(url) && !CLI.some((path) => url.endsWith(path));
    if (files.has(url) || isOther) continue;
    const text = await (await fetch(url)).text();
    files.set(url, text);
    const imports = text.matchAll(/^(?:import|export|\}).*"(\.[^"]+\.ts)"|\bimport\("(\.[^"]+\.ts)"\)/gm);
    for (const [, path, lazy] of imports) queue.push(new URL(path ?? lazy, url).href);
  }
  return files;
}

/**
 * Finds the regular expression literals in a file. The search does not use a parser, because Deno and Bun have no
 * common parser.
 */
function listPatterns(file: string, text: string): Pattern[] {
  const patterns: Pattern[] = [];
  const braces: string[] = [];
  let before = "";
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    const two = text.slice(at, at + 2);
    if (two === "//") at = (text.indexOf("\n", at) + 1 || text.length + 1) - 1;
    else if (two === "/*") at = text.indexOf("*/", at) + 1;
    else if (char === '"' || char === "'") {
      for (at++; text[at] !== char; at++) if (text[at] === "\\") at++;
      before = char;
    } else if (char === "`" || (char === "}" && braces.pop() === "${")) {
      for (at++; text[at] !== "`" && text.slice(at, at + 2) !== "${"; at++) if (text[at] === "\\") at++;
      if (text[at] === "$") {
        braces.push("${");
        at++;
        before = "(";
      } else before = "`";
    } else if (char === "/" && (/[(,=:[!&|?{};>]/.test(before) || /\breturn\s*$/.test(text.slice(0, at)))) {
      const start = at + 1;
      let inClass = false;
      for (at++; text[at] !== "/" || inClass; at++) {
        if (text[at] === "\\") at++;
        else if (text[at] === "[") inClass = true;
        else if (text[at] === "]") inClass = false;
      }
      const flags = /^[a-z]*/.exec(text.slice(at + 1))?.[0] ?? "";
      patterns.push({ file, source: text.slice(start, at), flags });
      at += flags.length;
      before = "/";
    } else {
      if (char === "{") braces.push("{");
      if (char.trim()) before = char;
    }
  }
  return patterns;
}

/** Yields long strings that nearly match a pattern. */
function* pump({ source }: Pattern, length: number): Generator<string> {
  const own = [
    ...new Set((source + (source.includes("\\s") ? " " : "")).replace(/\\[dwsbDWSB]|[\^$(){}|*+?\\[\]]/g, "")),
  ];
  const chars = [...new Set([...own, ...'a0A _-./,;:="%?&#@\\\n\té'])];
  const pairs = own.flatMap((a) => own.map((b) => a + b)).slice(0, 40);
  const literal = /^\^?((?:\\[^dwsbDWSB]|[^\\^$.|?*+(){}[\]])+)/.exec(source)?.[1].replace(/\\(.)/g, "$1") ?? "";
  const prefixes = new Set(["", literal, literal.slice(0, -1), "a", "a://a"]);
  const repeat = (unit: string) => unit.repeat(Math.ceil(length / unit.length)).slice(0, length);
  for (const unit of [...chars, ...pairs]) {
    for (const prefix of prefixes) for (const suffix of ["", "\0", "/"]) yield prefix + repeat(unit) + suffix;
  }
  for (const suffix of own) yield repeat("a") + suffix;
  // A repeated word of the pattern can start a match at many places.
  const words = listWords(source);
  const ends = ["", "a", " ", "-", ...words];
  for (const word of words) for (const end of ends) yield repeat(word + end);
}

/** Returns the parts of a pattern that match only themselves, of at least two characters. */
function listWords(source: string): string[] {
  const plain = source.replace(/\[(?:\\.|[^\]\\])*\]|\(\?<?[:=!]|\\[dwsbDWSB]/g, "|").split(/(?<!\\)[|^$.?*+(){}]/);
  return [...new Set(plain.map((word) => word.replace(/\\(.)/g, "$1")))].filter((word) => word.length > 1);
}

/**
 * Returns a function that applies the pattern to a text: replaces all matches if the pattern is global, or tests the
 * text otherwise.
 */
function run({ source, flags }: Pattern): (text: string) => unknown {
  const pattern = new RegExp(source, flags);
  return flags.includes("g") ? (text) => text.replace(pattern, "") : (text) => pattern.test(text);
}

const patterns = [...await listFiles()].flatMap(([url, text]) => listPatterns(url.replace(/^.*\/(?=src\/)/, ""), text));

Deno.test("the regular expressions in the source files are found", () => {
  assertGreater(patterns.length, 30);
  for (const { source, flags } of patterns) new RegExp(source, flags);
  const text = 'a = /x[/]y/g; // /no/\nb = `${c.replace(/in/, `${d}`)} /no/`; e = f / g / h; i("/no/", /\\//u);';
  assertEquals(listPatterns("", text).map(({ source, flags }) => `/${source}/${flags}`), [
    "/x[/]y/g",
    "/in/",
    "/\\//u",
  ]);
});

Deno.test("a regular expression that takes quadratic or exponential time is detected", async () => {
  for (
    const source of [
      "^(a+)+$",
      "\\s+$",
      "(,+)*;",
      "([^/]+(?:,[^/]+)*)$",
      "\\beyJ[\\w-]+\\.",
      "[^@]*$",
      "^(<!--.*?-->)*b",
    ]
  ) {
    assert(await findSlow({ file: "", source, flags: "" }) !== undefined, source);
  }
});

/**
 * Pairs of lengths. The length increases step by step, because an exponential pattern would never end for a long text.
 * The last pairs differ by more than a factor of two, because other work on the machine disturbs the ratio of the costs.
 */
const LENGTHS = [[12, 24], [100, 150], [2000, 8000], [8000, 32_000]] as const;

/** Returns an input for which a pattern takes more than linear time, or `undefined` if there is none. */
async function findSlow(pattern: Pattern): Promise<string | undefined> {
  const match = run(pattern);
  for (const [length, longer] of LENGTHS) {
    const longTexts = [...pump(pattern, longer)];
    for (const [i, text] of [...pump(pattern, length)].entries()) {
      if (leastCost(() => match(text), 1) < length / 10_000) continue;
      const runs = { short: () => match(text), long: () => match(longTexts[i]) };
      // The bound is between linear and quadratic time.
      const bound = (longer / length) ** 1.5;
      const costs = await compareCosts(runs, ({ short, long }) => long < 1 || long / short < bound, { rounds: 6 });
      if (costs) {
        return `${
          JSON.stringify(text.slice(0, 20))
        }…, ${length} characters: ${costs.short} ms, ${longer}: ${costs.long} ms`;
      }
    }
  }
}

for (const pattern of patterns) {
  Deno.test(`/${pattern.source}/${pattern.flags} in ${pattern.file} takes linear time`, async () => {
    assertEquals(await findSlow(pattern), undefined);
  });
}

/**
 * Asserts that reading a text that is eight times as long takes about eight times as long. With quadratic time, it
 * would take 64 times as long.
 */
async function linear(what: string, make: (length: number) => string, read: (text: string) => unknown): Promise<void> {
  const attempt = (text: string) => () => {
    try {
      read(text);
    } catch {
      // A refusal is accepted like a result, if it takes as little time.
    }
  };
  const runs = { short: attempt(make(25_000)), long: attempt(make(200_000)) };
  const costs = await compareCosts(runs, ({ short, long }) => long < 5 || long / short < 24);
  assertEquals(costs, undefined, what);
}

Deno.test("headers of 100 KB are read in linear time", async () => {
  for (
    const unit of [
      ",",
      ";",
      "=",
      " ",
      "\t",
      '"',
      "a,",
      "q=0;",
      "text/*;q=0,",
      "charset=",
      ";charset=utf-8",
      "*/*,",
      "\\",
    ]
  ) {
    const make = (length: number) => unit.repeat(length / unit.length);
    await linear(`Accept ${unit}`, make, readAccept);
    await linear(`Content-Type ${unit}`, (length) => `application/json${make(length)}`, isJsonType);
    await linear(`a mirrored value ${unit}`, (length) => `=?base64?${make(length)}?=`, decodeHeaderValue);
  }
});

Deno.test("messages of 100 KB are read in linear time", async () => {
  const units = [
    "[",
    "{",
    '{"a":',
    "[[],",
    '"',
    "\\",
    '"\\u0000',
    "1",
    "-",
    "1e9,",
    " ",
    ",",
    ":",
    '{"__proto__":',
    "/*",
  ];
  for (const unit of units) {
    await linear(
      `a message of ${unit}`,
      (length) => unit.repeat(length / unit.length),
      (text) => parseMessage(text, BOUNDS.request),
    );
    await linear(
      `an id of ${unit}`,
      (length) => `{"jsonrpc":"2.0","id":"${unit.repeat(length / unit.length)}"}`,
      (text) => parseMessage(text, BOUNDS.request),
    );
  }
});

Deno.test("lines are split in linear time, whatever the length of the lines and the size of the chunks", async () => {
  for (const line of ["", "a", "\r", "é", "x".repeat(1000)]) {
    await linear(`lines of ${line.slice(0, 3)}`, (length) => `${line}\n`.repeat(length / (line.length + 1)), (text) => {
      const splitter = new LineSplitter(BOUNDS.request.lineBytes);
      const bytes = new TextEncoder().encode(text);
      for (let at = 0; at < bytes.length; at += 7) splitter.push(bytes.subarray(at, at + 7));
      splitter.end();
    });
  }
});

Deno.test("every form of URI template matches a URI of 100 KB in linear time", async () => {
  const names = Array.from({ length: 50 }, (_, i) => `v${i}`);
  const templates = [
    ...["{id}", "{+path}", "{/a,b}", "{?a,b}", "{&a}", "{;x}", "{#f}", "{.ext}"].map((each) => `t://a/${each}`),
    ...["{a}-{b}-{c}", "{a}/{b}/{c}", "{+a}/{b}", "{a}{?b}", "{a},{b}"].map((each) => `t://b/${each}`),
    `t://c/${names.map((name) => `{${name}}`).join("/")}`,
    `t://d/${names.map((name) => `{${name}}`).join("-")}`,
  ];
  const server = openServer({
    handlers: [
      ...templates.flatMap((uri, i) => {
        try {
          return resource({ uri, name: `t${i}`, read: () => "" });
        } catch (error) {
          // A form that `resource()` refuses needs no measurement.
          assert(error instanceof TypeError, String(error));
          return [];
        }
      }),
      tool({ name: "quick", run: () => "" }),
    ],
  });
  const url = "http://localhost/mcp";
  const session = await startSession(url, server.fetch);
  const { headers } = toCall("", { session });
  const read = async (uri: string) => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "resources/read", params: { uri } });
    await (await server.fetch(new Request(url, { method: "POST", headers, body }))).text();
  };
  for (const place of ["t://a/", "t://b/", "t://c/", "t://d/", "t://a/?a=", "t://a/;x=", "t://a/#", ""]) {
    for (const unit of [",", "/", "-", "a", "%", "%2F", "?a=", "&", "a,", "a-", "a/", "{", "."]) {
      const readLong = (length: number) => read(place + unit.repeat(length / unit.length));
      const runs = { short: () => readLong(25_000), long: () => readLong(50_000) };
      const costs = await compareCosts(runs, ({ short, long }) => long < 10 || long / short < 3);
      assertEquals(costs, undefined, `${place}${unit}`);
    }
  }
});

Deno.test("a URI with a user name of 40 KB is read in linear time", async () => {
  const server = openServer({
    handlers: [resource({ uri: "page://host/a", name: "a", read: () => "" })],
  });
  const url = "http://localhost/mcp";
  const session = await startSession(url, server.fetch);
  const { headers } = toCall("", { session });
  const read = async (length: number) => {
    const params = { uri: `page://${"u".repeat(length)}@host/a` };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "resources/read", params });
    await (await server.fetch(new Request(url, { method: "POST", headers, body }))).text();
  };
  const runs = { short: () => read(5000), long: () => read(40_000) };
  assertEquals(await compareCosts(runs, ({ short, long }) => long < 20 || long / short < 24), undefined);
});
