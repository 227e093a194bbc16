// Markdown of untrusted servers is split into tokens in linear time.
import { assert, assertEquals } from "@std/assert";
import { lexMarkdown } from "../../../src/cli/inspector/browser/markdown_lexer.ts";

/** The types of the parts of each block. */
function toTypes(text: string): unknown[] {
  return lexMarkdown(text).map((block) =>
    "tokens" in block ? (block.tokens ?? []).map(({ type }) => type) : block.type
  );
}

Deno.test("a paragraph of ordinary length is split into its parts", () => {
  const text = "Some *emphasis* and `code`.\r\nMore [text](https://example.com).";
  assertEquals(toTypes(text), [["text", "em", "text", "codespan", "text", "link", "text"]]);
  assert(lexMarkdown(text).every(({ raw }) => !raw.includes("\r")));
});

// The lexer takes quadratic time for each of these marks, which is seconds for a long text.
for (const mark of ["_a", "*a ", "a])**~", "!**~)'", "]_a", "**a"]) {
  Deno.test(`a long paragraph of ${JSON.stringify(mark)} is one token`, () => {
    const text = mark.repeat(Math.ceil(2001 / mark.length));
    assertEquals(toTypes(`${text}\n\nShort *emphasis*.`), [["text"], "space", ["text", "em", "text"]]);
  });
}
