// External text as logs and terminals show it.
import { assert, assertEquals } from "@std/assert";
import { formatError } from "../../src/core/kit/error_log.ts";
import { toState } from "../../src/core/kit/error_state.ts";
import { toPrintable, toPrintableJson, toPrintableLine } from "../../src/core/kit/printable.ts";
import { shorten } from "../../src/core/kit/shorten.ts";
import { sentence } from "../support/messages.ts";

const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/u;

/** Yields every code point, including lone surrogates. */
function* codePoints(): Generator<string> {
  for (let code = 0; code <= 0x10ffff; code++) yield String.fromCodePoint(code);
}

Deno.test("no control character, invisible character or lone surrogate is printed", () => {
  for (const each of codePoints()) {
    const [text, line] = [toPrintable(`a${each}b`), toPrintableLine(`a${each}b`)];
    if (HIDDEN.test(each)) assert(line === `a\\u{${each.codePointAt(0)?.toString(16)}}b`, JSON.stringify(line));
    else assert(line === `a${each}b`, JSON.stringify(line));
    assert(text === (each === "\n" || each === "\t" ? `a${each}b` : line), JSON.stringify(text));
  }
});

for (
  const [given, shown] of [
    ["\x1b]0;title\x07", "\\u{1b}]0;title\\u{7}"],
    ["\x9b2J", "\\u{9b}2J"],
    ["a\r\nb", "a\\u{d}\nb"],
    ["\u061c\u200b\u2066", "\\u{61c}\\u{200b}\\u{2066}"],
    ["ok\u{e0049}\u{e0047}", "ok\\u{e0049}\\u{e0047}"],
    ["\ufe0f\ufe0f \u{e0100}", "\\u{fe0f}\\u{fe0f} \\u{e0100}"],
    ["👨‍👩‍👧‍👦 ❤️ 👍🏽 1️⃣ é e\u0301", "👨‍👩‍👧‍👦 ❤️ 👍🏽 1️⃣ é e\u0301"],
    ["👨\u200dx", "👨\\u{200d}x"],
    ["\u{1f3f4}\u{e0067}\u{e007f}", "\u{1f3f4}\\u{e0067}\\u{e007f}"],
  ]
) {
  Deno.test(`${JSON.stringify(shown)} is shown`, () => assertEquals(toPrintable(given), shown));
}

Deno.test("printable JSON text parses to the same value", () => {
  let state = 1;
  const random = (most: number) => (state = (state * 48271) % 2147483647) % most;
  const odd = ["\x1b", "\u202e", "\u{e0041}", "\ud800", '"', "\\", "\n", "é", "👨‍👩‍👧", "\u2028", "a"];
  for (let i = 0; i < 2000; i++) {
    const text = Array.from({ length: random(12) }, () => odd[random(odd.length)]).join("");
    const value = { [text]: [text, { text }] };
    const json = toPrintableJson(JSON.stringify(value, null, 2));
    assertEquals(JSON.parse(json), value);
    assert(!HIDDEN.test(toPrintable(json).replace(/[\n\t]/g, "").replaceAll("👨‍👩‍👧", "")), json);
  }
});

Deno.test("an error is printed with its stack and its causes, and its message cannot imitate a log line", () => {
  const forged = "bad\n    at forged (file:///x.ts:1:1)\n[info] all is well\x1b[2J";
  const error = new TypeError(forged, { cause: new Error("why\nnot") });
  const lines = formatError(error).split("\n");
  assertEquals(lines[0], `TypeError: ${toPrintableLine(forged)}`);
  assert(lines.slice(1).some((line) => line.includes("printable_test.ts")), lines.join("\n"));
  assertEquals(lines.filter((line) => line.includes("why")), [sentence("Error: why\\u{a}not")]);
  assertEquals(lines.filter((line) => /^(\[info\]| +at forged)/.test(line)), []);
  const many = new AggregateError([new Error("one\nx"), "two\r"], "both");
  assertEquals(formatError(many).match(/^ {2}- .*/gm), ["  - Error: one\\u{a}x", "  - two\\u{d}"]);
  const loop = new Error("loop");
  loop.cause = loop;
  assert(formatError(loop).length < 100_000);
  for (const odd of [undefined, null, 1n, "a\nb", { a: "\x1b" }, Object.create(null), Symbol("s")]) {
    assert(!/[\p{Cc}]/u.test(formatError(odd)));
  }
});

// Parts of messages: text from other programs, which may be long, end with a full stop or contain control characters.

Deno.test("the message of an error loses its final full stop, because a remedy follows", () => {
  assertEquals(toState(new Error("No such file.")), "No such file");
  assertEquals(toState(" () => {} could not be cloned. \n"), "() => {} could not be cloned");
  for (const same of ["wait…", "wait...", "a.b", ".", "", "is it?"]) assertEquals(toState(same), same);
  assertEquals(toState(null), "null");
});

Deno.test("a shortened text keeps its quotation marks in pairs", () => {
  assertEquals(shorten('"abcdef"', 8), '"abcdef"');
  assertEquals(shorten('"abcdefg"', 8), '"abcdefg…"');
  assertEquals(shorten('tag "abcdefg"', 8), 'tag "abc…"');
  assertEquals(shorten('abcdefgh "x"', 8), "abcdefgh…");
  assertEquals(shorten('"a" and "b"', 4), '"a" …');
  assertEquals(shorten('"abc\\"defg"', 8), '"abc\\"de…"');
  assertEquals(shorten('"abc\\"defg"', 4), '"abc…"');
  assertEquals(shorten("abcdef", 3), "abc…");
});
