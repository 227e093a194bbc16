/**
 * The lists of tools, resources and prompts.
 *
 * @module
 */
import type { Browsing, Item, MakeBrowsing } from "./browse.ts";
import type { Dom, Element } from "./dom.ts";
import type { Json, JsonTools } from "./json.ts";
import type { Panels } from "./panels.ts";
import type { Wire } from "./wire.ts";

/** One list. */
export interface List {
  /** The name of the capability, such as `tools`. */
  readonly name: string;
  readonly title: string;
  readonly browsing: Browsing;
  /** How many items there are. */
  readonly count: Element;
  /** Reads the list from the server. */
  load(): Promise<void>;
}

/** What lists are built with. */
export interface ListParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly wire: Wire;
  readonly panels: Panels;
  readonly makeBrowsing: MakeBrowsing;
  /** The server's capabilities. */
  readonly capabilities: () => Json;
  /** Goes to a resource. */
  readonly openUri: (uri: string) => void;
  /** Told what a person has chosen. */
  readonly onChoose: (list: List, key: string) => void;
  /** Told that a list is there in which nothing is chosen yet. */
  readonly onLoad: () => void;
}

/** The lists, and how to show a resource that may be in none. */
export interface Lists {
  readonly all: readonly List[];
  readonly resources: List;
  /** A resource that only its URI is known of. */
  toItem(uri: string): Item;
}

/** Makes the lists. */
export function createLists(parts: ListParts): Lists {
  const { dom: { h }, json: { isObject, objects, text, compact }, wire, panels, makeBrowsing } = parts;
  const { capabilities, openUri, onChoose, onLoad } = parts;

  interface Source {
    readonly method: string;
    /** Where the items stand in the result. */
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
    const browsing = makeBrowsing({ what: name, top, onChoose: (key) => onChoose(list, key) });
    const count = h("span.count");
    const list: List = { name, title, browsing, count, load };
    let loading = 0;

    async function load(): Promise<void> {
      const mine = ++loading;
      const pages = sources.map((): Item[] => []);
      let problem: string | undefined;
      if (!isObject(capabilities()[name])) return browsing.set([]);
      draw(await Promise.all(sources.map((_, at) => loadPage(at, undefined))));

      /** Adds a page to its list; where the next one begins, if there is one. */
      async function loadPage(at: number, cursor: unknown): Promise<unknown> {
        const { method, key, toItem } = sources[at];
        const outcome = await wire.send(method, cursor === undefined ? {} : { cursor });
        if (outcome.kind === "error") problem = outcome.message;
        if (outcome.kind !== "result") return;
        pages[at].push(...objects(outcome.result[key]).map(toItem));
        return outcome.result.nextCursor;
      }

      function draw(cursors: readonly unknown[]): void {
        // A later load has begun: what is here is old.
        if (mine !== loading) return;
        const items = pages.flat();
        const isMore = cursors.some((cursor) => cursor !== undefined);
        count.textContent = `${items.length}${isMore ? "+" : ""}`;
        browsing.set(items, isMore ? () => void loadMore(cursors) : undefined, problem);
        if (browsing.chosen === undefined) onLoad();
      }

      async function loadMore(cursors: readonly unknown[]): Promise<void> {
        draw(await Promise.all(cursors.map((cursor, at) => cursor === undefined ? undefined : loadPage(at, cursor))));
      }
    }

    return list;
  }

  const toNamed = (build: (item: Json) => Element) => (item: Json): Item => ({
    key: String(item.name),
    name: String(item.name),
    note: text(item.title) ?? text(item.description),
    source: compact(item),
    build: () => build(item),
  });

  const toPlaced = (key: string, group: string, build: (item: Json) => Element) => (item: Json): Item => ({
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

  const toResource = toPlaced("uri", "Resources", panels.resource);
  const toTemplate = toPlaced("uriTemplate", "Templates", panels.template);
  const tools = makeList({
    name: "tools",
    title: "Tools",
    sources: [{ method: "tools/list", key: "tools", toItem: toNamed(panels.tool) }],
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
    sources: [{ method: "prompts/list", key: "prompts", toItem: toNamed(panels.prompt) }],
  });

  return { all: [tools, resources, prompts], resources, toItem: (uri) => toResource({ uri }) };
}
