// Markdown of strangers is split into tokens in time that grows with its length.
import { assert, assertEquals } from "@std/assert";
import { lexMarkdown } from "../../../src/cli/inspector/browser/markdown.ts";

Deno.test("a paragraph of ordinary length is split into its parts", () => {
  const [paragraph] = lexMarkdown("Some *emphasis* and `code`.\r\nMore [text](https://example.com).");
  assertEquals(paragraph.tokens?.map(({ type }) => type), ["text", "em", "text", "codespan", "text", "link", "text"]);
  assert(!paragraph.raw.includes("\r"));
});

// The lexer takes the square of the length for each of these, which is seconds for a long text.
for (const mark of ["_a", "*a ", "a])**~", "!**~)'", "]_a", "**a"]) {
  Deno.test(`a long paragraph of ${JSON.stringify(mark)} is one token`, () => {
    const text = mark.repeat(2001 / mark.length + 1);
    const [paragraph, ...others] = lexMarkdown(text);
    assertEquals(others, []);
    assertEquals(paragraph.tokens?.map(({ type }) => type), ["text"]);
    const lines = lexMarkdown(`${text}\n\nShort *emphasis*.`);
    assertEquals(lines.at(-1)?.tokens?.map(({ type }) => type), ["text", "em", "text"]);
  });
}
