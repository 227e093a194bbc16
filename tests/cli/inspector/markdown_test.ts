// Markdown from untrusted servers is split into tokens in linear time.
import { assert, assertEquals } from "@std/assert";
import { lexMarkdown } from "../../../src/cli/inspector/browser/markdown_lexer.ts";

/** Returns the types of the tokens in each block. */
function toTypes(text: string): unknown[] {
  return lexMarkdown(text).map((block) =>
    "tokens" in block ? (block.tokens ?? []).map(({ type }) => type) : block.type
  );
}

Deno.test("a paragraph of ordinary length is split into tokens", () => {
  const text = "Some *emphasis* and `code`.\r\nMore [text](https://example.com).";
  assertEquals(toTypes(text), [["text", "em", "text", "codespan", "text", "link", "text"]]);
  assert(lexMarkdown(text).every(({ raw }) => !raw.includes("\r")));
});

// For repetitions of these marks, the lexer takes quadratic time, which amounts to seconds for a long text.
for (const mark of ["_a", "*a ", "a])**~", "!**~)'", "]_a", "**a"]) {
  Deno.test(`a long paragraph of repeated ${JSON.stringify(mark)} is one token`, () => {
    const text = mark.repeat(Math.ceil(2001 / mark.length));
    assertEquals(toTypes(`${text}\n\nShort *emphasis*.`), [["text"], "space", ["text", "em", "text"]]);
  });
}
