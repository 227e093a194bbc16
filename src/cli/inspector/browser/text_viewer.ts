/**
 * Shows text with tools: copy, find, collapse, and a switch between raw and rendered text.
 *
 * @module
 */
import type { Dom, Element } from "./dom.ts";
import type { JsonTools } from "./json_tools.ts";

/** A way to render text. */
export interface Rendering {
  /** The label of its button, such as `Rendered`. */
  readonly name: string;
  make(): Element;
  /** Whether it is the initial view. */
  readonly isFirst: boolean;
}

/** Options of a viewer. */
export interface ViewOptions {
  /** The accessible name, such as `Text`. */
  readonly label: string;
  /** Makes the raw view. Defaults to plain text. */
  readonly raw?: (text: string) => Element;
  readonly look?: Rendering;
  /** Text beside the tools. Defaults to the length of long text. */
  readonly facts?: string;
}

/** Shows a text. */
export type MakeTextViewer = (text: string, options: ViewOptions) => Element;

/** Dependencies. */
export interface ViewerParts {
  readonly dom: Dom;
  readonly json: JsonTools;
}

/** Creates the factory. */
export function createTextViewer({ dom, json: { size } }: ViewerParts): MakeTextViewer {
  const { h, escapeInvisible, copyButton } = dom;
  const most = 50_000; // characters to show at once, because more make the page slow
  const maxMatches = 1000; // matches to mark
  const around = 2000; // characters around each match in text that is not shown completely
  const longEnough = { characters: 600, lines: 12 }; // for a search field

  return (text, { label, raw = toPlain, look, facts }) => {
    const body = h("div.body");
    const isLong = text.length > longEnough.characters || countLines(text) > longEnough.lines;
    let isRendered = look?.isFirst === true;
    let marks: readonly Element[] = [];
    let current = -1;

    const modes = look
      ? [
        h("button", { type: "button", click: () => turn(true) }, look.name),
        h("button", { type: "button", click: () => turn(false) }, "Raw"),
      ]
      : [];
    const found = h("span.muted", { role: "status" });
    const search = h("input.find", {
      type: "search",
      "aria-label": `Find in ${label.toLowerCase()}`,
      placeholder: "Find",
      input: find,
    });
    search.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      go(event.shiftKey ? -1 : 1);
    });
    const before = h(
      "button.quiet.small",
      { type: "button", "aria-label": "Previous match", click: () => go(-1) },
      "↑",
    );
    const after = h("button.quiet.small", { type: "button", "aria-label": "Next match", click: () => go(1) }, "↓");
    before.hidden = after.hidden = true;
    const folder = h("button.quiet.small", { type: "button", "aria-expanded": "true", click: collapse }, "Collapse");
    const tools = h(
      "div.tools",
      { role: "group", "aria-label": `Tools for ${label.toLowerCase()}` },
      h("span.muted.grow", {}, facts ?? (isLong ? `${size(text.length)} characters` : "")),
      look && h("div.modes", { role: "group", "aria-label": "Show as" }, ...modes),
      isLong && h("span.finder", {}, search, before, after, found),
      copyButton("Copy", () => text),
      isLong && folder,
    );
    draw();

    function draw(): void {
      modes.forEach((mode, at) => mode.setAttribute("aria-pressed", String(isRendered === (at === 0))));
      body.replaceChildren(isRendered && look ? look.make() : raw(text));
    }

    function turn(toLook: boolean): void {
      isRendered = toLook;
      search.value = "";
      find();
    }

    function collapse(): void {
      body.hidden = !body.hidden;
      folder.setAttribute("aria-expanded", String(!body.hidden));
      folder.textContent = body.hidden ? "Expand" : "Collapse";
    }

    function find(): void {
      const wanted = search.value;
      marks = [];
      current = -1;
      before.hidden = after.hidden = !wanted;
      found.textContent = "";
      if (!wanted) return draw();
      // The search applies to the raw text.
      isRendered = false;
      draw();
      if (body.hidden) collapse();
      const starts = findAll(wanted);
      const shown = h("pre", { tabindex: 0 });
      marks = starts.map((start) => h("mark", {}, escapeInvisible(text.slice(start, start + wanted.length))));
      let at = 0;
      starts.forEach((start, index) => {
        addGap(shown, at, start);
        shown.append(marks[index]);
        at = start + wanted.length;
      });
      addGap(shown, at, text.length);
      if (starts.length) body.replaceChildren(shown);
      else found.textContent = "Not found";
      go(1);
    }

    /** Adds the text between two matches, shortened if it is long. */
    function addGap(shown: Element, from: number, to: number): void {
      const isWhole = text.length <= most || to - from <= 2 * around;
      shown.append(
        isWhole
          ? escapeInvisible(text.slice(from, to))
          : `${escapeInvisible(text.slice(from, from + around))}\n…\n${escapeInvisible(text.slice(to - around, to))}`,
      );
    }

    function findAll(wanted: string): readonly number[] {
      const [lower, lowerWanted] = [text.toLowerCase(), wanted.toLowerCase()];
      // Some letters become longer in lower case, which would shift the matches.
      const isAlike = lower.length === text.length && lowerWanted.length === wanted.length;
      const [where, what] = isAlike ? [lower, lowerWanted] : [text, wanted];
      const starts: number[] = [];
      let at = where.indexOf(what);
      while (at >= 0 && starts.length < maxMatches) {
        starts.push(at);
        at = where.indexOf(what, at + what.length);
      }
      return starts;
    }

    function go(step: number): void {
      if (!marks.length) return;
      marks[current]?.removeAttribute("aria-current");
      current = (current + step + marks.length) % marks.length;
      marks[current].setAttribute("aria-current", "true");
      marks[current].scrollIntoView({ block: "nearest" });
      found.textContent = `${current + 1} of ${marks.length}${marks.length === maxMatches ? "+" : ""}`;
    }

    return h(
      isLong || look || facts ? "div.viewer" : "div.viewer.short",
      { role: "group", "aria-label": label },
      tools,
      body,
    );
  };

  function countLines(text: string): number {
    return text.slice(0, 5000).split("\n").length;
  }

  function toPlain(text: string): Element {
    const element = h("pre", { tabindex: 0 }, escapeInvisible(text.slice(0, most)));
    if (text.length <= most) return element;
    const more = h("button.small", { type: "button", click: () => element.replaceChildren(escapeInvisible(text)) });
    more.append(`Show all ${text.length} characters`);
    element.append("\n… ", more);
    return element;
  }
}
