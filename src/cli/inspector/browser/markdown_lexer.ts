/**
 * Splits Markdown into tokens.
 */
import { Lexer, type Token } from "marked";

/**
 * Maximum length of a paragraph whose emphasis and links are parsed, in characters. Without this limit, the lexer takes
 * seconds for some texts of 20,000 characters.
 */
const MAX_INLINE = 2000;

/** Splits a text into tokens. A paragraph longer than `MAX_INLINE` becomes a single token. */
export function lexMarkdown(text: string): readonly Token[] {
  const lexer = new Lexer({ gfm: true });
  lexer.blockTokens(text.replaceAll("\r\n", "\n"), lexer.tokens);
  for (const { src, tokens } of lexer.inlineQueue) {
    if (src.length <= MAX_INLINE) lexer.inlineTokens(src, tokens);
    else tokens.push({ type: "text", raw: src, text: src });
  }
  return lexer.tokens;
}
