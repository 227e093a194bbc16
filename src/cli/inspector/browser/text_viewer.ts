/**
 * Shows text with tools for copying, searching and collapsing the text, and for switching between raw and rendered
 * text.
 */
import { escapeInvisible, h, makeButton, makeCopyButton, setAttributes } from "./dom.ts";
import { formatSize } from "./json.ts";

export interface Rendering {
  make(): HTMLElement;
  /** Whether the viewer shows the rendered view first. */
  readonly isFirst: boolean;
}

export interface ViewOptions {
  /** The accessible name of the viewer, such as `Text`. */
  readonly label: string;
  /** Creates the raw view. Defaults to plain text. */
  readonly raw?: (text: string) => HTMLElement;
  readonly rendering?: Rendering;
  /** Text next to the tools. Defaults to the length of the text if the text is long. */
  readonly facts?: string;
}

/** Maximum number of characters to show initially, because more characters would make the page slow. */
export const MAX_SHOWN = 50_000;
const MAX_MATCHES = 1000;
/** Number of characters to show around each match if the viewer does not show the whole text. */
const AROUND = 2000;
/** The size above which the viewer offers a search field. */
const LONG = { characters: 600, lines: 12 };

/** Shows text without tools. If the text is too long, a button shows the rest. */
export function makePlainText(text: string): HTMLElement {
  const element = h("pre", { tabindex: 0 }, escapeInvisible(text.slice(0, MAX_SHOWN)));
  if (text.length > MAX_SHOWN) {
    const showAll = () => element.replaceChildren(escapeInvisible(text));
    element.append("\n… ", makeButton("button.small", `Show all ${text.length} characters`, showAll));
  }
  return element;
}

export function makeTextViewer(text: string, options: ViewOptions): HTMLElement {
  const { label, raw = makePlainText, rendering, facts } = options;
  const name = label.toLowerCase();
  const body = h("div.body");
  const isLong = text.length > LONG.characters || text.slice(0, 5000).split("\n").length > LONG.lines;
  let isRendered = rendering?.isFirst === true;
  let marks: readonly HTMLElement[] = [];
  let current = -1;

  const modes = [makeButton("button", "Rendered", () => turn(true)), makeButton("button", "Raw", () => turn(false))];
  const found = h("span.muted", { role: "status" });
  const search = h("input.find", { type: "search", "aria-label": `Find in ${name}`, placeholder: "Find", input: find });
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    go(event.shiftKey ? -1 : 1);
  });
  const before = makeButton("button.quiet.small", "↑", () => go(-1));
  const after = makeButton("button.quiet.small", "↓", () => go(1));
  before.ariaLabel = "Previous match";
  after.ariaLabel = "Next match";
  before.hidden = after.hidden = true;
  const folder = makeButton("button.quiet.small", "Collapse", collapse);
  folder.ariaExpanded = "true";
  const tools = h(
    "div.tools",
    { role: "group", "aria-label": `Tools for ${name}` },
    h("span.muted.grow", facts ?? (isLong ? `${formatSize(text.length)} characters` : "")),
    rendering && h("div.modes", { role: "group", "aria-label": "Show as" }, ...modes),
    isLong && h("span.finder", search, before, after, found),
    makeCopyButton(() => text),
    isLong && folder,
  );
  draw();

  function draw(): void {
    modes.forEach((mode, at) => mode.ariaPressed = String(isRendered === (at === 0)));
    body.replaceChildren(isRendered && rendering ? rendering.make() : raw(text));
  }

  function turn(toRendered: boolean): void {
    isRendered = toRendered;
    search.value = "";
    find();
  }

  function collapse(): void {
    body.hidden = !body.hidden;
    folder.ariaExpanded = String(!body.hidden);
    folder.textContent = body.hidden ? "Expand" : "Collapse";
  }

  function find(): void {
    const wanted = search.value;
    marks = [];
    current = -1;
    before.hidden = after.hidden = !wanted;
    found.textContent = "";
    if (!wanted) return draw();
    // Switch to the raw text, because the search runs on the raw text.
    isRendered = false;
    draw();
    if (body.hidden) collapse();
    const starts = findAll(text, wanted);
    if (!starts.length) found.textContent = "Not found";
    else {
      marks = starts.map((start) => h("mark", escapeInvisible(text.slice(start, start + wanted.length))));
      const ends = [0, ...starts.map((start) => start + wanted.length)];
      const parts = marks.flatMap((mark, at) => [toGap(ends[at], starts[at]), mark]);
      body.replaceChildren(h("pre", { tabindex: 0 }, ...parts, toGap(ends[starts.length], text.length)));
    }
    go(1);
  }

  /** Returns the text between two matches. Shortens the text if the viewer does not show the whole text. */
  function toGap(from: number, to: number): string {
    const isWhole = text.length <= MAX_SHOWN || to - from <= 2 * AROUND;
    return isWhole
      ? escapeInvisible(text.slice(from, to))
      : `${escapeInvisible(text.slice(from, from + AROUND))}\n…\n${escapeInvisible(text.slice(to - AROUND, to))}`;
  }

  function go(step: number): void {
    if (!marks.length) return;
    marks[current]?.removeAttribute("aria-current");
    current = (current + step + marks.length) % marks.length;
    setAttributes(marks[current], { "aria-current": "true" });
    marks[current].scrollIntoView({ block: "nearest" });
    found.textContent = `${current + 1} of ${marks.length}${marks.length === MAX_MATCHES ? "+" : ""}`;
  }

  const spec = isLong || rendering || facts ? "div.viewer" : "div.viewer.short";
  return h(spec, { role: "group", "aria-label": label }, tools, body);
}

/** Returns the positions of a word in a text, ignoring case. */
function findAll(text: string, wanted: string): readonly number[] {
  const [lower, lowerWanted] = [text.toLowerCase(), wanted.toLowerCase()];
  // Search case-sensitively if lowercasing changes the length of the text, because the positions of the matches would
  // be wrong.
  const isAlike = lower.length === text.length && lowerWanted.length === wanted.length;
  const [where, what] = isAlike ? [lower, lowerWanted] : [text, wanted];
  const starts: number[] = [];
  let at = where.indexOf(what);
  while (at >= 0 && starts.length < MAX_MATCHES) {
    starts.push(at);
    at = where.indexOf(what, at + what.length);
  }
  return starts;
}
