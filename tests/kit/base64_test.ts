import { fromBase64, fromBase64Url, toBase64, toBase64Url } from "../../src/core/kit/base64.ts";
import { random } from "../support/random.ts";
import { assert, assertEquals, assertMatch, assertStrictEquals } from "../support/std.ts";

Deno.test("base64: decoding reverses encoding for bytes of every length, in both alphabets", () => {
  const source = random(11);
  for (let length = 0; length < 300; length++) {
    const bytes = Uint8Array.from({ length }, () => source.below(256));
    assertEquals(fromBase64(toBase64(bytes)), bytes);
    assertEquals(fromBase64Url(toBase64Url(bytes)), bytes);
    assertEquals(toBase64(bytes), btoa(String.fromCharCode(...bytes)));
    assertMatch(toBase64Url(bytes), /^[\w-]*$/);
  }
  const large = new Uint8Array(1 << 20).fill(251);
  assertEquals(fromBase64Url(toBase64Url(large))?.length, large.length);
});

Deno.test("base64: only the canonical form of a text is decoded", () => {
  const bytes = new Uint8Array([251, 255, 190, 1]);
  assertEquals(toBase64Url(bytes), "-_--AQ");
  for (const text of ["-_--AR", "-_--AQ==", "-_--A", "+/++AQ", "-_--AQ ", " -_--AQ", "-_-\n-AQ", "-_--AQ\u0000", "é"]) {
    assertStrictEquals(fromBase64Url(text), undefined, JSON.stringify(text));
  }
  assertStrictEquals(fromBase64("-_--AQ=="), undefined);
  assert(fromBase64("+/++AQ=="));
});
