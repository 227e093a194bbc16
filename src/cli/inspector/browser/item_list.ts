/**
 * A list with a panel that shows the chosen item. On a narrow screen, the panel replaces the list.
 */
import { escapeInvisible, h, makeButton, serverText, setAttributes } from "./dom.ts";

export interface Item {
  /** Identifies the item in the list. */
  readonly key: string;
  readonly name: string;
  /** A line of text below the name. */
  readonly note?: string;
  /** The heading above this item and the following items. */
  readonly group?: string;
  /** The definition of the item as text. If the text changes, the panel is created again. */
  readonly source: string;
  build(): HTMLElement;
}

export interface ItemListOptions {
  /** The plural noun for the items, such as `tools`. */
  readonly what: string;
  /** An element above the list. */
  readonly top?: HTMLElement;
  readonly onChoose: (key: string) => void;
}

export interface ItemListContent {
  readonly items: readonly Item[];
  /** Loads more items. `undefined` if the list is complete. */
  readonly more?: () => void;
  /** The reason why some items could not be loaded. */
  readonly problem?: string;
}

/** Maximum number of rows that a list shows. */
const MAX_ROWS = 1000;

export class ItemList {
  readonly element: HTMLElement;
  readonly #options: ItemListOptions;
  readonly #filter: HTMLInputElement;
  readonly #list: HTMLElement;
  readonly #hint = h("p.muted.pad", "Loading …");
  readonly #blank: HTMLElement;
  readonly #detail: HTMLElement;
  readonly #back: HTMLElement;
  /** The panels by item key. Panels are kept, because they contain the user's input. */
  readonly #panels = new Map<string, { readonly source: string; readonly panel: HTMLElement }>();
  #content: ItemListContent = { items: [] };
  #chosen: string | undefined;

  constructor(options: ItemListOptions) {
    const { what, top } = options;
    const label = `Filter ${what}`;
    const attributes = { type: "search", autocomplete: "off", "aria-label": label, placeholder: label };
    this.#options = options;
    this.#filter = h("input.filter", { ...attributes, input: () => this.#draw() });
    this.#list = h("ul.list", { "aria-label": what });
    this.#blank = h("p.muted.blank", `Choose one of the ${what}.`);
    this.#detail = h("div.detail", this.#blank);
    this.#back = makeButton("button.quiet.back", `‹ All ${what}`, () => this.#leave());
    this.element = h(
      "div.browse",
      h("div.side", top, h("div.filters", this.#filter), this.#list, this.#hint),
      h("div.main", this.#back, this.#detail),
    );
    this.element.addEventListener("keydown", (event) => this.#walk(event));
  }

  /** The key of the chosen item. `undefined` if no item is chosen. */
  get chosen(): string | undefined {
    return this.#chosen;
  }

  /** The panel of the chosen item. `undefined` if no item is chosen. */
  get panel(): HTMLElement | undefined {
    return this.#chosen === undefined ? undefined : this.#panels.get(this.#chosen)?.panel;
  }

  /** Shows items. The chosen item stays chosen. */
  set(content: ItemListContent): void {
    this.#content = content;
    const item = content.items.find(({ key }) => key === this.#chosen);
    if (item && this.#panels.get(item.key)?.source !== item.source) this.showItem(item);
    else this.#draw();
  }

  /** Chooses an item. Returns `false` if the item is not in the list. */
  choose(key: string): boolean {
    const item = this.#content.items.find((each) => each.key === key);
    if (item) this.showItem(item);
    return item !== undefined;
  }

  chooseFirst(): void {
    const [first] = this.#content.items;
    if (first) this.showItem(first);
  }

  /** Shows the panel of an item, even if the item is not in the list. */
  showItem({ key, source, build }: Item): void {
    let known = this.#panels.get(key);
    if (known?.source !== source) this.#panels.set(key, known = { source, panel: build() });
    this.#chosen = key;
    this.element.classList.add("chosen");
    this.#detail.replaceChildren(known.panel);
    this.#detail.scrollTop = 0;
    this.#draw();
  }

  #draw(): void {
    const { items, more, problem } = this.#content;
    const wanted = this.#filter.value.trim().toLowerCase();
    const shown = items.filter(({ name, note = "", key }) => `${name}\n${note}\n${key}`.toLowerCase().includes(wanted));
    let group: string | undefined;
    const rows: HTMLElement[] = [];
    for (const item of shown.slice(0, MAX_ROWS)) {
      if (item.group !== group) rows.push(h("li.group", item.group));
      group = item.group;
      rows.push(h("li", this.#toRow(item)));
    }
    if (shown.length > MAX_ROWS) {
      rows.push(h("li.muted.pad", `… and ${shown.length - MAX_ROWS} more; filter the list to find them`));
    }
    if (more) rows.push(h("li", makeButton("button.quiet", "Load more", more)));
    this.#list.replaceChildren(...rows);
    const { what } = this.#options;
    this.#hint.replaceChildren(
      problem === undefined
        ? items.length ? "Nothing matches." : `This server has no ${what}.`
        : h("span.problem", `Cannot load all ${what}: `, serverText(problem)),
    );
    this.#hint.hidden = shown.length > 0 && problem === undefined;
    this.#blank.hidden = !items.length;
  }

  #toRow({ key, name, note }: Item): HTMLElement {
    const row = makeButton("button.item", "", () => {
      this.choose(key);
      this.#options.onChoose(key);
      if (!this.#list.checkVisibility()) this.#back.focus();
    });
    row.append(h("span.name", serverText(name)));
    if (note) row.append(h("span.note", serverText(note.split("\n", 1)[0])));
    row.title = escapeInvisible(name);
    if (key === this.#chosen) setAttributes(row, { "aria-current": "true" });
    return row;
  }

  /** Returns from the panel to the list on a narrow screen. */
  #leave(): void {
    this.element.classList.remove("chosen");
    (this.#list.querySelector<HTMLElement>("[aria-current]") ?? this.#filter).focus();
  }

  #walk(event: KeyboardEvent): void {
    const { target, key } = event;
    const step = key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : 0;
    if (!step || !(target === this.#filter || (target instanceof Node && this.#list.contains(target)))) return;
    event.preventDefault();
    const rows = [...this.#list.querySelectorAll("button")];
    const at = rows.findIndex((row) => row === target) + step;
    rows[Math.max(0, Math.min(rows.length - 1, at))]?.focus();
  }
}
