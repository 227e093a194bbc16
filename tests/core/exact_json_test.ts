// JSON with whole numbers that JavaScript would round.
import { assertEquals } from "@std/assert";
import { mayRound, parseExactly } from "../../src/core/kit/exact_json.ts";

const LARGE = "9007199254740993";

Deno.test("only texts with a whole number of 16 digits may be rounded", () => {
  for (
    const text of [LARGE, `-${LARGE}`, `[-${LARGE}]`, `{"a":${LARGE}}`, `{"a": ${LARGE}}`, `[1,${LARGE}]`, `\n${LARGE}`]
  ) {
    assertEquals(mayRound(text), true, text);
    const digits: string[] = [];
    parseExactly(text, (each) => digits.push(each));
    assertEquals(digits, [text.includes("-") ? `-${LARGE}` : LARGE], text);
  }
  for (const text of ["0.30000000000000004", "[-0.1234567890123456]", `["${LARGE}"]`, "1e1000000000000000"]) {
    assertEquals(mayRound(text), false, text);
    assertEquals(parseExactly(text, () => "digits"), JSON.parse(text), text);
  }
});
