// The number of values in a message, which is counted exactly in the text before the text is parsed.
import { createServer } from "../../mod.ts";
import { BOUNDS, testLimits } from "../support/limits.ts";
import { parseMessage } from "../../src/core/protocol/message_parser.ts";
import { openPipe } from "../../src/server/transports/channel.ts";
import { type Random, random } from "../support/random.ts";
import { compareCosts } from "../support/cost.ts";
import { assert, assertEquals, assertStringIncludes } from "../support/std.ts";
import { sentence } from "../support/messages.ts";

const big = { ...BOUNDS.request, depth: 1000 };

/** Returns the error for a text that has too many values; `undefined` if the text is accepted. */
function refusal(text: string, values: number): string | undefined {
  const message = parseMessage(text, { ...big, values });
  return message.kind === "broken" && message.message.includes("request.values") ? message.message : undefined;
}

/** Returns the number of values inside a value, including the value itself. */
function size(value: unknown): number {
  const parts: unknown[] = typeof value === "object" && value ? Object.values(value) : [];
  return parts.reduce<number>((sum, part) => sum + size(part), 1);
}

/**
 * Writes random JSON text, with spaces at any position, strings full of structural characters, and empty containers.
 */
function write({ below, pick, text }: Random, depth: number): string {
  const space = () => pick(["", "", " ", "\n", "\t \r"]);
  const string = () =>
    JSON.stringify(text([',"', "\\", "[", "{}", ":", '"', "a".repeat(30), "\u2028", "💩", "\x00"], 9));
  const kind = below(depth ? 8 : 5);
  if (kind < 5) return space() + pick([string(), string(), "-1.5e9", "null", "true"]) + space();
  const items = Array.from({ length: below(4) }, (_, i) => {
    const item = write({ below, pick, text }, depth - 1);
    // Each name is unique, so that the parsed value has as many values as the text.
    return kind < 7 ? item : `${space()}${JSON.stringify(i + string())}${space()}:${item}`;
  });
  const inner = items.length ? items.join(",") : space();
  return `${space()}${kind < 7 ? `[${inner}]` : `{${inner}}`}${space()}`;
}

Deno.test("json values: a message with one value too many is refused, and a message is never refused for another reason", () => {
  assertEquals(refusal("[0,0]", 2), sentence(2, "request.values"));
  const source = random(7);
  for (let i = 0; i < 3000; i++) {
    const text = write(source, 5);
    const values = size(JSON.parse(text));
    assertEquals(refusal(text, values), undefined, text);
    if (values > 1) {
      const list = JSON.stringify(Array(values - 1).fill(0));
      assertEquals(refusal(text, values - 1), refusal(list, values - 1), text);
    }
  }
});

Deno.test("json values: strings of every length and with every escape end at their closing quote", () => {
  for (let length = 0; length < 120; length++) {
    for (const unit of ["a", "\\", '"', '\\"', ",", 'aaaaaaaaaaaaaaaaaaaaaaaaaaa"', "aaaaaaaaaaaaaaaaaaaaaaaaaaaa\\"]) {
      const text = JSON.stringify([unit.repeat(length), 1, { [unit.repeat(length)]: unit }]);
      assertEquals(refusal(text, 5), undefined, text);
      assert(refusal(text, 4), text);
    }
  }
});

Deno.test("json values: a message can have exactly as many values as the limit", () => {
  const call = (count: number) => {
    const params = { name: "x", arguments: { list: Array.from({ length: count - 8 }, () => 0) } };
    return JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  };
  assertEquals(parseMessage(call(200_000), BOUNDS.request).kind, "request");
  assertEquals(refusal(call(200_001), BOUNDS.request.values), sentence(200_000, "request.values"));
  for (const part of ["{},", "[],", '"",', "1,", "[[]],", '{"":1},']) {
    assertStringIncludes(refusal(`[${part.repeat(200_001)}1]`, BOUNDS.request.values) ?? "", "request.values", part);
  }
  const batch = `[${Array(50).fill(call(4001)).join(",")}]`;
  assertEquals(
    refusal(batch, BOUNDS.request.values)?.includes("request.values"),
    true,
    "a batch counts as one message",
  );
});

Deno.test("json values: the number of keys in a message that are small numbers is limited, whether the keys are escaped or not", () => {
  for (const part of ['{"999":1},', '{"\\u0039\\u0039\\u0039":1},', '{"9\\u003999" :1},']) {
    const params = `{"name":"x","arguments":{"x":[${part.repeat(90_000)}0]}}`;
    const message = parseMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`, BOUNDS.request);
    assertEquals(message.kind, "broken", part);
  }
});

Deno.test("json values: a text that is not JSON is not read past its end", () => {
  for (const end of ['"', '"\\', '"\\"', "[", "}", "]]]]", '"' + "x".repeat(50), '"' + "\\".repeat(51)]) {
    const message = parseMessage(`[${"1,".repeat(20)}${end}`, { ...BOUNDS.request, values: 30 });
    assertEquals(message.kind === "broken" && message.code, -32700, end);
  }
});

/** Reads each character once, as a reference for the time of one scan. */
function scan(text: string): number {
  let sum = 0;
  for (let at = 0; at < text.length; at++) sum = (sum + text.charCodeAt(at)) | 0;
  return sum;
}

Deno.test("json values: counting takes little time compared with parsing, whatever the text contains", async () => {
  const texts = {
    "one long string": JSON.stringify("x".repeat(4_000_000)),
    "quotes": JSON.stringify('"'.repeat(2_000_000)),
    "backslashes": JSON.stringify("\\".repeat(2_000_000)),
    "long strings that end in backslashes": JSON.stringify(Array(40_000).fill("x".repeat(95) + "\\")),
    "long numbers": `[${Array(190_000).fill("1234567890123456789").join(",")}]`,
    "short strings": `[${Array(190_000).fill('"ab"').join(",")}]`,
    "empty objects": `[${Array(190_000).fill("{ }").join(" , ")}]`,
    "spaces": "[" + " ".repeat(4_000_000) + "]",
  };
  for (const [name, text] of Object.entries(texts)) {
    const limits = { ...BOUNDS.request, values: 199_999 };
    const runs = {
      counted: () => parseMessage(text, limits),
      parsed: () => JSON.parse(text),
      scanned: () => scan(text),
    };
    // A linear count takes about as long as one scan. A quadratic count would take thousands of times as long.
    const costs = await compareCosts(runs, ({ counted, parsed, scanned }) => counted - parsed < 40 * scanned);
    assertEquals(costs, undefined, name);
  }
});

Deno.test("json values: the limit also applies on a pipe, and the pipe stays usable", async () => {
  const server = createServer({
    name: "t",
    version: "1",
    handlers: [],
    limits: testLimits({ request: { values: 30 } }),
  });
  const tooMany = sentence(30, "request.values");
  const lines: string[] = [];
  const pipe = openPipe(server, { write: (line) => void lines.push(line) });
  const ping = (extra: unknown) => JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping", params: { extra } });
  for (const text of [ping(Array(30).fill({})), `[${ping([])},${ping(Array(20).fill(0))}]`, ping(0)]) {
    await pipe.receive(text);
  }
  await pipe.idle();
  await server.close();
  assertEquals(lines.map((line) => JSON.parse(line).error?.message ?? "served"), [tooMany, tooMany, "served"]);
});
