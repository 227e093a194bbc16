// Patterns from untrusted servers match like the runtime's regular expressions, without exponential backtracking.
import { assertEquals } from "@std/assert";
import { matchesPattern } from "../../../src/cli/inspector/browser/pattern.ts";

const patterns = [
  "abc",
  "^abc$",
  "a|b|",
  "^(?:a|bc)+$",
  "^[a-z0-9]+(?:-[a-z0-9]+)*$",
  "^\\d{4}-\\d{2}-\\d{2}$",
  "^\\d{2,}$",
  "^\\d{2,3}$",
  "^\\d{0}a?$",
  "^(a{2}){1,2}$",
  "^(?<year>\\d{4})\\/x$",
  "[^\\]\\-a]",
  "^[\\p{Lu}_]\\w*$",
  "^\\p{L}+$",
  "^.$",
  "^\\.$",
  "^\\u0061\\x62$",
  "a*?b+?$",
  "(^a|b$)",
  "^$",
  "x^",
  "$a",
  "^((a*)*)*b$",
  "",
  "[]",
  "[^]",
  "\\(\\)\\[\\]\\{\\}",
  "\\cA|\\t|\\0",
];
const texts = [
  "",
  "a",
  "b",
  "ab",
  "abc",
  "xabcx",
  "bca",
  "aaaa",
  "aaa",
  "a-b-c1",
  "a--b",
  "2026-07-28",
  "12",
  "123",
  "1234",
]
  .concat(["2026/x", "]", "-", "Ä_b", "ä", "日本", "😀", ".", "\n", "a\nb", "()[]{}", "\u0001", "\t", "\0", "aab"]);

for (const pattern of patterns) {
  Deno.test(`the pattern ${JSON.stringify(pattern)} matches as a regular expression does`, () => {
    const expected = texts.map((text) => [text, new RegExp(pattern, "u").test(text)]);
    assertEquals(texts.map((text) => [text, matchesPattern(pattern, text)]), expected);
  });
}

Deno.test("patterns whose backtracking would take years are matched in linear time", () => {
  const text = `${"a".repeat(400)}!`;
  for (const pattern of ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "^(.*)*$b", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$"]) {
    assertEquals(matchesPattern(pattern, text), false, pattern);
  }
});

Deno.test("patterns that are invalid, too large or not supported give no verdict", () => {
  for (
    const pattern of ["(", "a{2,1}", "\\", "(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", "(a)\\1", "\\ba", "\\B", "(?i:a)"]
  ) {
    assertEquals(matchesPattern(pattern, "a"), undefined, pattern);
  }
  assertEquals(matchesPattern("(a{100}){100}", "a"), undefined);
  assertEquals(matchesPattern("((a{9}){9}){9}{9}", "a"), undefined);
  assertEquals(matchesPattern("a".repeat(3000), "a"), undefined);
  assertEquals(matchesPattern("a", "a".repeat(3000)), undefined);
});
