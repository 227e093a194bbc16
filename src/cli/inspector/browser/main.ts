/**
 * Builds the page and connects to the server. The task `inspector:page` bundles this file with its imports.
 */
import { type Call, historyPanel, onRepeat } from "./call_history.ts";
import { announcer } from "./call_runner.ts";
import { endpoint, type NamedServer, ownUrl } from "./config.ts";
import { openConnectionDialog } from "./connection_dialog.ts";
import { OPEN_RESOURCE, showError } from "./content_view.ts";
import { place } from "./credentials.ts";
import { escapeInvisible, h, makeButton, serverText } from "./dom.ts";
import type { Failure } from "./exchange.ts";
import { type List, makeLists, toResourceItem } from "./item_lists.ts";
import { REPEAT } from "./item_panels.ts";
import { type Json, toObject, toText } from "./json.ts";
import { frameCount, logElement, scrollLogToEnd } from "./message_log.ts";
import { send } from "./rpc_client.ts";
import { getServerName, server } from "./server_facts.ts";
import { serverPanel, showServer } from "./server_panel.ts";
import type { SubscriptionState } from "./subscription.ts";
import { beginSubscription, subscriptionPanel } from "./subscription_panel.ts";
import { makeTabs } from "./tabs.ts";
import { findNamedServer } from "./transport.ts";

/** Minimum width of the window for showing a list and a panel side by side, in pixels. */
const WIDE = 700;
/** Minimum width of the window for opening the log when the page loads, in pixels. */
const WIDE_WITH_LOG = 1100;

let named: NamedServer | undefined;
/**
 * Whether the server has responded to a `server/discover` request. Before the response, the page has no lists to show.
 */
let isKnown = false;

const lists = makeLists({ onChoose: remember, onLoad: recall, onOpen: openResource });
const all: readonly List[] = [lists.tools, lists.resources, lists.prompts];
const views = [
  ...all.map(({ title, itemList, count }) => ({ name: title, element: itemList.element, count })),
  { name: "History", element: historyPanel },
  { name: "Watch", element: subscriptionPanel },
  { name: "Server", element: serverPanel },
];
const tabs = makeTabs(views, (name) => remember(name, findList(name)?.itemList.chosen));

const title = h("h1", "Inspector");
const version = h("span.muted");
const status = h("span.state", { role: "status" }, "Connecting");
const failure = h("div.failure", { hidden: true });
const main = h("main", ...views.map(({ element }) => element));
const connector = makeButton("button.quiet", "Connection", () => openConnectionDialog(named));
const logSwitch = makeButton("button.quiet", "Log ", () => toggleLog(logElement.hidden === true));
logSwitch.append(frameCount);

document.body.append(
  h("header", h("div.who", title, version, status), tabs.element, h("div.switches", connector, logSwitch)),
  failure,
  main,
  logElement,
  announcer,
);
document.addEventListener("keydown", focusFilter);
document.addEventListener(OPEN_RESOURCE, (event) => {
  if (event instanceof CustomEvent) openResource(String(event.detail));
});
addEventListener("hashchange", recall);
onRepeat(repeat);
toggleLog(innerWidth >= WIDE_WITH_LOG);
recall();
void begin();

function findList(name: string): List | undefined {
  return all.find(({ title }) => title === name);
}

function toggleLog(isOpen: boolean): void {
  logSwitch.ariaExpanded = String(isOpen);
  logElement.hidden = !isOpen;
  document.body.classList.toggle("logged", isOpen);
  scrollLogToEnd();
}

function focusFilter(event: KeyboardEvent): void {
  const isPlain = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey;
  if (!isPlain || (event.target instanceof Element && event.target.matches("input, textarea, select"))) return;
  const filter = main.querySelector<HTMLElement>(":scope > :not([hidden]) .filter");
  if (!filter) return;
  event.preventDefault();
  filter.focus();
}

/** Opens a resource, even if it is not in the list. */
function openResource(uri: string): void {
  const { title, itemList } = lists.resources;
  tabs.openTab(title);
  if (!itemList.choose(uri)) itemList.showItem(toResourceItem({ uri }));
  remember(title, uri);
}

/** Repeats a call in its panel. Returns `false` if the item is no longer in its list. */
function repeat({ list, key, given }: Call): boolean {
  const found = findList(list);
  const isThere = found?.itemList.choose(key) === true;
  if (!isThere && found !== lists.resources) return false;
  if (isThere) tabs.openTab(list);
  else openResource(key);
  remember(list, key);
  found?.itemList.panel?.dispatchEvent(new CustomEvent(REPEAT, { detail: given }));
  return true;
}

/** Writes the chosen item into the URL, so that reloading the page opens the item again. */
function remember(name: string, key: string | undefined): void {
  const path = key === undefined ? name : `${name}/${encodeURIComponent(key.toWellFormed())}`;
  history.replaceState(null, "", `#${path}`);
}

/** Opens the item that the URL names. */
function recall(): void {
  const [name, key = ""] = location.hash.slice(1).split("/");
  tabs.openTab(name);
  try {
    findList(name)?.itemList.choose(decodeURIComponent(key));
  } catch {
    // Ignore the error: the fragment was not written by this page.
  }
  if (innerWidth <= WIDE) return;
  for (const { itemList } of all) if (itemList.chosen === undefined) itemList.chooseFirst();
}

async function begin(): Promise<void> {
  if (!await discover()) return;
  beginSubscription(server.capabilities, { onState: showState, onChange, onReturn: () => void discover() });
}

function onChange(method: string): void {
  const [, feature] = /^notifications\/(\w+)\/list_changed$/.exec(method) ?? [];
  void all.find(({ title }) => title.toLowerCase() === feature)?.load();
}

function showState(state: SubscriptionState): void {
  const isLost = state.kind === "lost" && state.retries;
  status.textContent = isLost ? "Disconnected" : state.kind === "open" ? "Listening" : "Connected";
  status.className = `state ${isLost ? "bad" : "good"}`;
}

/** Requests the server's description, and loads the lists. Returns `false` if the server does not respond. */
async function discover(): Promise<boolean> {
  // Ignore an error. If the page has no key, the next request also fails, and the page shows the problem.
  if (endpoint === undefined) named ??= await findNamedServer().catch(() => undefined);
  const outcome = await send("server/discover");
  failure.hidden = outcome.kind === "result";
  isKnown ||= outcome.kind === "result";
  main.hidden = !isKnown;
  if (outcome.kind === "error") showFailure(outcome);
  if (outcome.kind !== "result") return false;
  await showDiscovery(outcome.result);
  return true;
}

async function showDiscovery(discovery: Json): Promise<void> {
  server.identity = toObject(toObject(discovery._meta)["io.modelcontextprotocol/serverInfo"]);
  server.capabilities = toObject(discovery.capabilities);
  title.replaceChildren(serverText(getServerName()));
  version.textContent = escapeInvisible(toText(server.identity.version) ?? "");
  document.title = `${escapeInvisible(getServerName())} · Inspector`;
  showServer(discovery, getUrl());
  await Promise.all(all.map((list) => list.load()));
}

function getUrl(): string {
  return place.kind === "url" ? place.url : ownUrl ?? named?.name ?? "the server from the command line";
}

function showFailure(error: Failure): void {
  status.textContent = "Not connected";
  status.className = "state bad";
  failure.replaceChildren(
    h("p.address", "Cannot connect to ", h("code", serverText(getUrl()))),
    showError(error),
    h(
      "div.actions",
      makeButton("button", "Try again", () => void begin()),
      makeButton("button", "Connection", () => openConnectionDialog(named)),
    ),
  );
}
