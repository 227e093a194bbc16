/**
 * A list with the chosen item beside it, or instead of it on a narrow screen.
 *
 * @module
 */
import type { Dom, Element } from "./dom.ts";

/** An item of a list. */
export interface Item {
  /** Unique in the list. */
  readonly key: string;
  readonly name: string;
  /** A line below the name. */
  readonly note?: string;
  /** The heading of this and the following items. */
  readonly group?: string;
  /** Dependencies. */
  readonly source: string;
  /** Makes the panel. */
  build(): Element;
}

/** A list with the panel of the chosen item. */
export interface ItemList {
  readonly element: Element;
  /**
   * Shows items and keeps the chosen one. `more` loads further items, if there are any. `problem` is the reason why some
   * could not be loaded.
   */
  set(items: readonly Item[], more?: () => void, problem?: string): void;
  /** Chooses an item, if it is in the list. */
  choose(key: string): void;
  /** Chooses the first item, if there is one. */
  chooseFirst(): void;
  /** Shows an item that may not be in the list. */
  showItem(item: Item): void;
  /** The key of the chosen item. */
  readonly chosen: string | undefined;
}

/** Options of a list. */
export interface ItemListOptions {
  /** The plural noun for the items, such as `tools`. */
  readonly what: string;
  /** An element above the list. */
  readonly top?: Element;
  /** Called when the user chooses an item. */
  readonly onChoose: (key: string) => void;
}

/** Makes lists. */
export type MakeItemList = (options: ItemListOptions) => ItemList;

/** Creates the factory. */
export function createItemList({ h, serverText, escapeInvisible }: Dom): MakeItemList {
  const most = 1000; // rows of a list

  return ({ what, top, onChoose }) => {
    let items: readonly Item[] = [];
    let more: (() => void) | undefined;
    let chosen: string | undefined;
    let failed: string | undefined;
    const built = new Map<string, readonly [source: string, element: Element]>();
    const label = `Filter ${what}`;
    const filter = h("input.filter", { type: "search", "aria-label": label, placeholder: label, input: draw });
    filter.setAttribute("autocomplete", "off");
    const list = h("ul.list", { "aria-label": what });
    const hint = h("p.muted.pad", {}, "Loading …");
    const blank = h("p.muted.blank", {}, `Choose one of the ${what}.`);
    const detail = h("div.detail", {}, blank);
    const back = h("button.quiet.back", { type: "button", click: leave }, `‹ All ${what}`);
    const element = h(
      "div.browse",
      {},
      h("div.side", {}, top, h("div.filters", {}, filter), list, hint),
      h("div.main", {}, back, detail),
    );
    element.addEventListener("keydown", (event) => {
      const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
      if (!step || !(event.target === filter || list.contains(event.target))) return;
      event.preventDefault();
      const rows = [...list.querySelectorAll("button")];
      rows[Math.max(0, Math.min(rows.length - 1, rows.indexOf(event.target) + step))]?.focus();
    });

    function draw(): void {
      const wanted = filter.value.trim().toLowerCase();
      const shown = items.filter(({ name, note = "", key }) =>
        `${name}\n${note}\n${key}`.toLowerCase().includes(wanted)
      );
      let group: string | undefined;
      const rows: Element[] = [];
      for (const item of shown.slice(0, most)) {
        if (item.group !== group) rows.push(h("li.group", {}, item.group));
        group = item.group;
        rows.push(h("li", {}, toRow(item)));
      }
      if (more) rows.push(h("li", {}, h("button.quiet", { type: "button", click: more }, "Load more")));
      list.replaceChildren(...rows);
      if (shown.length > most) rows.push(h("li.muted.pad", {}, `… and ${shown.length - most} more; use the filter`));
      hint.replaceChildren(
        failed === undefined
          ? items.length ? "Nothing matches." : `This server has no ${what}.`
          : h("span.problem", {}, `Cannot load all ${what}: `, serverText(failed)),
      );
      hint.hidden = shown.length > 0 && failed === undefined;
      blank.hidden = !items.length;
    }

    function toRow({ key, name, note }: Item): Element {
      const choice = () => {
        choose(key);
        onChoose(key);
        if (!list.checkVisibility()) back.focus();
      };
      const row = h("button.item", { type: "button", click: choice }, h("span.name", {}, serverText(name)));
      if (note) row.append(h("span.note", {}, serverText(note.split("\n", 1)[0])));
      row.setAttribute("title", escapeInvisible(name));
      if (key === chosen) row.setAttribute("aria-current", "true");
      return row;
    }

    function choose(key: string): void {
      const item = items.find((each) => each.key === key);
      if (item) showItem(item);
    }

    // Panels are kept with the input of the user.
    function showItem(item: Item): void {
      const { key, source } = item;
      let [known, view] = built.get(key) ?? [];
      if (!view || known !== source) {
        view = item.build();
        built.set(key, [source, view]);
      }
      chosen = key;
      element.classList.toggle("chosen", true);
      detail.replaceChildren(view);
      detail.scrollTop = 0;
      draw();
    }

    function leave(): void {
      element.classList.toggle("chosen", false);
      const row = list.querySelector("[aria-current]") ?? filter;
      row.focus();
    }

    function set(next: readonly Item[], loadMore?: () => void, problem?: string): void {
      items = next;
      failed = problem;
      more = loadMore;
      const item = items.find(({ key }) => key === chosen);
      if (item && built.get(item.key)?.[0] !== item.source) showItem(item);
      else draw();
    }

    return {
      element,
      set,
      choose,
      chooseFirst: () => items.length > 0 && choose(items[0].key),
      showItem,
      get chosen() {
        return chosen;
      },
    };
  };
}
