/**
 * The lists of tools, resources and prompts.
 *
 * @module
 */
import type { Item, ItemList, MakeItemList } from "./item_list.ts";
import type { Dom, Element } from "./dom.ts";
import type { Json, JsonTools } from "./json_tools.ts";
import type { ItemPanels } from "./item_panels.ts";
import type { RpcClient } from "./rpc_client.ts";

/** One list. */
export interface List {
  /** The name of the capability, such as `tools`. */
  readonly name: string;
  readonly title: string;
  readonly itemList: ItemList;
  /** The number of items. */
  readonly count: Element;
  /** Loads the list from the server. */
  load(): Promise<void>;
}

/** Dependencies. */
export interface ItemListsParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly wire: RpcClient;
  readonly panels: ItemPanels;
  readonly makeItemList: MakeItemList;
  /** The server's capabilities. */
  readonly capabilities: () => Json;
  /** Opens a resource. */
  readonly openUri: (uri: string) => void;
  /** Called when the user chooses an item. */
  readonly onChoose: (list: List, key: string) => void;
  /** Called when a list without a chosen item is loaded. */
  readonly onLoad: () => void;
}

/** All lists. */
export interface ItemLists {
  readonly all: readonly List[];
  readonly resources: List;
  /** Makes an item for a resource of which only the URI is known. */
  toItem(uri: string): Item;
}

/** Creates the lists. */
export function createItemLists(parts: ItemListsParts): ItemLists {
  const { dom: { h }, json: { isObject, objects, text, compact }, wire, panels, makeItemList } = parts;
  const { capabilities, openUri, onChoose, onLoad } = parts;

  interface Source {
    readonly method: string;
    /** The key of the items in the result. */
    readonly key: string;
    toItem(item: Json): Item;
  }

  interface Kind {
    readonly name: string;
    readonly title: string;
    readonly sources: readonly Source[];
    readonly top?: Element;
  }

  function makeList({ name, title, sources, top }: Kind): List {
    const itemList = makeItemList({ what: name, top, onChoose: (key) => onChoose(list, key) });
    const count = h("span.count");
    const list: List = { name, title, itemList, count, load };
    let loading = 0;

    async function load(): Promise<void> {
      const mine = ++loading;
      const pages = sources.map((): Item[] => []);
      let problem: string | undefined;
      if (!isObject(capabilities()[name])) return itemList.set([]);
      draw(await Promise.all(sources.map((_, at) => loadPage(at, undefined))));

      /** Loads a page. Returns the cursor of the next one. */
      async function loadPage(at: number, cursor: unknown): Promise<unknown> {
        const { method, key, toItem } = sources[at];
        const outcome = await wire.send(method, cursor === undefined ? {} : { cursor });
        if (outcome.kind === "error") problem = outcome.message;
        if (outcome.kind !== "result") return;
        pages[at].push(...objects(outcome.result[key]).map(toItem));
        return outcome.result.nextCursor;
      }

      function draw(cursors: readonly unknown[]): void {
        // A later load has started.
        if (mine !== loading) return;
        const items = pages.flat();
        const isMore = cursors.some((cursor) => cursor !== undefined);
        count.textContent = `${items.length}${isMore ? "+" : ""}`;
        itemList.set(items, isMore ? () => void loadMore(cursors) : undefined, problem);
        if (itemList.chosen === undefined) onLoad();
      }

      async function loadMore(cursors: readonly unknown[]): Promise<void> {
        draw(await Promise.all(cursors.map((cursor, at) => cursor === undefined ? undefined : loadPage(at, cursor))));
      }
    }

    return list;
  }

  const toNamedItem = (build: (item: Json) => Element) => (item: Json): Item => ({
    key: String(item.name),
    name: String(item.name),
    note: text(item.title) ?? text(item.description),
    source: compact(item),
    build: () => build(item),
  });

  const toUriItem = (key: string, group: string, build: (item: Json) => Element) => (item: Json): Item => ({
    key: String(item[key]),
    name: text(item.title) ?? text(item.name) ?? String(item[key]),
    note: String(item[key]),
    group,
    source: compact(item),
    build: () => build(item),
  });

  const uri = h("input.code", { "aria-label": "URI to open", placeholder: "Open a URI", spellcheck: "false" });
  const opener = h("form.filters", { novalidate: true }, uri, h("button.small", { type: "submit" }, "Open"));
  opener.addEventListener("submit", (event) => {
    event.preventDefault();
    if (uri.value) openUri(uri.value);
  });

  const toResource = toUriItem("uri", "Resources", panels.resource);
  const toTemplate = toUriItem("uriTemplate", "Templates", panels.template);
  const tools = makeList({
    name: "tools",
    title: "Tools",
    sources: [{ method: "tools/list", key: "tools", toItem: toNamedItem(panels.tool) }],
  });
  const resources = makeList({
    name: "resources",
    title: "Resources",
    sources: [
      { method: "resources/list", key: "resources", toItem: toResource },
      { method: "resources/templates/list", key: "resourceTemplates", toItem: toTemplate },
    ],
    top: opener,
  });
  const prompts = makeList({
    name: "prompts",
    title: "Prompts",
    sources: [{ method: "prompts/list", key: "prompts", toItem: toNamedItem(panels.prompt) }],
  });

  return { all: [tools, resources, prompts], resources, toItem: (uri) => toResource({ uri }) };
}
