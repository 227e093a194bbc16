/**
 * Shows content from a server, always as text.
 */
import { isObject } from "../../../core/kit/json.ts";
import { type Child, escapeInvisible, h, makeButton, serverText } from "./dom.ts";
import type { Failure } from "./exchange.ts";
import { type Json, toObject, toPretty, toText } from "./json.ts";
import { isLikelyMarkdown, renderMarkdown } from "./markdown.ts";
import { makePlainText, makeTextViewer, MAX_SHOWN } from "./text_viewer.ts";

/** Maximum length of an image or audio file to render, in characters of Base64. */
const MAX_MEDIUM = 20_000_000;
// Types of images and audio to render. None of these types can run code in an `img` or `audio` element, not even SVG.
// Other types are not rendered, because browsers may pass them to external programs.
const IMAGES = /^image\/(png|jpeg|gif|webp|avif|svg\+xml)$/;
const SOUNDS = /^audio\/(wav|x-wav|mpeg|mp3|ogg|webm|mp4|aac|flac)$/;

/** The name of the event with which a button asks the page to open a resource. The event's `detail` is the URI. */
export const OPEN_RESOURCE = "open-resource";

/** Shows a JSON value in color, with tools for searching and copying. */
export function showJson(value: unknown): HTMLElement {
  return makeTextViewer(toPretty(value), { label: "JSON", raw: toColoured });
}

/** Shows a JSON value in color, without tools. */
export function showPlainJson(value: unknown): HTMLElement {
  const code = toPretty(value);
  return code.length > MAX_SHOWN ? makeTextViewer(code, { label: "JSON" }) : toColoured(code);
}

/** Shows text with tools for searching and copying. */
export function showText(text: string): HTMLElement {
  return toViewer(text, "text/plain");
}

export function showNothing(words: string): HTMLElement {
  return h("p.muted.nothing", words);
}

/** Shows content blocks. A value that is not an array counts as one block. */
export function showContents(blocks: unknown): readonly HTMLElement[] {
  const list = Array.isArray(blocks) ? blocks : [blocks];
  if (!list.length) return [showNothing("The content is empty.")];
  return list.map((block) => isObject(block) ? h("div.block", toBlock(block), toAnnotations(block)) : showJson(block));
}

/** Shows the contents of one resource: text, or binary data. */
export function showResource(contents: Json): HTMLElement {
  const { uri, text, blob } = contents;
  const mimeType = toText(contents.mimeType) ?? "";
  const type = blob === undefined && h("span.muted", escapeInvisible(mimeType));
  const head = h("div.head", h("code.grow", serverText(uri)), type);
  if (typeof text === "string") return h("div.resource", head, toViewer(text, mimeType));
  return h("div.resource", head, typeof blob === "string" ? toMedium(mimeType, blob) : showJson(contents));
}

export function showError({ code, message, data, status }: Failure): HTMLElement {
  const names: Readonly<Record<number, string>> = {
    [-32700]: "Parse error",
    [-32600]: "Invalid request",
    [-32601]: "Method not found",
    [-32602]: "Invalid params",
    [-32603]: "Internal error",
    [-32020]: "Header mismatch",
    [-32021]: "Missing client capability",
    [-32022]: "Unsupported protocol version",
  };
  const title = code === undefined ? "No response" : `${names[code] ?? "Error"} (${code})`;
  const http = status !== undefined && status !== 200 ? `HTTP ${status}` : "";
  const details = data === undefined ? undefined : showJson(data);
  return h("div.error", h("strong", title), h("span.muted", http), h("p", serverText(message)), details);
}

/** Shows labels such as `read-only`. */
export function showMarks(words: readonly string[]): HTMLElement {
  return h("span.marks", ...words.map((word) => h("span.mark", escapeInvisible(word))));
}

/** Creates a collapsed section. `make` creates the content when the user opens the section. */
export function makeFold(title: string, make: () => HTMLElement): HTMLElement {
  const element = h("details.fold", h("summary", title));
  element.addEventListener("toggle", () => {
    if (element.open && element.childElementCount === 1) element.append(make());
  });
  return element;
}

function toColoured(code: string): HTMLElement {
  if (code.length > MAX_SHOWN) {
    const plain = makePlainText(code);
    plain.className = "code";
    return plain;
  }
  const element = h("pre.code", { tabindex: 0 });
  const token = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g;
  let at = 0;
  for (const match of code.matchAll(token)) {
    const [whole, string, colon, word] = match;
    const body = string ?? whole;
    const kind = string ? (colon ? "key" : "string") : word ? "word" : "number";
    element.append(escapeInvisible(code.slice(at, match.index)), h(`span.${kind}`, escapeInvisible(body)));
    at = match.index + body.length;
  }
  element.append(escapeInvisible(code.slice(at)));
  return element;
}

function toAnnotations({ annotations }: Json): Child {
  const { audience, priority, lastModified } = toObject(annotations);
  const words = [
    ...Array.isArray(audience) && audience.length ? [`for ${audience.join(" and ")}`] : [],
    ...priority === undefined ? [] : [`priority ${priority}`],
    ...lastModified === undefined ? [] : [`modified ${lastModified}`],
  ];
  return words.length > 0 && showMarks(words);
}

function toBlock(block: Json): HTMLElement {
  const { type, text, data, mimeType, uri } = block;
  if (type === "text" && typeof text === "string") return showText(text);
  if (type === "image" || type === "audio") return toMedium(String(mimeType), String(data));
  if (type === "resource" && isObject(block.resource)) return showResource(block.resource);
  if (type === "resource_link" && typeof uri === "string") return toResourceLink(block, uri);
  return showJson(block);
}

function toResourceLink(block: Json, uri: string): HTMLElement {
  const name = toText(block.title) ?? toText(block.name) ?? uri;
  const open = makeButton("button.small", "Read", () => {
    open.dispatchEvent(new CustomEvent(OPEN_RESOURCE, { bubbles: true, detail: uri }));
  });
  return h(
    "div.link",
    open,
    h("span.grow", h("strong", serverText(name)), " ", h("code", serverText(uri))),
    h("span.muted", escapeInvisible(toText(block.mimeType) ?? "")),
  );
}

function toViewer(text: string, mimeType: string): HTMLElement {
  if (!text) return showNothing("The text is empty.");
  const type = mimeType.toLowerCase();
  if (/[/+]json\b/.test(type)) return makeTextViewer(text, { label: "JSON", raw: toColoured });
  if (type.startsWith("image/svg+xml")) {
    const make = () => toImage(`data:image/svg+xml,${encodeURIComponent(text.toWellFormed())}`);
    return makeTextViewer(text, { label: "Text", rendering: { isFirst: false, make } });
  }
  const isMarkdown = type.startsWith("text/markdown");
  const mayBe = isMarkdown || (/^(text\/plain\b.*)?$/.test(type) && isLikelyMarkdown(text));
  const rendering = { isFirst: isMarkdown, make: () => renderMarkdown(text) };
  return makeTextViewer(text, { label: "Text", rendering: mayBe ? rendering : undefined });
}

function toImage(source: string): HTMLElement {
  const image = h("img", { src: source, alt: "Image" });
  image.addEventListener("error", () => image.replaceWith(showNothing("The browser cannot show this image.")));
  return image;
}

function toMedium(mimeType: string, data: string): HTMLElement {
  const [type] = mimeType.toLowerCase().split(";", 1);
  const bytes = Math.floor(data.replace(/=+$/, "").length * 3 / 4);
  const isBase64 = /^[A-Za-z\d+/]*={0,2}$/.test(data);
  const amount = isBase64 ? `${bytes} bytes` : "not valid Base64";
  const facts = `${escapeInvisible(mimeType.slice(0, 100) || "unknown type")}, ${amount}`;
  const source = `data:${type};base64,${data}`;
  const isSafe = isBase64 && data.length <= MAX_MEDIUM;
  const make = isSafe && IMAGES.test(type)
    ? () => toImage(source)
    : isSafe && SOUNDS.test(type)
    ? () => h("audio", { src: source, controls: true, "aria-label": "Sound" })
    : undefined;
  const options = make
    ? { label: "Media", facts, rendering: { isFirst: true, make } }
    : { label: "Bytes in Base64", facts, raw: toBytes };
  return h("div.media", makeTextViewer(data, options));
}

// Shows only the beginning of Base64 text, which is enough to recognize the data.
function toBytes(data: string): HTMLElement {
  return h("pre.code", { tabindex: 0 }, escapeInvisible(data.slice(0, 200)), data.length > 200 && "…");
}
