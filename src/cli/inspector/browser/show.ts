/**
 * Shows what a server sends: always as text, whatever stands in it.
 *
 * @module
 */
import type { Dom, Element } from "./dom.ts";
import type { Json, JsonTools } from "./json.ts";
import type { Outcome } from "./wire.ts";

/** Shows things. */
export interface Show {
  /** A JSON value, coloured. */
  json(value: unknown): Element;
  /** A long text, cut with a button for the rest. */
  long(text: string): Element;
  /** Blocks of content. */
  contents(blocks: unknown): readonly Element[];
  /** What a resource holds. */
  resource(contents: Json): Element;
  /** Why there is no result. */
  error(outcome: Outcome & { readonly kind: "error" }): Element;
  /** Small words such as `read-only`. */
  marks(words: readonly string[]): Element;
  /** A part that one can open. */
  fold(title: string, make: () => Element): Element;
}

/** What things are shown with. */
export interface ShowParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  /** Goes to a resource. */
  readonly open: (uri: string) => void;
}

/** Makes what shows things. */
export function createShow({ dom: { h, say, visible, copier }, json: tools, open }: ShowParts): Show {
  const { isObject, text, pretty } = tools;
  const most = 50_000; // characters that are shown at once: a browser is slow with more

  function json(value: unknown): Element {
    return toCode(pretty(value));
  }

  function toCode(code: string): Element {
    const element = h("pre.code", { tabindex: 0 });
    if (code.length > most) return long(code);
    const token = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g;
    let at = 0;
    for (const match of code.matchAll(token)) {
      const [whole, string, colon, word] = match;
      const body = string ?? whole;
      element.append(visible(code.slice(at, match.index)));
      element.append(
        h(string ? (colon ? "span.key" : "span.string") : word ? "span.word" : "span.number", {}, visible(body)),
      );
      at = match.index + body.length;
    }
    element.append(visible(code.slice(at)));
    return element;
  }

  function long(all: string): Element {
    const element = h("pre", { tabindex: 0 }, visible(all.slice(0, most)));
    if (all.length <= most) return element;
    const more = h("button.small", { type: "button", click: () => element.replaceChildren(visible(all)) });
    more.append(`Show all ${all.length} characters`);
    element.append("\n… ", more);
    return element;
  }

  function contents(blocks: unknown): readonly Element[] {
    return (Array.isArray(blocks) ? blocks : [blocks]).map((block) => {
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
      h("span.grow", {}, h("strong", {}, say(name)), " ", h("code", {}, say(uri))),
      h("span.muted", {}, visible(text(block.mimeType) ?? "")),
    );
  }

  function resource(contents: Json): Element {
    const { uri, mimeType, blob } = contents;
    const head = h(
      "div.head",
      {},
      h("code.grow", {}, say(uri)),
      blob === undefined && h("span.muted", {}, visible(text(mimeType) ?? "")),
      typeof contents.text === "string" && copier("Copy", () => String(contents.text)),
    );
    const body = typeof contents.text === "string"
      ? toText(contents.text, String(mimeType))
      : typeof blob === "string"
      ? toMedia(text(mimeType) ?? "", blob)
      : json(contents);
    return h("div.resource", {}, head, body);
  }

  function toText(body: string, mimeType: string): Element {
    return /[/+]json\b/.test(mimeType) ? toCode(body) : long(body);
  }

  // A data URL of an image or a sound runs nothing, not even as SVG.
  function toMedia(mimeType: string, data: string): Element {
    const source = `data:${mimeType};base64,${data}`;
    const isSafe = /^[\w.+/-]+$/.test(mimeType) && /^[\w+/=-]*$/.test(data);
    const bytes = Math.floor(data.replace(/=+$/, "").length * 3 / 4);
    const facts = h("span.grow.muted", {}, `${visible(mimeType || "unknown type")}, ${bytes} bytes`);
    const row = h("div.head", {}, facts, copier("Copy Base64", () => data));
    if (isSafe && mimeType.startsWith("image/")) {
      return h("div.media", {}, h("img", { src: source, alt: "Image" }), row);
    }
    if (isSafe && mimeType.startsWith("audio/")) {
      return h("div.media", {}, h("audio", { src: source, controls: true, "aria-label": "Sound" }), row);
    }
    return h("div.media", {}, row);
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
    const title = code === undefined ? "No answer" : `${names[code] ?? "Error"} (${code})`;
    const http = status !== undefined && status !== 200 ? `HTTP ${status}` : "";
    const element = h("div.error", {}, h("strong", {}, title), h("span.muted", {}, http), h("p", {}, say(message)));
    if (data !== undefined) element.append(json(data));
    return element;
  }

  function marks(words: readonly string[]): Element {
    return h("span.marks", {}, ...words.map((word) => h("span.mark", {}, visible(word))));
  }

  function fold(title: string, make: () => Element): Element {
    const element = h("details.fold", {}, h("summary", {}, title));
    element.addEventListener("toggle", () => {
      if (element.open && element.childElementCount === 1) element.append(make());
    });
    return element;
  }

  return { json, long, contents, resource, error, marks, fold };
}
