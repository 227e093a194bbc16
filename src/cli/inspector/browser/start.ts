/**
 * Puts the page together.
 *
 * @module
 */
import type { createAbout } from "./about.ts";
import type { createAccess } from "./access.ts";
import type { createArguments } from "./arguments.ts";
import type { createBrowse } from "./browse.ts";
import type { createCalls } from "./calls.ts";
import type { createCompounds } from "./compounds.ts";
import type { createConnecting, Given } from "./connecting.ts";
import type { createControls, MakeControl } from "./controls.ts";
import type { Browser, createDom } from "./dom.ts";
import type { createForms, Forms } from "./forms.ts";
import type { createJson, Json } from "./json.ts";
import type { createLine } from "./line.ts";
import type { createListener, Listener } from "./listen.ts";
import type { createLists, Lists } from "./lists.ts";
import type { createLog } from "./log.ts";
import type { createMarkdown } from "./markdown.ts";
import type { createPanels } from "./panels.ts";
import type { createQuestions } from "./questions.ts";
import type { createSchemaReader } from "./schema.ts";
import type { createShow } from "./show.ts";
import type { createTabs } from "./tabs.ts";
import type { createTemplates } from "./template.ts";
import type { createViewer } from "./viewer.ts";
import type { createWatch } from "./watch.ts";
import type { createWire, Wire } from "./wire.ts";

/** The functions of this folder, by name. */
export interface Parts {
  readonly createAbout: typeof createAbout;
  readonly createAccess: typeof createAccess;
  readonly createArguments: typeof createArguments;
  readonly createBrowse: typeof createBrowse;
  readonly createCalls: typeof createCalls;
  readonly createCompounds: typeof createCompounds;
  readonly createConnecting: typeof createConnecting;
  readonly createControls: typeof createControls;
  readonly createDom: typeof createDom;
  readonly createForms: typeof createForms;
  readonly createJson: typeof createJson;
  readonly createLine: typeof createLine;
  readonly createListener: typeof createListener;
  readonly createLists: typeof createLists;
  readonly createLog: typeof createLog;
  readonly createMarkdown: typeof createMarkdown;
  readonly createPanels: typeof createPanels;
  readonly createQuestions: typeof createQuestions;
  readonly createSchemaReader: typeof createSchemaReader;
  readonly createShow: typeof createShow;
  readonly createTabs: typeof createTabs;
  readonly createTemplates: typeof createTemplates;
  readonly createViewer: typeof createViewer;
  readonly createWatch: typeof createWatch;
  readonly createWire: typeof createWire;
}

/** What the server of the page says to it. */
export interface Config {
  /** Path of the endpoint of the server that serves the page, if one does. */
  readonly endpoint?: string;
  /** A server that the command line names. */
  readonly given?: Given;
  /** Revision of the protocol. */
  readonly protocol: string;
  /** Version of this package. */
  readonly version: string;
}

/** What the page is built of. */
export interface PageParts {
  readonly parts: Parts;
  readonly config: Config;
}

/** Builds the page and fills it. */
export function start(browser: Browser, { parts, config }: PageParts): void {
  const { document, location, history } = browser;
  const dom = parts.createDom(browser);
  const { h, say, visible } = dom;
  const json = parts.createJson();
  const { isObject, text } = json;

  let identity: Json = {};
  let capabilities: Json = {};
  const serverName = () => text(identity.title) ?? text(identity.name) ?? "the server";

  const access = parts.createAccess({
    browser,
    json,
    usual: { kind: config.endpoint === undefined ? "given" : "own" },
  });
  const own = config.endpoint === undefined ? undefined : location.origin + config.endpoint;
  const serverUrl = access.place.kind === "url" ? access.place.url : own ?? config.given?.name ?? "";

  // The log.

  const makeViewer = parts.createViewer({ dom, json });
  const show = parts.createShow({ dom, json, markdown: parts.createMarkdown(dom), makeViewer, open: openUri });
  const frameCount = h("span.count", {}, "0");
  const log = parts.createLog({
    dom,
    json,
    show,
    mask: access.mask,
    headerNames: Object.keys(access.headers),
    counted: (count) => frameCount.textContent = String(count),
  });
  const line = parts.createLine({
    access,
    json,
    endpoint: config.endpoint,
    capabilities: () => wire.capabilities,
    onQuestion,
    onWarning,
  });
  const wire: Wire = parts.createWire({ ...config, line, onFrame: log.add }, json);
  const connecting = parts.createConnecting(browser, { dom, access, own, given: config.given });
  const connector = h("button.quiet", { type: "button", click: connecting }, "Connection");

  /** Shows what the program that serves the page has noticed about the server. */
  function onWarning(data: string): void {
    const text = json.compact({ method: "inspector/warning", params: { level: "warning", data } });
    log.add({ kind: "notification", id: 0, method: "inspector/warning", text, at: Date.now(), ms: 0 });
  }

  /** Asks the user what a server asks that is not the page's own. */
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

  const logSwitch = h("button.quiet", { type: "button", click: () => turnLog() }, "Log ", frameCount);

  function turnLog(isOpen = logSwitch.getAttribute("aria-expanded") !== "true"): void {
    logSwitch.setAttribute("aria-expanded", String(isOpen));
    log.element.hidden = !isOpen;
    document.body.classList.toggle("logged", isOpen);
    log.toEnd();
  }

  // Calls.

  const announcer = h("div.unseen", { role: "status" });
  const announce = (words: string) => announcer.textContent = words;
  const schemas = parts.createSchemaReader(json);
  const makeCompound = parts.createCompounds({
    dom,
    json,
    schemas,
    makeControl: () => makeControl,
    makeFields: () => forms.makeFields,
  });
  const makeControl: MakeControl = parts.createControls({ dom, json, schemas, makeCompound });
  const forms: Forms = parts.createForms({ dom, json, schemas, makeControl });
  const answer = parts.createQuestions(browser, { dom, json, forms, show, serverName });
  const makeRunner = parts.createCalls({ dom, json, show, wire, answer, announce });

  // Changes.

  const status = h("span.state", { role: "status" }, "Connecting");
  const watch = parts.createWatch({ dom, json, show, listener: (): Listener => listener });
  const listener = parts.createListener({
    wire,
    json,
    onState(state) {
      watch.showState(state);
      const isLost = state.kind === "lost" && state.retries;
      status.textContent = isLost ? "Disconnected" : state.kind === "open" ? "Listening" : "Connected";
      status.className = `state ${isLost ? "bad" : "good"}`;
    },
    onChange(method, params) {
      watch.heard(method, params);
      const [, feature] = /^notifications\/(\w+)\/list_changed$/.exec(method) ?? [];
      if (feature) lists.all.find(({ name }) => name === feature)?.load();
    },
    onReturn: () => void discover(),
  });

  // Lists and tabs.

  const panels = parts.createPanels({
    dom,
    json,
    show,
    forms,
    schemas,
    templates: parts.createTemplates(),
    makeArguments: parts.createArguments({ dom, json, wire }),
    makeRunner,
    completes: () => isObject(capabilities.completions),
    watches: () => isObject(capabilities.resources) && capabilities.resources.subscribe === true,
    watcher: watch.watcher,
  });
  const lists: Lists = parts.createLists({
    dom,
    json,
    wire,
    panels,
    makeBrowsing: parts.createBrowse(dom),
    capabilities: () => capabilities,
    openUri,
    onChoose: ({ title }, key) => remember(title, key),
    onLoad: recall,
  });
  const about = parts.createAbout({ dom, json, show, wire, url: serverUrl });
  const views = [
    ...lists.all.map(({ title, browsing, count }) => ({ name: title, element: browsing.element, count })),
    { name: "Watch", element: watch.element },
    { name: "Server", element: about.element },
  ];
  const tabs = parts.createTabs({
    browser,
    dom,
    views,
    onTurn: (name) => remember(name, lists.all.find(({ title }) => title === name)?.browsing.chosen),
  });

  function openUri(uri: string): void {
    const { title, browsing } = lists.resources;
    tabs.turnTo(title);
    browsing.choose(uri);
    if (browsing.chosen !== uri) browsing.visit(lists.toItem(uri));
    remember(title, uri);
  }

  // What is chosen stands in the address, so that it is there again after a reload.

  function remember(name: string, key: string | undefined): void {
    const place = key === undefined ? name : `${name}/${encodeURIComponent(key.toWellFormed())}`;
    history.replaceState(null, "", `#${place}`);
  }

  function recall(): void {
    const [name, key = ""] = location.hash.slice(1).split("/");
    tabs.turnTo(name);
    try {
      lists.all.find(({ title }) => title === name)?.browsing.choose(decodeURIComponent(key));
    } catch {
      // Not an address of this page's.
    }
    // Where there is room for a list and what is chosen, something is.
    for (const { browsing } of browser.innerWidth > 700 ? lists.all : []) {
      if (browsing.chosen === undefined) browsing.chooseFirst();
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
    // Before there was a server, there are no lists to show beside the failure.
    main.hidden = !isKnown;
    if (outcome.kind === "error") {
      status.textContent = "Not connected";
      status.className = "state bad";
      const again = h("button", { type: "button", click: () => void begin() }, "Try again");
      const other = h("button", { type: "button", click: connecting }, "Connection");
      const where = h("p.address", {}, "Cannot connect to ", h("code", {}, say(serverUrl)));
      failure.replaceChildren(where, show.error(outcome), h("div.actions", {}, again, other));
    }
    if (outcome.kind !== "result") return;
    const { _meta: meta, capabilities: declared } = outcome.result;
    const said = isObject(meta) ? meta["io.modelcontextprotocol/serverInfo"] : undefined;
    identity = isObject(said) ? said : {};
    capabilities = isObject(declared) ? declared : {};
    title.replaceChildren(say(serverName()));
    version.textContent = visible(text(identity.version) ?? "");
    document.title = `${visible(serverName())} · Inspector`;
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
  turnLog(browser.innerWidth >= 1100);
  recall();
  void begin();
}
