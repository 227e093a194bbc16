/**
 * The log of all messages between the page and the server.
 */
import { addToCall } from "./call_light.ts";
import { listMaskedHeaders, mask } from "./credentials.ts";
import { h, makeButton, makeCopyButton, serverText } from "./dom.ts";
import { showPlainJson, showText } from "./content_view.ts";
import type { Frame, FrameKind } from "./exchange.ts";
import { formatMs, formatSize, parseJson, parseObject, toCompact, toObject } from "./json.ts";

const MAX_FRAMES = 1000;
/** Maximum number of characters that the log keeps from a message. */
const MAX_CHARACTERS = 100_000;

interface Entry {
  /** The text that the filter searches. */
  readonly words: string;
  readonly row: HTMLElement;
}

let entries: Entry[] = [];
let count = 0;
const label = "Filter messages";
const filter = h("input.filter", { type: "search", "aria-label": label, placeholder: label, input: applyFilters });
const list = h("ol.frames", { role: "log", "aria-live": "off", "aria-label": "Messages", tabindex: 0 });
const hint = h("p.muted.pad", "No messages yet.");

export const logElement: HTMLElement = h(
  "section.log",
  { "aria-label": "Log" },
  h("div.filters", filter, makeButton("button.quiet.small", "Clear", clear)),
  list,
  hint,
);

export const frameCount: HTMLElement = h("span.count", "0");

export function logFrame(given: Frame): void {
  const frame = { ...given, text: mask(given.text), subject: given.subject && mask(given.subject) };
  const { kind, id, method, subject = "", text } = frame;
  const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 30;
  const words = `#${id} ${toLabel(kind)} ${method} ${subject} ${text.slice(0, MAX_CHARACTERS)}`.toLowerCase();
  const entry = { words, row: toRow(frame) };
  applyFilter(entry);
  entries.push(entry);
  list.append(entry.row);
  hint.hidden = true;
  if (entries.length > MAX_FRAMES) entries.shift()?.row.remove();
  if (isAtEnd) scrollLogToEnd();
  frameCount.textContent = String(++count);
}

export function scrollLogToEnd(): void {
  list.scrollTop = list.scrollHeight;
}

function clear(): void {
  entries = [];
  list.replaceChildren();
  hint.hidden = false;
}

function applyFilters(): void {
  entries.forEach(applyFilter);
}

function applyFilter({ words, row }: Entry): void {
  row.hidden = !words.includes(filter.value.trim().toLowerCase());
}

function toRow(frame: Frame): HTMLElement {
  const { kind, id, call, method, text, ms, status } = frame;
  const clock = toClock(new Date());
  const isSent = ["request", "closed", "answer"].includes(kind);
  const isTitle = kind === "request" || kind === "notification";
  const way = { role: "img", "aria-label": isSent ? "sent" : "received" };
  const body = text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)} …` : text;
  const row = h(
    "details",
    h(
      "summary",
      h("span.way", way, isSent ? "→" : "←"),
      h("span.id", `#${id}`),
      h("span.method", serverText(isTitle ? method.replace(/^notifications\//, "") : toLabel(kind))),
      h("span.note", serverText(toNote(frame))),
      status !== undefined && status !== 200 && h("span.http", `HTTP ${status}`),
      h("span.when", kind === "request" ? clock : `+${formatMs(ms)}`),
    ),
  );
  // Create the content when the user opens a row, because most rows are never opened.
  row.addEventListener("toggle", () => {
    if (!row.open || row.childElementCount > 1) return;
    const facts = h("span.muted.grow", `${clock} · ${formatSize(text.length)} characters`);
    const parsed = parseJson(body);
    const shown = "value" in parsed ? showPlainJson(parsed.value) : showText(body);
    row.append(h("div.head", facts, makeCopyButton(() => text)), toHeaders(frame), shown);
    row.scrollIntoView({ block: "nearest" });
  });
  const item = h(`li.${kind}`, row);
  addToCall(item, call ?? `#${id}`);
  return item;
}

function toLabel(kind: FrameKind): string {
  return kind.replace("-", " ");
}

function toHeaders({ headers }: Frame): HTMLElement | string {
  if (!headers) return "";
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${mask(value)}`);
  const text = [...lines, ...listMaskedHeaders()].join("\n");
  return h("pre.headers", { tabindex: 0, "aria-label": "Headers" }, serverText(text));
}

function toNote({ kind, method, subject = "", text }: Frame): string {
  if (kind === "request") return subject;
  if (kind === "fault") return text.split("\n")[0];
  if (kind !== "notification") return method;
  const { progress, total, message = "", level, data, uri = "" } = toObject(parseObject(text).params);
  if (progress !== undefined) return `${progress}${total === undefined ? "" : `/${total}`} ${message}`;
  return level === undefined ? String(uri) : `${level} ${typeof data === "string" ? data : toCompact(data)}`;
}

function toClock(date: Date): string {
  const [time] = date.toTimeString().split(" ");
  return `${time}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}
