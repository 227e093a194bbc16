// The normal form of URIs, as RFC 3986 defines it.
import { assertEquals, assertNotEquals } from "@std/assert";
import { normalizeUri } from "../../src/core/protocol/uri_text.ts";

/** Equivalent URIs in each list, beginning with the normal form. */
const EQUAL: readonly (readonly string[])[] = [
  ["note://host/a", "NOTE://HOST/a", "Note://Host/./a", "note://host/b/../a", "note://host/%61"],
  ["file:///Users/Ada/a%20b", "FILE:///Users/Ada/a%20b", "file:///Users/Ada/x/../a%20b"],
  ["https://ada@host:8080/%C3%A9?q=%2F#f", "https://ada@HOST:8080/%c3%a9?q=%2f#f"],
  ["urn:isbn:12-3~x", "URN:isbn:12%2D3%7ex"],
  ["note://host/a/", "note://host/a/b/..", "note://host/a/."],
  ["note://host/", "note://host/.."],
  ["data:text/plain,a", "DATA:text/plain,a"],
  ["note://h%C3%A9", "note://H%c3%a9"],
];

Deno.test("equivalent URIs have the same normal form", () => {
  for (const [normal, ...others] of EQUAL) {
    for (const uri of [normal, ...others]) assertEquals(normalizeUri(uri), normal, uri);
  }
});

Deno.test("different URIs have different normal forms", () => {
  for (
    const [one, two] of [
      ["note://host/a", "note://host/A"],
      ["note://host/a", "note://host/a/"],
      ["note://host/a%2Fb", "note://host/a/b"],
      ["note://Ada@host", "note://ada@host"],
      ["urn:a", "urn:A"],
      ["note:a/../b", "note:b"],
      ["note://host?A", "note://host?a"],
      ["note://host", "note://host/"],
    ]
  ) assertNotEquals(normalizeUri(one), normalizeUri(two));
});

Deno.test("text that is not a URI stays unchanged", () => {
  for (const text of ["", "a", "/a/../b", "%zz", "1a://x"]) assertEquals(normalizeUri(text), text);
});
