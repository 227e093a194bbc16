/**
 * Renders Markdown as elements. Its HTML is never interpreted, and no URL is loaded.
 *
 * @module
 */
import type { Dom, Element } from "./dom.ts";

/** Renders Markdown. */
export interface Markdown {
  render(text: string): Element;
  /** Whether text contains Markdown syntax. */
  isLikely(text: string): boolean;
}

/** Creates the renderer. All steps read forward, so that time is proportional to the length of the text. */
export function createMarkdown({ h, escapeInvisible }: Dom): Markdown {
  const longest = 50_000; // characters to render
  const maxDepth = 8; // levels of quotations and lists
  const maxCells = 2000; // of one table
  const pairs = [["**", "strong"], ["__", "strong"], ["~~", "del"], ["*", "em"], ["_", "em"]] as const;

  function render(text: string): Element {
    const cut = text.length > longest;
    const element = h("div.prose", {}, ...toBlocks(text.slice(0, longest).split(/\r?\n/), 0));
    if (cut) {
      element.append(h("p.muted", {}, `Only the first ${longest} characters are rendered; switch to Raw for all.`));
    }
    return element;
  }

  function isLikely(text: string): boolean {
    const start = text.slice(0, 5000);
    return /^ {0,3}(#{1,6} |[-*+] |> |```|\d{1,3}\. |\|)/m.test(start) || /\*\*\S|\]\(|`[^`\n]/.test(start);
  }

  function toBlocks(lines: readonly string[], depth: number): Element[] {
    const blocks: Element[] = [];
    let at = 0;

    /** Takes the lines of a block. */
    function take(belongs: (line: string) => boolean): string[] {
      const start = at;
      while (at < lines.length && belongs(lines[at])) at++;
      return lines.slice(start, at);
    }

    while (at < lines.length) {
      const line = lines[at];
      const fence = /^ {0,3}(```+|~~~+)/.exec(line)?.[1];
      const heading = /^ {0,3}(#{1,6}) +(.*)$/.exec(line);
      if (!line.trim()) at++;
      else if (fence) {
        at++;
        const code = take((each) => !each.trimStart().startsWith(fence));
        at++;
        blocks.push(h("pre.code", { tabindex: 0 }, escapeInvisible(code.join("\n"))));
      } else if (heading) {
        at++;
        // Headings of the page have higher levels.
        const level = String(Math.min(6, heading[1].length + 2));
        blocks.push(h(`h${level}.heading`, {}, ...toInline(heading[2].replace(/ #+$/, ""), 0)));
      } else if (isRule(line)) {
        at++;
        blocks.push(h("hr"));
      } else if (depth < maxDepth && line.trimStart().startsWith(">")) {
        const inner = take((each) => each.trimStart().startsWith(">"));
        blocks.push(
          h("blockquote", {}, ...toBlocks(inner.map((each) => each.trimStart().slice(1).replace(/^ /, "")), depth + 1)),
        );
      } else if (depth < maxDepth && toMarker(line)) blocks.push(toList(depth));
      else if (line.includes("|") && isDivider(lines[at + 1] ?? "")) {
        blocks.push(toTable(take((each) => each.includes("|"))));
      } else {
        const first = at++;
        take((each) => each.trim() !== "" && !isStart(each));
        blocks.push(h("p", {}, ...toInline(lines.slice(first, at).join("\n"), 0)));
      }
    }
    return blocks;

    function toList(depth: number): Element {
      const { isOrdered = false, start } = toMarker(lines[at]) ?? {};
      const list = h(isOrdered ? "ol.items" : "ul.items", { start });
      while (at < lines.length) {
        const marker = toMarker(lines[at]);
        if (!marker || marker.isOrdered !== isOrdered || isRule(lines[at])) break;
        const first = lines[at++].slice(marker.width);
        // Indented lines belong to the item, and so do empty lines before them.
        const rest = take((each) => /^\s/.test(each) || each.trim() === "");
        const inner = rest.map((each) =>
          each.slice(0, marker.width).trim() ? each.trimStart() : each.slice(marker.width)
        );
        list.append(h("li", {}, ...toItem([first, ...inner], depth + 1)));
      }
      return list;
    }
  }

  function toItem([first, ...rest]: readonly string[], depth: number): Element[] {
    const box = /^\[[ xX]\] /.test(first) ? (first[1] === " " ? "☐ " : "☑ ") + first.slice(4) : first;
    return toBlocks([box, ...rest], depth);
  }

  interface Marker {
    readonly width: number;
    readonly isOrdered: boolean;
    /** The number of the first item of an ordered list. */
    readonly start?: string;
  }

  function toMarker(line: string): Marker | undefined {
    const [marker, number] = /^ {0,3}(?:[-*+]|(\d{1,9})[.)]) +(?=\S)/.exec(line) ?? [];
    return marker === undefined ? undefined : { width: marker.length, isOrdered: number !== undefined, start: number };
  }

  function isRule(line: string): boolean {
    const marks = line.replaceAll(" ", "");
    return marks.length >= 3 && ["-", "*", "_"].some((mark) => marks === mark.repeat(marks.length));
  }

  function isDivider(line: string): boolean {
    return line.includes("-") && line.includes("|") && !/[^-:| ]/.test(line);
  }

  function isStart(line: string): boolean {
    return /^ {0,3}(#{1,6} |>|```|~~~)/.test(line) || toMarker(line) !== undefined || isRule(line);
  }

  function toTable(rows: readonly string[]): Element {
    const toCells = (row: string) =>
      row.trim().replace(/^\|/, "").replace(/\|$/, "").split("|").map((cell) => cell.trim());
    const [head, , ...body] = rows;
    const heads = toCells(head).slice(0, 50);
    const most = Math.floor(maxCells / heads.length);
    const toRow = (tag: "th" | "td") => (cells: readonly string[]) =>
      h("tr", {}, ...heads.map((_, at) => h(tag, {}, ...toInline(cells[at] ?? "", 0))));
    return h(
      "div.scroll",
      { tabindex: 0, role: "region", "aria-label": "Table" },
      h(
        "table",
        {},
        h("thead", {}, toRow("th")(heads)),
        h("tbody", {}, ...body.slice(0, most).map(toCells).map(toRow("td"))),
      ),
    );
  }

  /** Code, links and emphasis of one paragraph. */
  function toInline(text: string, depth: number): (Element | string)[] {
    const parts: (Element | string)[] = [];
    const searches = new Map<string, { readonly from: number; readonly found: number }>();
    let plain = "";
    let at = 0;

    function push(element: Element, end: number): void {
      if (plain) parts.push(escapeInvisible(plain));
      plain = "";
      parts.push(element);
      at = end;
    }

    /** The next position of a mark, or -1. Remembers the last search for each mark, so that time stays proportional. */
    function find(mark: string, from: number): number {
      const last = searches.get(mark);
      if (last && from >= last.from && (last.found < 0 || last.found >= from)) return last.found;
      const found = text.indexOf(mark, from);
      searches.set(mark, { from, found });
      return found;
    }

    while (at < text.length) {
      const mark = text[at];
      if (mark === "\\" && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? "")) {
        plain += text[at + 1];
        at += 2;
        continue;
      }
      if (mark === "`") {
        const [ticks] = /^`+/.exec(text.slice(at, at + 20)) ?? ["`"];
        const end = find(ticks, at + ticks.length);
        if (end > 0) {
          push(h("code", {}, escapeInvisible(text.slice(at + ticks.length, end))), end + ticks.length);
          continue;
        }
      }
      const isImage = mark === "!" && text[at + 1] === "[";
      if ((mark === "[" || isImage) && depth < maxDepth) {
        const start = at + (isImage ? 2 : 1);
        const middle = find("](", start);
        const end = middle < 0 ? -1 : find(")", middle);
        if (end > 0 && end - start < 4000) {
          const label = text.slice(start, middle);
          const [address] = text.slice(middle + 2, end).trim().split(/\s/, 1);
          push(isImage ? toImage(label, address) : toLink(label, address, depth), end + 1);
          continue;
        }
      }
      if (mark === "<") {
        const end = find(">", at);
        const address = text.slice(at + 1, end);
        if (end > 0 && end - at < 2000 && toAddress(address)) {
          push(toLink(address, address, maxDepth), end + 1);
          continue;
        }
      }
      const pair = depth < maxDepth ? pairs.find(([sign]) => text.startsWith(sign, at)) : undefined;
      if (pair) {
        const [sign, tag] = pair;
        const start = at + sign.length;
        const isOpen = /\S/.test(text[start] ?? "") && !(sign[0] === "_" && /\w/.test(text[at - 1] ?? ""));
        const end = isOpen ? find(sign, start) : -1;
        if (end > start && /\S/.test(text[end - 1])) {
          push(h(tag, {}, ...toInline(text.slice(start, end), depth + 1)), end + sign.length);
          continue;
        }
      }
      plain += mark;
      at++;
    }
    if (plain) parts.push(escapeInvisible(plain));
    return parts;
  }

  /** The URL of a safe link. Returns `undefined` for other URLs. */
  function toAddress(address: string): URL | undefined {
    if (!/^(https?:\/\/|mailto:)/i.test(address) || !URL.canParse(address)) return;
    return new URL(address);
  }

  // A link shows its host, because its text can name another one.
  function toLink(label: string, address: string, depth: number): Element {
    const url = toAddress(address);
    const inner = toInline(label, Math.max(depth, maxDepth - 1));
    if (!url) return h("span", {}, ...inner, " ", h("code", {}, escapeInvisible(address.slice(0, 500))));
    const place = url.protocol === "mailto:" ? url.pathname : url.host;
    const link = h("a", {
      href: url.href,
      target: "_blank",
      rel: "noopener noreferrer",
      title: escapeInvisible(url.href),
    });
    link.append(...inner);
    return label.includes(place) ? link : h("span", {}, link, h("span.muted", {}, ` (${escapeInvisible(place)})`));
  }

  // Images are not loaded, because their server would learn who reads the text and when.
  function toImage(label: string, address: string): Element {
    const name = escapeInvisible(label) || "no description";
    return h("span.image", {}, `Image, not loaded: ${name} `, h("code", {}, escapeInvisible(address.slice(0, 500))));
  }

  return { render, isLikely };
}
