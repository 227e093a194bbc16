// Parts of messages: text from other programs, which may be long, end with a full stop or contain control characters.
import { assertEquals } from "@std/assert";
import { toState } from "../../src/core/kit/error_state.ts";
import { shorten } from "../../src/core/kit/shorten.ts";

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
