/**
 * The panel that shows the subscription, its filter and the received changes.
 */
import { showPlainJson } from "./content_view.ts";
import { h, makeButton, serverText } from "./dom.ts";
import { type Json, toObject } from "./json.ts";
import { Subscription, type SubscriptionEvents, type SubscriptionState } from "./subscription.ts";

const MAX_CHANGES = 200;
const watched = new Set<string>();
/** The watch buttons of each resource, by URI. */
const watchers = new Map<string, Set<HTMLElement>>();
let subscription: Subscription | undefined;

const state = h("span.state", "Off");
const reason = h("span.muted");
const boxes = ["tools", "prompts", "resources"].map((name) => {
  return [name, h("input", { type: "checkbox", disabled: true, change: listen })] as const;
});
const uris = h("ul.rows");
const noUris = h("p.muted", "No resources. Open a resource to watch it, or enter a URI.");
const uri = h("input.code", { "aria-label": "URI to watch", placeholder: "URI", spellcheck: "false" });
const form = h("form.inline", { novalidate: true }, uri, h("button", { type: "submit" }, "Watch"));
const granted = h("div");
const changes = h("ol.changes", { "aria-label": "Changes" });
const noChanges = h("p.muted", "No changes yet.");
form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (uri.value) watch(uri.value, true);
  uri.value = "";
});

export const subscriptionPanel: HTMLElement = h(
  "div.page",
  h("h2", "Subscription"),
  h("p.line", state, reason),
  h(
    "fieldset.field",
    h("legend", "List changes"),
    h("div.boxes", ...boxes.map(([name, box]) => h("label", box, name))),
  ),
  h("h3", "Resources"),
  noUris,
  uris,
  form,
  h("h3", "Accepted by the server"),
  granted,
  h("h3", "Changes"),
  noChanges,
  changes,
);

/** Shows which changes the server can announce, and subscribes to changes of all lists. */
export function beginSubscription(capabilities: Json, { onState, onChange, onReturn }: SubscriptionEvents): void {
  subscription ??= new Subscription({
    onState(now) {
      showState(now);
      onState(now);
    },
    onChange(method, params) {
      showChange(method, params);
      onChange(method, params);
    },
    onReturn,
  });
  for (const [name, box] of boxes) {
    box.checked = toObject(capabilities[name]).listChanged === true;
    box.disabled = !box.checked;
  }
  form.hidden = toObject(capabilities.resources).subscribe !== true;
  if (form.hidden) noUris.textContent = "This server does not support subscriptions to resources.";
  listen();
}

export function makeWatchButton(uri: string): HTMLElement {
  const button = makeButton("button", "", () => watch(uri, !watched.has(uri)));
  const all = watchers.get(uri) ?? new Set();
  watchers.set(uri, all.add(button));
  mark(button, watched.has(uri));
  return button;
}

function listen(): void {
  const lists = boxes.filter(([, box]) => box.checked).map(([name]) => [`${name}ListChanged`, true]);
  const filter = {
    ...Object.fromEntries(lists),
    ...watched.size ? { resourceSubscriptions: [...watched] } : {},
  };
  subscription?.listen(Object.keys(filter).length ? filter : undefined);
}

function watch(uri: string, isOn: boolean): void {
  if (isOn) watched.add(uri);
  else watched.delete(uri);
  noUris.hidden = watched.size > 0;
  uris.replaceChildren(...[...watched].map((each) =>
    h(
      "li",
      h("code.grow", serverText(each)),
      makeButton("button.quiet.small", "Stop watching", () => watch(each, false)),
    )
  ));
  for (const button of watchers.get(uri) ?? []) mark(button, isOn);
  listen();
}

function mark(button: HTMLElement, isOn: boolean): void {
  button.ariaPressed = String(isOn);
  button.textContent = isOn ? "Watching" : "Watch";
}

function showState(now: SubscriptionState): void {
  state.textContent = { off: "Off", opening: "Opening", open: "Listening", lost: "Lost" }[now.kind];
  state.className = `state ${now.kind === "open" ? "good" : now.kind === "lost" ? "bad" : ""}`;
  reason.replaceChildren(...now.kind === "lost" ? [serverText(now.reason), now.retries ? "; reconnecting" : ""] : []);
  granted.replaceChildren(showPlainJson(now.kind === "open" ? now.granted : {}));
}

function showChange(method: string, { uri }: Json): void {
  noChanges.hidden = true;
  const time = new Date().toLocaleTimeString();
  const name = typeof uri === "string" && h("code", serverText(uri));
  changes.prepend(h("li", h("span.muted", time), h("span", serverText(method.replace("notifications/", ""))), name));
  if (changes.childElementCount > MAX_CHANGES) changes.lastElementChild?.remove();
  for (const button of watchers.get(String(uri)) ?? []) button.textContent = `Watching · changed at ${time}`;
}
