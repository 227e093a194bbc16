/**
 * Builds the page.
 *
 * @module
 */
import type { createServerPanel } from "./server_panel.ts";
import type { createCredentials } from "./credentials.ts";
import type { createArgumentFields } from "./argument_fields.ts";
import type { createItemList } from "./item_list.ts";
import type { createCallRunners } from "./call_runner.ts";
import type { createCompoundControls } from "./compound_controls.ts";
import type { createConnectionDialog, NamedServer } from "./connection_dialog.ts";
import type { createValueControls, MakeControl } from "./value_controls.ts";
import type { Browser, createDom } from "./dom.ts";
import type { createForms, Forms } from "./forms.ts";
import type { createJsonTools, Json } from "./json_tools.ts";
import type { createTransport } from "./transport.ts";
import type { createSubscription, Subscription } from "./subscription.ts";
import type { createItemLists, ItemLists } from "./item_lists.ts";
import type { createMessageLog } from "./message_log.ts";
import type { createMarkdown } from "./markdown.ts";
import type { createItemPanels } from "./item_panels.ts";
import type { createQuestionDialogs } from "./question_dialogs.ts";
import type { createSchemaReader } from "./schema_reader.ts";
import type { createContentView } from "./content_view.ts";
import type { createTabs } from "./tabs.ts";
import type { createUriTemplates } from "./uri_template.ts";
import type { createTextViewer } from "./text_viewer.ts";
import type { createSubscriptionPanel } from "./subscription_panel.ts";
import type { createRpcClient, RpcClient } from "./rpc_client.ts";

/** The functions of this folder by name. */
export interface Parts {
  readonly createServerPanel: typeof createServerPanel;
  readonly createCredentials: typeof createCredentials;
  readonly createArgumentFields: typeof createArgumentFields;
  readonly createItemList: typeof createItemList;
  readonly createCallRunners: typeof createCallRunners;
  readonly createCompoundControls: typeof createCompoundControls;
  readonly createConnectionDialog: typeof createConnectionDialog;
  readonly createValueControls: typeof createValueControls;
  readonly createDom: typeof createDom;
  readonly createForms: typeof createForms;
  readonly createJsonTools: typeof createJsonTools;
  readonly createTransport: typeof createTransport;
  readonly createSubscription: typeof createSubscription;
  readonly createItemLists: typeof createItemLists;
  readonly createMessageLog: typeof createMessageLog;
  readonly createMarkdown: typeof createMarkdown;
  readonly createItemPanels: typeof createItemPanels;
  readonly createQuestionDialogs: typeof createQuestionDialogs;
  readonly createSchemaReader: typeof createSchemaReader;
  readonly createContentView: typeof createContentView;
  readonly createTabs: typeof createTabs;
  readonly createUriTemplates: typeof createUriTemplates;
  readonly createTextViewer: typeof createTextViewer;
  readonly createSubscriptionPanel: typeof createSubscriptionPanel;
  readonly createRpcClient: typeof createRpcClient;
}

/** The configuration of the page. */
export interface Config {
  /** The endpoint path of the server that serves the page, if there is one. */
  readonly endpoint?: string;
  /** The server named on the command line. */
  readonly named?: NamedServer;
  /** The protocol revision. */
  readonly protocol: string;
  /** The version of this package. */
  readonly version: string;
}

/** Dependencies. */
export interface PageParts {
  readonly parts: Parts;
  readonly config: Config;
}

/** Builds the page and connects to the server. */
export function startPage(browser: Browser, { parts, config }: PageParts): void {
  const { document, location, history } = browser;
  const dom = parts.createDom(browser);
  const { h, serverText, escapeInvisible } = dom;
  const json = parts.createJsonTools();
  const { isObject, text } = json;

  let identity: Json = {};
  let capabilities: Json = {};
  const serverName = () => text(identity.title) ?? text(identity.name) ?? "the server";

  const access = parts.createCredentials({
    browser,
    json,
    usual: { kind: config.endpoint === undefined ? "named" : "own" },
  });
  const own = config.endpoint === undefined ? undefined : location.origin + config.endpoint;
  const serverUrl = access.place.kind === "url" ? access.place.url : own ?? config.named?.name ?? "";

  // The log.

  const makeTextViewer = parts.createTextViewer({ dom, json });
  const show = parts.createContentView({
    dom,
    json,
    markdown: parts.createMarkdown(dom),
    makeTextViewer,
    open: openUri,
  });
  const frameCount = h("span.count", {}, "0");
  const log = parts.createMessageLog({
    dom,
    json,
    show,
    mask: access.mask,
    headerNames: Object.keys(access.headers),
    onCount: (count) => frameCount.textContent = String(count),
  });
  const line = parts.createTransport({
    access,
    json,
    endpoint: config.endpoint,
    capabilities: () => wire.capabilities,
    onQuestion,
    onWarning,
  });
  const wire: RpcClient = parts.createRpcClient({ ...config, line, onFrame: log.add }, json);
  const connecting = parts.createConnectionDialog(browser, { dom, access, own, named: config.named });
  const connector = h("button.quiet", { type: "button", click: connecting }, "Connection");

  /** Shows a warning of the relay about the server. */
  function onWarning(data: string): void {
    const text = json.compact({ method: "inspector/warning", params: { level: "warning", data } });
    log.add({ kind: "notification", id: 0, method: "inspector/warning", text, at: Date.now(), ms: 0 });
  }

  /** Shows a request of another server to the user. */
  async function onQuestion(method: string, params: Json, signal: AbortSignal): Promise<Json | undefined> {
    const start = performance.now();
    const tell = (kind: "question" | "answer", value: unknown) => {
      const text = json.compact(value);
      log.add({ kind, id: 0, method, text, at: Date.now(), ms: performance.now() - start });
    };
    tell("question", { method, params });
    const result = await answer(method, params, signal);
    tell("answer", { result });
    return result;
  }

  const logSwitch = h("button.quiet", { type: "button", click: () => toggleLog() }, "Log ", frameCount);

  function toggleLog(isOpen = logSwitch.getAttribute("aria-expanded") !== "true"): void {
    logSwitch.setAttribute("aria-expanded", String(isOpen));
    log.element.hidden = !isOpen;
    document.body.classList.toggle("logged", isOpen);
    log.scrollToEnd();
  }

  // Calls.

  const announcer = h("div.unseen", { role: "status" });
  const announce = (words: string) => announcer.textContent = words;
  const schemas = parts.createSchemaReader(json);
  const makeCompound = parts.createCompoundControls({
    dom,
    json,
    schemas,
    makeControl: () => makeControl,
    makeFields: () => forms.makeFields,
  });
  const makeControl: MakeControl = parts.createValueControls({ dom, json, schemas, makeCompound });
  const forms: Forms = parts.createForms({ dom, json, schemas, makeControl });
  const answer = parts.createQuestionDialogs(browser, { dom, json, forms, show, serverName });
  const makeRunner = parts.createCallRunners({ dom, json, show, wire, answer, announce });

  // Changes.

  const status = h("span.state", { role: "status" }, "Connecting");
  const watch = parts.createSubscriptionPanel({ dom, json, show, listener: (): Subscription => listener });
  const listener = parts.createSubscription({
    wire,
    json,
    onState(state) {
      watch.showState(state);
      const isLost = state.kind === "lost" && state.retries;
      status.textContent = isLost ? "Disconnected" : state.kind === "open" ? "Listening" : "Connected";
      status.className = `state ${isLost ? "bad" : "good"}`;
    },
    onChange(method, params) {
      watch.onChange(method, params);
      const [, feature] = /^notifications\/(\w+)\/list_changed$/.exec(method) ?? [];
      if (feature) lists.all.find(({ name }) => name === feature)?.load();
    },
    onReturn: () => void discover(),
  });

  // Lists and tabs.

  const panels = parts.createItemPanels({
    dom,
    json,
    show,
    forms,
    schemas,
    templates: parts.createUriTemplates(),
    makeArguments: parts.createArgumentFields({ dom, json, wire }),
    makeRunner,
    canComplete: () => isObject(capabilities.completions),
    canWatch: () => isObject(capabilities.resources) && capabilities.resources.subscribe === true,
    watchButton: watch.watchButton,
  });
  const lists: ItemLists = parts.createItemLists({
    dom,
    json,
    wire,
    panels,
    makeItemList: parts.createItemList(dom),
    capabilities: () => capabilities,
    openUri,
    onChoose: ({ title }, key) => remember(title, key),
    onLoad: recall,
  });
  const about = parts.createServerPanel({ dom, json, show, wire, url: serverUrl });
  const views = [
    ...lists.all.map(({ title, itemList, count }) => ({ name: title, element: itemList.element, count })),
    { name: "Watch", element: watch.element },
    { name: "Server", element: about.element },
  ];
  const tabs = parts.createTabs({
    browser,
    dom,
    views,
    onOpen: (name) => remember(name, lists.all.find(({ title }) => title === name)?.itemList.chosen),
  });

  function openUri(uri: string): void {
    const { title, itemList } = lists.resources;
    tabs.openTab(title);
    itemList.choose(uri);
    if (itemList.chosen !== uri) itemList.showItem(lists.toItem(uri));
    remember(title, uri);
  }

  // The URL holds the chosen item, so that a reload restores it.

  function remember(name: string, key: string | undefined): void {
    const place = key === undefined ? name : `${name}/${encodeURIComponent(key.toWellFormed())}`;
    history.replaceState(null, "", `#${place}`);
  }

  function recall(): void {
    const [name, key = ""] = location.hash.slice(1).split("/");
    tabs.openTab(name);
    try {
      lists.all.find(({ title }) => title === name)?.itemList.choose(decodeURIComponent(key));
    } catch {
      // The fragment is not one of this page.
    }
    // With room for list and panel, an item is always chosen.
    for (const { itemList } of browser.innerWidth > 700 ? lists.all : []) {
      if (itemList.chosen === undefined) itemList.chooseFirst();
    }
  }

  const main = h("main", {}, ...views.map(({ element }) => element));

  // The server.

  const title = h("h1", {}, "Inspector");
  const version = h("span.muted");
  const failure = h("div.failure");
  failure.hidden = true;

  let isKnown = false;

  async function discover(): Promise<void> {
    const outcome = await wire.send("server/discover");
    failure.hidden = outcome.kind === "result";
    if (outcome.kind === "result") isKnown = true;
    // Before the first connection there are no lists to show.
    main.hidden = !isKnown;
    if (outcome.kind === "error") {
      status.textContent = "Not connected";
      status.className = "state bad";
      const again = h("button", { type: "button", click: () => void begin() }, "Try again");
      const other = h("button", { type: "button", click: connecting }, "Connection");
      const where = h("p.address", {}, "Cannot connect to ", h("code", {}, serverText(serverUrl)));
      failure.replaceChildren(where, show.error(outcome), h("div.actions", {}, again, other));
    }
    if (outcome.kind !== "result") return;
    const { _meta: meta, capabilities: declared } = outcome.result;
    const said = isObject(meta) ? meta["io.modelcontextprotocol/serverInfo"] : undefined;
    identity = isObject(said) ? said : {};
    capabilities = isObject(declared) ? declared : {};
    title.replaceChildren(serverText(serverName()));
    version.textContent = escapeInvisible(text(identity.version) ?? "");
    document.title = `${escapeInvisible(serverName())} · Inspector`;
    about.show(identity, outcome.result);
    await Promise.all(lists.all.map((list) => list.load()));
  }

  async function begin(): Promise<void> {
    await discover();
    if (failure.hidden) watch.begin(capabilities);
  }

  document.addEventListener("keydown", (event) => {
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (event.key !== "/" || !isPlain || event.target.matches("input, textarea, select")) return;
    const filter = tabs.view.element.querySelector(".filter");
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
      tabs.element,
      h("div.switches", {}, connector, logSwitch),
    ),
    failure,
    main,
    log.element,
    announcer,
  );
  toggleLog(browser.innerWidth >= 1100);
  recall();
  void begin();
}
