/**
 * The log of all messages.
 *
 * @module
 */
import type { Dom, Element } from "./dom.ts";
import type { JsonTools } from "./json_tools.ts";
import type { ContentView } from "./content_view.ts";
import type { Frame } from "./rpc_client.ts";

/** The log. */
export interface MessageLog {
  readonly element: Element;
  add(frame: Frame): void;
  /** Scrolls to the newest message. */
  scrollToEnd(): void;
}

/** Dependencies. */
export interface MessageLogParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly show: ContentView;
  /** Masks the secrets in text. */
  readonly mask: (text: string) => string;
  /** The names of the headers that the user entered. */
  readonly headerNames: readonly string[];
  /** Called with the number of messages so far. */
  readonly onCount: (count: number) => void;
}

/** Makes the log. */
export function createMessageLog(
  { dom: { h, serverText, copyButton }, json, show, mask, headerNames, onCount }: MessageLogParts,
): MessageLog {
  const most = 1000; // messages to keep
  const longest = 100_000; // characters of a message to keep
  let frames: (readonly [words: string, row: Element])[] = [];
  let count = 0;
  const filter = h("input.filter", { type: "search", "aria-label": "Filter messages", placeholder: "Filter messages" });
  const clear = h("button.quiet.small", { type: "button", click: empty }, "Clear");
  const list = h("ol.frames", { role: "log", "aria-live": "off", "aria-label": "Messages", tabindex: 0 });
  const hint = h("p.muted.pad", {}, "No messages yet.");
  filter.addEventListener("input", () => frames.forEach(applyFilter));

  function empty(): void {
    frames = [];
    list.replaceChildren();
    hint.hidden = false;
  }

  function applyFilter([words, row]: readonly [string, Element]): void {
    row.hidden = !words.includes(filter.value.trim().toLowerCase());
  }

  function add(given: Frame): void {
    const frame = { ...given, text: mask(given.text), subject: given.subject && mask(given.subject) };
    const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 30;
    const { kind, id, method, subject = "", text } = frame;
    const entry = [
      `#${id} ${kind} ${method} ${subject} ${text.slice(0, longest)}`.toLowerCase(),
      toRow(frame),
    ] as const;
    applyFilter(entry);
    frames.push(entry);
    list.append(entry[1]);
    hint.hidden = true;
    if (frames.length > most) frames.shift()?.[1].remove();
    if (isAtEnd) scrollToEnd();
    onCount(++count);
  }

  function scrollToEnd(): void {
    list.scrollTop = list.scrollHeight;
  }

  function toRow(frame: Frame): Element {
    const { kind, id, method, text, at, ms, status } = frame;
    const isSent = kind === "request" || kind === "closed" || kind === "answer";
    const isTitle = kind === "request" || kind === "notification";
    const http = status !== undefined && status !== 200 ? `HTTP ${status}` : "";
    const body = text.length > longest ? `${text.slice(0, longest)} …` : text;
    const row = h(
      "details",
      {},
      h(
        "summary",
        {},
        h("span.way", { role: "img", "aria-label": isSent ? "sent" : "received" }, isSent ? "→" : "←"),
        h("span.id", {}, `#${id}`),
        h("span.method", {}, serverText(isTitle ? method.replace(/^notifications\//, "") : kind)),
        h("span.note", {}, serverText(toNote(frame))),
        http && h("span.http", {}, http),
        h("span.when", {}, kind === "request" ? toClock(at) : `+${json.time(ms)}`),
      ),
    );
    // Built on demand, because most messages are never opened.
    row.addEventListener("toggle", () => {
      if (!row.open || row.childElementCount > 1) return;
      const facts = h("span.muted.grow", {}, `${toClock(at)} · ${json.size(text.length)} characters`);
      const parsed = json.parse(body);
      const shown = "value" in parsed ? show.plainJson(parsed.value) : show.long(body);
      row.append(h("div.head", {}, facts, copyButton("Copy", () => text)), toHeaders(frame) ?? "", shown);
      row.scrollIntoView({ block: "nearest" });
    });
    return h(`li.${kind.replace(" ", "-")}`, {}, row);
  }

  function toHeaders({ headers }: Frame): Element | undefined {
    if (!headers) return;
    const lines = [
      ...Object.entries(headers).map(([name, value]) => `${name}: ${mask(value)}`),
      ...headerNames.map((name) => `${name}: ••••••`),
    ];
    return h("pre.headers", { tabindex: 0, "aria-label": "Headers" }, serverText(lines.join("\n")));
  }

  /** A short description of a message. */
  function toNote({ kind, method, subject = "", text }: Frame): string {
    if (kind === "request") return subject;
    if (kind !== "notification") return method;
    const parsed = json.parse(text);
    const message = "value" in parsed && json.isObject(parsed.value) ? parsed.value.params : undefined;
    const { progress, total, message: words = "", level, data, uri = "" } = json.isObject(message) ? message : {};
    if (progress !== undefined) return `${progress}${total === undefined ? "" : `/${total}`} ${words}`;
    return level === undefined ? String(uri) : `${level} ${typeof data === "string" ? data : JSON.stringify(data)}`;
  }

  function toClock(at: number): string {
    const date = new Date(at);
    const two = (value: number) => String(value).padStart(2, "0");
    const rest = String(date.getMilliseconds()).padStart(3, "0");
    return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${rest}`;
  }

  const element = h(
    "section.log",
    { "aria-label": "Log" },
    h("div.filters", {}, filter, clear),
    list,
    hint,
  );
  return { element, add, scrollToEnd };
}
