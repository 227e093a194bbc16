/**
 * The lists of tools, resources and prompts.
 */
import { isObject } from "../../../core/kit/json.ts";
import { h } from "./dom.ts";
import { type Item, ItemList } from "./item_list.ts";
import { makePromptPanel, makeResourcePanel, makeTemplatePanel, makeToolPanel } from "./item_panels.ts";
import { type Json, toCompact, toObjects, toText } from "./json.ts";
import { send } from "./rpc_client.ts";
import { server } from "./server_facts.ts";

interface Source {
  readonly method: string;
  /** The key in the result that contains the items. */
  readonly key: string;
  toItem(item: Json): Item;
}

export interface ListEvents {
  readonly onChoose: (title: string, key: string) => void;
  /** Called when a list in which no item is chosen has been loaded. */
  readonly onLoad: () => void;
  /** Called when the user enters a resource URI. */
  readonly onOpen: (uri: string) => void;
}

export class List {
  readonly title: string;
  readonly itemList: ItemList;
  readonly count: HTMLElement = h("span.count");
  readonly #name: string;
  readonly #sources: readonly Source[];
  readonly #events: ListEvents;
  #loading = 0;

  /** Creates a list. `title` is the name of the capability with a capital first letter. */
  constructor(title: string, sources: readonly Source[], events: ListEvents, top?: HTMLElement) {
    this.title = title;
    this.#name = title.toLowerCase();
    this.#sources = sources;
    this.#events = events;
    this.itemList = new ItemList({ what: this.#name, top, onChoose: (key) => events.onChoose(title, key) });
  }

  async load(): Promise<void> {
    const mine = ++this.#loading;
    if (!isObject(server.capabilities[this.#name])) return this.itemList.set({ items: [] });
    const pages = this.#sources.map((): Item[] => []);
    let problem: string | undefined;

    /** Loads the next page of each source. A cursor is `null` if the source has no more pages. */
    const loadPages = async (cursors: readonly unknown[]): Promise<void> => {
      const next = await Promise.all(this.#sources.map(async ({ method, key, toItem }, at) => {
        if (cursors[at] === null) return null;
        const outcome = await send(method, cursors[at] === undefined ? {} : { cursor: cursors[at] });
        if (outcome.kind === "error") problem = outcome.message;
        if (outcome.kind !== "result") return null;
        pages[at].push(...toObjects(outcome.result[key]).map(toItem));
        return outcome.result.nextCursor ?? null;
      }));
      // Discard the page, because `load` has been called again.
      if (mine !== this.#loading) return;
      const items = pages.flat();
      const isMore = next.some((cursor) => cursor !== null);
      this.count.textContent = `${items.length}${isMore ? "+" : ""}`;
      this.itemList.set({ items, problem, more: isMore ? () => void loadPages(next) : undefined });
      if (this.itemList.chosen === undefined) this.#events.onLoad();
    };

    await loadPages([]);
  }
}

export interface Lists {
  readonly tools: List;
  readonly resources: List;
  readonly prompts: List;
}

export function makeLists(events: ListEvents): Lists {
  const uri = h("input.code", { "aria-label": "URI to open", placeholder: "Open a URI", spellcheck: "false" });
  const opener = h("form.filters", { novalidate: true }, uri, h("button.small", { type: "submit" }, "Open"));
  opener.addEventListener("submit", (event) => {
    event.preventDefault();
    if (uri.value) events.onOpen(uri.value);
  });
  const toNamedItem = (build: (item: Json) => HTMLElement) => (item: Json): Item => ({
    key: String(item.name),
    name: String(item.name),
    note: toText(item.title) ?? toText(item.description),
    source: toCompact(item),
    build: () => build(item),
  });
  const sources = [
    { method: "resources/list", key: "resources", toItem: toResourceItem },
    { method: "resources/templates/list", key: "resourceTemplates", toItem: toTemplateItem },
  ];
  return {
    tools: new List("Tools", [{ method: "tools/list", key: "tools", toItem: toNamedItem(makeToolPanel) }], events),
    resources: new List("Resources", sources, events, opener),
    prompts: new List(
      "Prompts",
      [{ method: "prompts/list", key: "prompts", toItem: toNamedItem(makePromptPanel) }],
      events,
    ),
  };
}

/** Creates an item for a resource. `item` needs only a `uri`. */
export function toResourceItem(item: Json): Item {
  return toUriItem(item, "uri", "Resources", makeResourcePanel);
}

function toTemplateItem(item: Json): Item {
  return toUriItem(item, "uriTemplate", "Templates", makeTemplatePanel);
}

function toUriItem(item: Json, key: string, group: string, build: (item: Json) => HTMLElement): Item {
  const uri = String(item[key]);
  return {
    key: uri,
    name: toText(item.title) ?? toText(item.name) ?? uri,
    note: uri,
    group,
    source: toCompact(item),
    build: () => build(item),
  };
}
