/**
 * Renders Markdown as elements. Never interprets HTML in the text, and never loads a URL.
 */
import type { MarkedToken, Token, Tokens } from "marked";
import { type Child, escapeInvisible, h, isWebUrl, makeLink } from "./dom.ts";
import { lexMarkdown } from "./markdown_lexer.ts";

/** Maximum number of characters to render. */
const MAX_CHARACTERS = 20_000;
/** Maximum nesting depth of quotations, lists and emphasis. */
const MAX_DEPTH = 16;
const MAX_CELLS = 2000;

export function isLikelyMarkdown(text: string): boolean {
  const start = text.slice(0, 5000);
  return /^ {0,3}(#{1,6} |[-*+] |> |```|\d{1,3}\. |\|)/m.test(start) || /\*\*\S|\]\(|`[^`\n]/.test(start);
}

export function renderMarkdown(text: string): HTMLElement {
  const element = h("div.prose", ...toBlocks(text.slice(0, MAX_CHARACTERS)));
  if (text.length > MAX_CHARACTERS) {
    element.append(
      h("p.muted", `Only the first ${MAX_CHARACTERS} characters are rendered; switch to Raw to see the whole text.`),
    );
  }
  return element;
}

function toBlocks(text: string): readonly Child[] {
  try {
    return toElements(lexMarkdown(text), 0);
  } catch {
    // Thousands of nested quotations make the lexer overflow the browser's call stack.
    return [h("p", escapeInvisible(text))];
  }
}

function toElements(tokens: readonly Token[] = [], depth: number): readonly Child[] {
  if (depth >= MAX_DEPTH) return tokens.map(({ raw }) => toPlain(raw));
  // The cast is safe: only lexer extensions create other tokens, and this lexer has no extensions.
  return tokens.map((token) => toElement(token as MarkedToken, depth + 1));
}

function toPlain(text: string): string {
  return escapeInvisible(text);
}

function toElement(token: MarkedToken, depth: number): Child {
  switch (token.type) {
    case "heading":
      // Skip the two highest levels, because the page's own headings use them.
      return h(`h${Math.min(6, token.depth + 2)}.heading`, ...toElements(token.tokens, depth));
    case "paragraph":
      return h("p", ...toElements(token.tokens, depth));
    case "blockquote":
      return h("blockquote", ...toElements(token.tokens, depth));
    case "list":
      return toList(token, depth);
    case "table":
      return toTable(token, depth);
    case "code":
      return h("pre.code", { tabindex: 0 }, toPlain(token.text));
    case "codespan":
      return h("code", toPlain(token.text));
    case "strong":
    case "em":
    case "del":
      return h(token.type, ...toElements(token.tokens, depth));
    case "link":
      return toLink(token, depth);
    case "image":
      return toImage(token);
    case "hr":
    case "br":
      return h(token.type);
    case "checkbox":
      return token.checked ? "☑ " : "☐ ";
    case "text":
      return token.tokens ? h("span", ...toElements(token.tokens, depth)) : toPlain(token.text);
    case "escape":
      return toPlain(token.text);
    case "space":
    case "def":
      return undefined;
    default:
      return toPlain(token.raw); // Show HTML as text.
  }
}

function toList({ ordered, start, items }: Tokens.List, depth: number): HTMLElement {
  const rows = items.map(({ tokens }) => h("li", ...toElements(tokens, depth)));
  return ordered ? h("ol.items", { start: String(start) }, ...rows) : h("ul.items", ...rows);
}

function toTable({ header, rows }: Tokens.Table, depth: number): HTMLElement {
  const maxRows = Math.floor(MAX_CELLS / header.length);
  const toRow = (cells: readonly Tokens.TableCell[]) =>
    h("tr", ...cells.map(({ header, tokens }) => h(header ? "th" : "td", ...toElements(tokens, depth))));
  const table = h("table", h("thead", toRow(header)), h("tbody", ...rows.slice(0, maxRows).map(toRow)));
  return h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Table" }, table);
}

// Creates a link and shows the host of its URL, because the link text can mention a different host.
function toLink({ href, text, tokens }: Tokens.Link, depth: number): HTMLElement {
  const inner = toElements(tokens, depth);
  const isMail = /^mailto:/i.test(href) && URL.canParse(href);
  if (!isMail && !isWebUrl(href)) return h("span", ...inner, " ", h("code", toPlain(href.slice(0, 500))));
  const url = new URL(href);
  const place = isMail ? url.pathname : url.host;
  const link = makeLink(url.href, ...inner);
  link.title = escapeInvisible(url.href);
  return text.includes(place) ? link : h("span", link, h("span.muted", ` (${escapeInvisible(place)})`));
}

// Shows an image as text. Does not load the image, because the request would reveal to the image's server who reads the
// text, and when.
function toImage({ text, href }: Tokens.Image): HTMLElement {
  const name = escapeInvisible(text) || "no description";
  return h("span.image", `Image, not loaded: ${name} `, h("code", toPlain(href.slice(0, 500))));
}
