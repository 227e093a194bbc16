import { decodeHeaderValue, encodeHeaderValue } from "../../src/core/protocol/header_value.ts";
import { random } from "../support/random.ts";
import { assertEquals, assertMatch, assertStrictEquals } from "../support/std.ts";

Deno.test("header value: the examples in the specification are encoded and decoded", () => {
  const examples = [
    ["us-west1", "us-west1"],
    ["Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="],
    [" padded ", "=?base64?IHBhZGRlZCA=?="],
    ["line1\nline2", "=?base64?bGluZTEKbGluZTI=?="],
    ["=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="],
  ];
  for (const [value, header] of examples) {
    assertEquals(encodeHeaderValue(value), header);
    assertEquals(decodeHeaderValue(header), value);
  }
});

Deno.test("header value: a value that only resembles the encoded form is taken literally", () => {
  for (
    const text of ["SGVsbG8=", "=?base64?SGVsbG8=", "SGVsbG8=?=", "=?BASE64?SGVsbG8=?=", "=?Base64?x?=", "=?base64?="]
  ) {
    assertEquals(decodeHeaderValue(text), text);
    if (text !== "=?base64?=") assertEquals(encodeHeaderValue(text), text);
  }
});

Deno.test("header value: malformed values are refused", () => {
  const malformed = [
    "=?base64?SGVsbG8?=", // The padding is missing.
    "=?base64?SGVsbG8==?=", // There is too much padding.
    "=?base64?SGVs!!!bG8=?=",
    "=?base64?SGVs bG8=?=",
    "=?base64?SGVs\tbG8=?=",
    "=?base64?SGVsbG9=?=", // There are bits after the last byte.
    "=?base64?_-_-?=", // The text uses the URL-safe alphabet.
    "=?base64?/w==?=", // 0xFF is not valid in UTF-8.
    "=?base64?7aCA?=", // A surrogate is not valid in UTF-8.
    "=?base64?wIA=?=", // An overlong form is not valid in UTF-8.
    "caf\u00e9",
    "世界",
    "a\u0000b",
    "a\r\nb",
    "a\u007f",
    "\u00a0x",
    "x\n",
  ];
  for (const header of malformed) assertStrictEquals(decodeHeaderValue(header), undefined, JSON.stringify(header));
});

Deno.test("header value: leading and trailing spaces and tabs are removed, and inner spaces and tabs are kept", () => {
  assertEquals(decodeHeaderValue(" \t name \t"), "name");
  assertEquals(decodeHeaderValue("two  words\tthree"), "two  words\tthree");
  assertEquals(decodeHeaderValue("  =?base64?SGVsbG8=?=  "), "Hello");
  assertEquals(decodeHeaderValue(""), "");
  assertEquals(decodeHeaderValue("=?base64??="), "");
  assertEquals(encodeHeaderValue("two  words\tthree"), "two  words\tthree");
});

Deno.test("header value: a byte order mark is preserved, but a lone surrogate is not", () => {
  assertEquals(decodeHeaderValue(encodeHeaderValue("\ufeffx")), "\ufeffx");
  assertEquals(decodeHeaderValue(encodeHeaderValue("a\ud800b")), "a\ufffdb");
});

Deno.test("header value: decoding reverses encoding for every string, and the encoded value contains only safe characters", () => {
  const source = random(7);
  const alphabet = [..."aZ09 \t=?-_/+\n\r\u0000~", "=?base64?", "?=", "é", "世", "😀", "\u007f", "\u00a0"];
  for (let i = 0; i < 5000; i++) {
    const value = source.text(alphabet, 12);
    const header = encodeHeaderValue(value);
    assertMatch(header, /^([!-~]([\t -~]*[!-~])?)?$/);
    assertEquals(decodeHeaderValue(header), value);
    assertEquals(new Headers({ x: header }).get("x"), header);
  }
});
