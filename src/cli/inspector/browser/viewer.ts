/**
 * Shows a text with tools: copy, find, collapse, and a switch between the text as it is and as it looks.
 *
 * @module
 */
import type { Dom, Element } from "./dom.ts";
import type { JsonTools } from "./json.ts";

/** How a text can be shown beside as it is. */
export interface Look {
  /** On the button, such as `Rendered`. */
  readonly name: string;
  make(): Element;
  /** Whether it is shown first. */
  readonly isFirst: boolean;
}

/** What the tools are for. */
export interface ViewOptions {
  /** Names the text for people who cannot see it, such as `Text`. */
  readonly label: string;
  /** The text as it is, if it is not to be shown as plain text. */
  readonly raw?: (text: string) => Element;
  readonly look?: Look;
  /** Stands beside the tools; the length of a long text if not given. */
  readonly facts?: string;
}

/** Shows a text. */
export type MakeViewer = (text: string, options: ViewOptions) => Element;

/** What texts are shown with. */
export interface ViewerParts {
  readonly dom: Dom;
  readonly json: JsonTools;
}

/** Makes the maker of viewers. */
export function createViewer({ dom, json: { size } }: ViewerParts): MakeViewer {
  const { h, visible, copier } = dom;
  const most = 50_000; // characters that are shown at once: a browser is slow with more
  const mostFound = 1000; // places that are marked
  const around = 2000; // characters on each side of the places found, in a text that is not shown as a whole
  const longEnough = { characters: 600, lines: 12 }; // to search in it

  return (text, { label, raw = toPlain, look, facts }) => {
    const body = h("div.body");
    const isLong = text.length > longEnough.characters || countLines(text) > longEnough.lines;
    let isLooked = look?.isFirst === true;
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
      { type: "button", "aria-label": "Previous place", click: () => go(-1) },
      "↑",
    );
    const after = h("button.quiet.small", { type: "button", "aria-label": "Next place", click: () => go(1) }, "↓");
    before.hidden = after.hidden = true;
    const folder = h("button.quiet.small", { type: "button", "aria-expanded": "true", click: collapse }, "Collapse");
    const tools = h(
      "div.tools",
      { role: "group", "aria-label": `Tools for ${label.toLowerCase()}` },
      h("span.muted.grow", {}, facts ?? (isLong ? `${size(text.length)} characters` : "")),
      look && h("div.modes", { role: "group", "aria-label": "Show as" }, ...modes),
      isLong && h("span.finder", {}, search, before, after, found),
      copier("Copy", () => text),
      isLong && folder,
    );
    draw();

    function draw(): void {
      modes.forEach((mode, at) => mode.setAttribute("aria-pressed", String(isLooked === (at === 0))));
      body.replaceChildren(isLooked && look ? look.make() : raw(text));
    }

    function turn(toLook: boolean): void {
      isLooked = toLook;
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
      // The places are those of the text as it is.
      isLooked = false;
      draw();
      if (body.hidden) collapse();
      const starts = findAll(wanted);
      const shown = h("pre", { tabindex: 0 });
      marks = starts.map((start) => h("mark", {}, visible(text.slice(start, start + wanted.length))));
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

    /** The text between two places; of a long one what stands beside them. */
    function addGap(shown: Element, from: number, to: number): void {
      const isWhole = text.length <= most || to - from <= 2 * around;
      shown.append(
        isWhole
          ? visible(text.slice(from, to))
          : `${visible(text.slice(from, from + around))}\n…\n${visible(text.slice(to - around, to))}`,
      );
    }

    function findAll(wanted: string): readonly number[] {
      const [lower, lowerWanted] = [text.toLowerCase(), wanted.toLowerCase()];
      // A few letters get longer in lower case: then places would be those of another text.
      const isAlike = lower.length === text.length && lowerWanted.length === wanted.length;
      const [where, what] = isAlike ? [lower, lowerWanted] : [text, wanted];
      const starts: number[] = [];
      let at = where.indexOf(what);
      while (at >= 0 && starts.length < mostFound) {
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
      found.textContent = `${current + 1} of ${marks.length}${marks.length === mostFound ? "+" : ""}`;
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
    const element = h("pre", { tabindex: 0 }, visible(text.slice(0, most)));
    if (text.length <= most) return element;
    const more = h("button.small", { type: "button", click: () => element.replaceChildren(visible(text)) });
    more.append(`Show all ${text.length} characters`);
    element.append("\n… ", more);
    return element;
  }
}
