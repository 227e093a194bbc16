/**
 * Shows what a server sends, always as text.
 *
 * @module
 */
import type { Dom, Element } from "./dom.ts";
import type { Json, JsonTools } from "./json_tools.ts";
import type { Markdown } from "./markdown.ts";
import type { MakeTextViewer } from "./text_viewer.ts";
import type { Outcome } from "./rpc_client.ts";

/** Functions that show content. */
export interface ContentView {
  /** A coloured JSON value, with tools to search and copy it. */
  json(value: unknown): Element;
  /** A coloured JSON value. */
  plainJson(value: unknown): Element;
  /** Text, with tools. */
  long(text: string): Element;
  /** A note that there is no content. */
  nothing(words: string): Element;
  /** Content blocks. */
  contents(blocks: unknown): readonly Element[];
  /** The contents of a resource. */
  resource(contents: Json): Element;
  /** An error. */
  error(outcome: Outcome & { readonly kind: "error" }): Element;
  /** Labels such as `read-only`. */
  marks(words: readonly string[]): Element;
  /** A collapsed section. */
  fold(title: string, make: () => Element): Element;
}

/** Dependencies. */
export interface ContentViewParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly markdown: Markdown;
  readonly makeTextViewer: MakeTextViewer;
  /** Opens a resource. */
  readonly open: (uri: string) => void;
}

/** Makes what shows things. */
export function createContentView({ dom, json: tools, markdown, makeTextViewer, open }: ContentViewParts): ContentView {
  const { h, serverText, escapeInvisible } = dom;
  const { isObject, text, pretty } = tools;
  const most = 50_000; // characters to colour, because more make the page slow
  const largest = 20_000_000; // characters of Base64 to render
  // Images and audio of these types never run code, not even SVG. Browsers may pass other types to external programs.
  const images = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/svg+xml"];
  const sounds = [
    "audio/wav",
    "audio/x-wav",
    "audio/mpeg",
    "audio/mp3",
    "audio/ogg",
    "audio/webm",
    "audio/mp4",
    "audio/aac",
    "audio/flac",
  ];

  function json(value: unknown): Element {
    return makeTextViewer(pretty(value), { label: "JSON", raw: toCode });
  }

  function plainJson(value: unknown): Element {
    const code = pretty(value);
    return code.length > most ? makeTextViewer(code, { label: "JSON" }) : toCode(code);
  }

  function toCode(code: string): Element {
    const element = h("pre.code", { tabindex: 0 });
    if (code.length > most) {
      element.append(escapeInvisible(code.slice(0, most)));
      const more = h("button.small", { type: "button", click: () => element.replaceChildren(escapeInvisible(code)) });
      more.append(`Show all ${code.length} characters`);
      element.append("\n… ", more);
      return element;
    }
    const token = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g;
    let at = 0;
    for (const match of code.matchAll(token)) {
      const [whole, string, colon, word] = match;
      const body = string ?? whole;
      element.append(escapeInvisible(code.slice(at, match.index)));
      element.append(
        h(
          string ? (colon ? "span.key" : "span.string") : word ? "span.word" : "span.number",
          {},
          escapeInvisible(body),
        ),
      );
      at = match.index + body.length;
    }
    element.append(escapeInvisible(code.slice(at)));
    return element;
  }

  function long(all: string): Element {
    return toText(all, "text/plain");
  }

  function nothing(words: string): Element {
    return h("p.muted.nothing", {}, words);
  }

  function contents(blocks: unknown): readonly Element[] {
    const list = Array.isArray(blocks) ? blocks : [blocks];
    if (!list.length) return [nothing("The content is empty.")];
    return list.map((block) => {
      if (!isObject(block)) return json(block);
      const element = h("div.block", {}, toBlock(block));
      const { audience, priority, lastModified } = isObject(block.annotations) ? block.annotations : {};
      const words = [
        ...Array.isArray(audience) && audience.length ? [`for ${audience.join(" and ")}`] : [],
        ...priority === undefined ? [] : [`priority ${priority}`],
        ...lastModified === undefined ? [] : [`modified ${lastModified}`],
      ];
      if (words.length) element.append(marks(words));
      return element;
    });
  }

  function toBlock(block: Json): Element {
    const { type, data, mimeType } = block;
    if (type === "text" && typeof block.text === "string") return long(block.text);
    if (type === "image" || type === "audio") return toMedia(String(mimeType), String(data));
    if (type === "resource" && isObject(block.resource)) return resource(block.resource);
    if (type === "resource_link" && typeof block.uri === "string") return toLink(block, block.uri);
    return json(block);
  }

  function toLink(block: Json, uri: string): Element {
    const name = text(block.title) ?? text(block.name) ?? uri;
    return h(
      "div.link",
      {},
      h("button.small", { type: "button", click: () => open(uri) }, "Read"),
      h("span.grow", {}, h("strong", {}, serverText(name)), " ", h("code", {}, serverText(uri))),
      h("span.muted", {}, escapeInvisible(text(block.mimeType) ?? "")),
    );
  }

  function resource(contents: Json): Element {
    const { uri, mimeType, blob } = contents;
    const head = h(
      "div.head",
      {},
      h("code.grow", {}, serverText(uri)),
      blob === undefined && h("span.muted", {}, escapeInvisible(text(mimeType) ?? "")),
    );
    const body = typeof contents.text === "string"
      ? toText(contents.text, text(mimeType) ?? "")
      : typeof blob === "string"
      ? toMedia(text(mimeType) ?? "", blob)
      : json(contents);
    return h("div.resource", {}, head, body);
  }

  function toText(body: string, mimeType: string): Element {
    if (!body) return nothing("The text is empty.");
    const type = mimeType.toLowerCase();
    if (/[/+]json\b/.test(type)) return makeTextViewer(body, { label: "JSON", raw: toCode });
    if (type.startsWith("image/svg+xml")) {
      const look = {
        name: "Rendered",
        isFirst: false,
        make: () => toImage(`data:image/svg+xml,${encodeURIComponent(body.toWellFormed())}`),
      };
      return makeTextViewer(body, { label: "Text", look });
    }
    const isMarkdown = type.startsWith("text/markdown");
    const mayBe = isMarkdown || (/^(text\/plain\b.*)?$/.test(type) && markdown.isLikely(body));
    const look = { name: "Rendered", isFirst: isMarkdown, make: () => markdown.render(body) };
    return makeTextViewer(body, { label: "Text", look: mayBe ? look : undefined });
  }

  function toImage(source: string): Element {
    const image = h("img", { src: source, alt: "Image" });
    image.addEventListener("error", () => image.replaceWith(nothing("The browser cannot show this image.")));
    return image;
  }

  function toMedia(mimeType: string, data: string): Element {
    const [type] = mimeType.toLowerCase().split(";", 1);
    const bytes = Math.floor(data.replace(/=+$/, "").length * 3 / 4);
    const isBase64 = /^[A-Za-z\d+/]*={0,2}$/.test(data);
    const amount = isBase64 ? `${bytes} bytes` : "not valid Base64";
    const facts = `${escapeInvisible(mimeType.slice(0, 100) || "unknown type")}, ${amount}`;
    const source = `data:${type};base64,${data}`;
    const isSafe = isBase64 && data.length <= largest;
    const make = !isSafe
      ? undefined
      : images.includes(type)
      ? () => toImage(source)
      : sounds.includes(type)
      ? () => h("audio", { src: source, controls: true, "aria-label": "Sound" })
      : undefined;
    if (make) {
      const look = { name: "Rendered", isFirst: true, make };
      return h("div.media", {}, makeTextViewer(data, { label: "Media", facts, look }));
    }
    return h("div.media", {}, makeTextViewer(data, { label: "Bytes in Base64", facts, raw: toBytes }));
  }

  // The beginning of Base64 is enough to recognize it.
  function toBytes(data: string): Element {
    return h("pre.code", { tabindex: 0 }, escapeInvisible(data.slice(0, 200)), data.length > 200 && "…");
  }

  function error({ code, message, data, status }: Outcome & { readonly kind: "error" }): Element {
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
    const element = h(
      "div.error",
      {},
      h("strong", {}, title),
      h("span.muted", {}, http),
      h("p", {}, serverText(message)),
    );
    if (data !== undefined) element.append(json(data));
    return element;
  }

  function marks(words: readonly string[]): Element {
    return h("span.marks", {}, ...words.map((word) => h("span.mark", {}, escapeInvisible(word))));
  }

  function fold(title: string, make: () => Element): Element {
    const element = h("details.fold", {}, h("summary", {}, title));
    element.addEventListener("toggle", () => {
      if (element.open && element.childElementCount === 1) element.append(make());
    });
    return element;
  }

  return { json, plainJson, long, nothing, contents, resource, error, marks, fold };
}
