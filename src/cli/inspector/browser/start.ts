/**
 * Puts the page together.
 *
 * @module
 */
import type { createAbout } from "./about.ts";
import type { createArguments } from "./arguments.ts";
import type { Browsing, createBrowse, Item } from "./browse.ts";
import type { createCalls } from "./calls.ts";
import type { Browser, createDom, Element } from "./dom.ts";
import type { createForms } from "./forms.ts";
import type { createJson, Json } from "./json.ts";
import type { createListener, Listener } from "./listen.ts";
import type { createLog } from "./log.ts";
import type { createPanels } from "./panels.ts";
import type { createQuestions } from "./questions.ts";
import type { createSchemaReader } from "./schema.ts";
import type { createShow } from "./show.ts";
import type { createTemplates } from "./template.ts";
import type { createWatch } from "./watch.ts";
import type { createWire } from "./wire.ts";

/** The functions of this folder, by name. */
export interface Parts {
  readonly createAbout: typeof createAbout;
  readonly createArguments: typeof createArguments;
  readonly createBrowse: typeof createBrowse;
  readonly createCalls: typeof createCalls;
  readonly createDom: typeof createDom;
  readonly createForms: typeof createForms;
  readonly createJson: typeof createJson;
  readonly createListener: typeof createListener;
  readonly createLog: typeof createLog;
  readonly createPanels: typeof createPanels;
  readonly createQuestions: typeof createQuestions;
  readonly createSchemaReader: typeof createSchemaReader;
  readonly createShow: typeof createShow;
  readonly createTemplates: typeof createTemplates;
  readonly createWatch: typeof createWatch;
  readonly createWire: typeof createWire;
}

/** What the server of the page says to it. */
export interface Config {
  /** Path of the endpoint. */
  readonly endpoint: string;
  /** Revision of the protocol. */
  readonly protocol: string;
  /** Version of this package. */
  readonly version: string;
}

/** Builds the page and fills it. */
export function start(browser: Browser, parts: Parts, config: Config): void {
  const { document, location, history } = browser;
  const dom = parts.createDom(browser);
  const { h, say, visible } = dom;
  const json = parts.createJson();
  const { isObject, objects, text } = json;
  const schemas = parts.createSchemaReader(json);
  const templates = parts.createTemplates();
  const makeBrowsing = parts.createBrowse(dom);

  let identity: Json = {};
  let capabilities: Json = {};

  // The log.

  const frameCount = h("span.count", {}, "0");
  const show = parts.createShow(dom, json, openUri);
  const log = parts.createLog({ dom, json, show, counted: (count) => frameCount.textContent = String(count) });
  const wire = parts.createWire({ ...config, onFrame: log.add }, json);
  const logSwitch = h("button.quiet", { type: "button", click: () => turnLog() }, "Log ", frameCount);

  function turnLog(isOpen = logSwitch.getAttribute("aria-expanded") !== "true"): void {
    logSwitch.setAttribute("aria-expanded", String(isOpen));
    log.element.hidden = !isOpen;
    document.body.classList.toggle("logged", isOpen);
  }

  // Calls.

  const announcer = h("div.unseen", { role: "status" });
  const forms = parts.createForms(dom, json, schemas);
  const serverName = () => text(identity.title) ?? text(identity.name) ?? "the server";
  const answer = parts.createQuestions(browser, { dom, json, forms, show, serverName });
  const announce = (words: string) => announcer.textContent = words;
  const makeRunner = parts.createCalls({ dom, json, show, wire, answer, announce });
  const makeArguments = parts.createArguments(dom, json, wire);

  // Changes.

  const status = h("span.state", { role: "status" }, "Connecting");
  const watch = parts.createWatch(dom, json, (): Listener => listener);
  const listener = parts.createListener(wire, json, {
    onState(state) {
      watch.show(state);
      const isLost = state.kind === "lost" && state.retries;
      status.textContent = isLost ? "Disconnected" : state.kind === "open" ? "Listening" : "Connected";
      status.className = `state ${isLost ? "bad" : "good"}`;
    },
    onChange(method, params) {
      watch.heard(method, params);
      const [, feature] = /^notifications\/(\w+)\/list_changed$/.exec(method) ?? [];
      if (feature) lists.find(({ name }) => name === feature)?.load();
    },
    onReturn: () => void discover(),
  });

  const panels = parts.createPanels({
    dom,
    json,
    show,
    forms,
    schemas,
    templates,
    makeArguments,
    makeRunner,
    completes: () => isObject(capabilities.completions),
    watches: () => isObject(capabilities.resources) && capabilities.resources.subscribe === true,
    watcher: watch.watcher,
  });

  // Lists.

  interface List {
    readonly name: string;
    readonly tab: string;
    readonly browsing: Browsing;
    readonly count: Element;
    load(): Promise<void>;
  }

  interface Source {
    readonly method: string;
    /** Where the items stand in the result. */
    readonly key: string;
    toItem(item: Json): Item;
  }

  function makeList(name: string, tab: string, sources: readonly Source[], top?: Element): List {
    const browsing = makeBrowsing({ what: name, top, onChoose: (key) => remember(tab, key) });
    const count = h("span.count");
    let loading = 0;

    async function load(): Promise<void> {
      const mine = ++loading;
      const parts = sources.map((): Item[] => []);
      if (!isObject(capabilities[name])) return browsing.set([]);
      const cursors = await Promise.all(sources.map((_, at) => loadPage(at, undefined)));
      if (mine === loading) draw(cursors);

      async function loadPage(at: number, cursor: unknown): Promise<unknown> {
        const { method, key, toItem } = sources[at];
        const outcome = await wire.send(method, cursor === undefined ? {} : { cursor });
        if (outcome.kind !== "result") return;
        parts[at].push(...objects(outcome.result[key]).map(toItem));
        return outcome.result.nextCursor;
      }

      function draw(cursors: readonly unknown[]): void {
        const items = parts.flat();
        const isMore = cursors.some((cursor) => cursor !== undefined);
        count.textContent = `${items.length}${isMore ? "+" : ""}`;
        browsing.set(items, isMore ? () => void loadMore(cursors) : undefined);
        if (browsing.chosen === undefined) recall();
      }

      async function loadMore(cursors: readonly unknown[]): Promise<void> {
        const next = await Promise.all(
          cursors.map((cursor, at) => cursor === undefined ? undefined : loadPage(at, cursor)),
        );
        if (mine === loading) draw(next);
      }
    }

    return { name, tab, browsing, count, load };
  }

  const toNamed = (build: (item: Json) => Element) => (item: Json): Item => ({
    key: String(item.name),
    name: String(item.name),
    note: text(item.title) ?? text(item.description),
    source: JSON.stringify(item),
    build: () => build(item),
  });

  const toResource = (item: Json): Item => ({
    key: String(item.uri),
    name: text(item.title) ?? text(item.name) ?? String(item.uri),
    note: String(item.uri),
    group: "Resources",
    source: JSON.stringify(item),
    build: () => panels.resource(item),
  });

  const toTemplate = (item: Json): Item => ({
    key: String(item.uriTemplate),
    name: text(item.title) ?? text(item.name) ?? String(item.uriTemplate),
    note: String(item.uriTemplate),
    group: "Templates",
    source: JSON.stringify(item),
    build: () => panels.template(item),
  });

  const uri = h("input.code", { "aria-label": "URI to open", placeholder: "Open a URI", spellcheck: "false" });
  const opener = h("form.filters", { novalidate: true }, uri, h("button.small", { type: "submit" }, "Open"));
  opener.addEventListener("submit", (event) => {
    event.preventDefault();
    if (uri.value) openUri(uri.value);
  });

  const resources = makeList("resources", "Resources", [
    { method: "resources/list", key: "resources", toItem: toResource },
    { method: "resources/templates/list", key: "resourceTemplates", toItem: toTemplate },
  ], opener);
  const lists: readonly List[] = [
    makeList("tools", "Tools", [{ method: "tools/list", key: "tools", toItem: toNamed(panels.tool) }]),
    resources,
    makeList("prompts", "Prompts", [{ method: "prompts/list", key: "prompts", toItem: toNamed(panels.prompt) }]),
  ];

  function openUri(uri: string): void {
    const tab = resources.tab;
    turnTo(tab);
    resources.browsing.choose(uri);
    if (resources.browsing.chosen !== uri) {
      resources.browsing.visit(toResource({ uri, name: uri }));
    }
    remember(tab, uri);
  }

  // Tabs.

  const about = parts.createAbout({ dom, json, show, wire, url: location.origin + config.endpoint });
  const views: readonly (readonly [name: string, view: Element, count?: Element])[] = [
    ...lists.map(({ tab, browsing, count }) => [tab, browsing.element, count] as const),
    ["Watch", watch.element],
    ["Server", about.element],
  ];
  const tabs = views.map(([name, view, count]) => {
    view.id = dom.newId();
    const tab = h("button", { role: "tab", type: "button", id: dom.newId(), "aria-controls": view.id }, name);
    if (count) tab.append(" ", count);
    view.setAttribute("role", "tabpanel");
    view.setAttribute("aria-labelledby", tab.id);
    tab.addEventListener("click", () => {
      turnTo(name);
      remember(name, lists.find((list) => list.tab === name)?.browsing.chosen);
    });
    return { name, tab, view };
  });

  function turnTo(name: string): void {
    for (const each of tabs) {
      const isHere = each.name === name;
      each.tab.setAttribute("aria-selected", String(isHere));
      each.tab.setAttribute("tabindex", isHere ? "0" : "-1");
      each.view.hidden = !isHere;
      if (isHere) each.tab.scrollIntoView({ block: "nearest" });
    }
  }

  function walk(event: { readonly key: string; preventDefault(): void }): void {
    const at = tabs.findIndex(({ tab }) => tab === document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1 + tabs.length, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const { name, tab } = tabs[to % tabs.length];
    turnTo(name);
    tab.focus();
  }

  // What is chosen stands in the address, so that it is there again after a reload.

  function remember(tab: string, key: string | undefined): void {
    const place = key === undefined ? tab : `${tab}/${encodeURIComponent(key.toWellFormed())}`;
    history.replaceState(null, "", `#${place}`);
  }

  function recall(): void {
    const [tab, key = ""] = location.hash.slice(1).split("/");
    const name = tabs.find((each) => each.name === tab)?.name ?? tabs[0].name;
    turnTo(name);
    try {
      lists.find((each) => each.tab === name)?.browsing.choose(decodeURIComponent(key));
    } catch {
      // Not an address of this page's.
    }
    // Where there is room for a list and what is chosen, something is.
    for (const { browsing } of browser.innerWidth > 700 ? lists : []) {
      if (browsing.chosen === undefined) browsing.chooseFirst();
    }
  }

  // The server.

  const title = h("h1", {}, "Inspector");
  const version = h("span.muted");
  const failure = h("div.failure");
  failure.hidden = true;

  async function discover(): Promise<void> {
    const outcome = await wire.send("server/discover");
    failure.hidden = outcome.kind === "result";
    if (outcome.kind === "error") {
      status.textContent = "Not connected";
      status.className = "state bad";
      const again = h("button", { type: "button", click: () => void begin() }, "Try again");
      failure.replaceChildren(show.error(outcome), again);
    }
    if (outcome.kind !== "result") return;
    const { _meta: meta, capabilities: declared } = outcome.result;
    const said = isObject(meta) ? meta["io.modelcontextprotocol/serverInfo"] : undefined;
    identity = isObject(said) ? said : {};
    capabilities = isObject(declared) ? declared : {};
    title.replaceChildren(say(serverName()));
    version.replaceChildren(visible(text(identity.version) ?? ""));
    document.title = `${visible(serverName())} · Inspector`;
    about.show(identity, outcome.result);
    await Promise.all(lists.map((list) => list.load()));
  }

  async function begin(): Promise<void> {
    await discover();
    if (failure.hidden) watch.begin(capabilities);
  }

  document.addEventListener("keydown", (event) => {
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (event.key !== "/" || !isPlain || event.target.matches("input, textarea, select")) return;
    const filter = tabs.find(({ view }) => !view.hidden)?.view.querySelector(".filter");
    if (!filter) return;
    event.preventDefault();
    filter.focus();
  });
  browser.addEventListener("hashchange", recall);

  document.body.append(
    h(
      "header",
      {},
      h("div.who", {}, title, version, status),
      h(
        "div.tabs",
        { role: "tablist", "aria-label": "Parts of the server", keydown: walk },
        ...tabs.map(({ tab }) => tab),
      ),
      logSwitch,
    ),
    failure,
    h("main", {}, ...tabs.map(({ view }) => view)),
    log.element,
    announcer,
  );
  turnLog(browser.innerWidth >= 1100);
  recall();
  void begin();
}
