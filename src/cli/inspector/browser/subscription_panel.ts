/**
 * The panel of the subscription: what is subscribed to, and the changes received.
 *
 * @module
 */
import type { Dom, Element } from "./dom.ts";
import type { Json, JsonTools } from "./json_tools.ts";
import type { Subscription, SubscriptionState } from "./subscription.ts";
import type { ContentView } from "./content_view.ts";

/** The panel. */
export interface SubscriptionPanel {
  readonly element: Element;
  /** Shows what the server supports, and subscribes to all lists. */
  begin(capabilities: Json): void;
  /** A button that watches a resource. */
  watchButton(uri: string): Element;
  showState(state: SubscriptionState): void;
  onChange(method: string, params: Json): void;
}

/** Dependencies. */
export interface SubscriptionPanelParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly show: ContentView;
  readonly listener: () => Subscription;
}

/** Makes the panel. */
export function createSubscriptionPanel(
  { dom: { h, serverText }, json: { isObject }, show, listener }: SubscriptionPanelParts,
): SubscriptionPanel {
  const lists = ["tools", "prompts", "resources"];
  const most = 200; // changes to show
  const watched = new Set<string>();
  const watchers = new Map<string, Set<Element>>();
  const state = h("span.state", {}, "Off");
  const reason = h("span.muted");
  const boxes = lists.map((name) => {
    const box = h("input", { type: "checkbox", change: listen });
    box.disabled = true;
    return [name, box] as const;
  });
  const uris = h("ul.rows");
  const noUris = h("p.muted", {}, "None. Open a resource to watch it, or enter its URI.");
  const uri = h("input.code", { "aria-label": "URI to watch", placeholder: "URI", spellcheck: "false" });
  const adder = h("button", { type: "submit" }, "Watch");
  const form = h("form.inline", { novalidate: true }, uri, adder);
  const granted = h("div");
  const changes = h("ol.changes", { "aria-label": "Changes" });
  const noChanges = h("p.muted", {}, "No changes yet.");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (uri.value) toggle(uri.value, true);
    uri.value = "";
  });

  function begin(capabilities: Json): void {
    for (const [name, box] of boxes) {
      const capability = capabilities[name];
      box.checked = isObject(capability) && capability.listChanged === true;
      box.disabled = !box.checked;
    }
    form.hidden = !isObject(capabilities.resources) || capabilities.resources.subscribe !== true;
    noUris.textContent = form.hidden ? "This server does not support subscriptions to resources." : noUris.textContent;
    listen();
  }

  function listen(): void {
    const chosen = boxes.filter(([, box]) => box.checked).map(([name]) => [`${name}ListChanged`, true]);
    const filter = {
      ...Object.fromEntries(chosen),
      ...watched.size ? { resourceSubscriptions: [...watched] } : {},
    };
    listener().listen(Object.keys(filter).length ? filter : undefined);
  }

  function toggle(uri: string, isOn: boolean): void {
    if (isOn) watched.add(uri);
    else watched.delete(uri);
    noUris.hidden = watched.size > 0;
    uris.replaceChildren(...[...watched].map((each) => {
      const drop = h("button.quiet.small", { type: "button", click: () => toggle(each, false) }, "Stop watching");
      return h("li", {}, h("code.grow", {}, serverText(each)), drop);
    }));
    for (const button of watchers.get(uri) ?? []) mark(button, isOn);
    listen();
  }

  function watchButton(uri: string): Element {
    const button = h("button", { type: "button", click: () => toggle(uri, !watched.has(uri)) }, "Watch");
    const all = watchers.get(uri) ?? new Set();
    watchers.set(uri, all.add(button));
    mark(button, watched.has(uri));
    return button;
  }

  function mark(button: Element, isOn: boolean): void {
    button.setAttribute("aria-pressed", String(isOn));
    button.textContent = isOn ? "Watching" : "Watch";
  }

  function showState(now: SubscriptionState): void {
    const names = { off: "Off", opening: "Opening", open: "Listening", lost: "Lost" };
    state.textContent = names[now.kind];
    state.className = `state ${now.kind === "open" ? "good" : now.kind === "lost" ? "bad" : ""}`;
    reason.replaceChildren(...now.kind === "lost" ? [serverText(now.reason), now.retries ? "; reconnecting" : ""] : []);
    granted.replaceChildren(show.plainJson(now.kind === "open" ? now.granted : {}));
  }

  function onChange(method: string, params: Json): void {
    noChanges.hidden = true;
    const time = new Date().toLocaleTimeString();
    const about = typeof params.uri === "string" ? h("code", {}, serverText(params.uri)) : undefined;
    const row = h(
      "li",
      {},
      h("span.muted", {}, time),
      h("span", {}, serverText(method.replace("notifications/", ""))),
      about,
    );
    changes.replaceChildren(row, ...[...changes.querySelectorAll("li")].slice(0, most - 1));
    if (typeof params.uri === "string") {
      for (const button of watchers.get(params.uri) ?? []) button.textContent = `Watching · changed at ${time}`;
    }
  }

  const element = h(
    "div.page",
    {},
    h("h2", {}, "Subscription"),
    h("p.line", {}, state, reason),
    h(
      "fieldset.field",
      {},
      h("legend", {}, "List changes"),
      h("div.boxes", {}, ...boxes.map(([name, box]) => h("label", {}, box, name))),
    ),
    h("h3", {}, "Resources"),
    noUris,
    uris,
    form,
    h("h3", {}, "Accepted by the server"),
    granted,
    h("h3", {}, "Changes"),
    noChanges,
    changes,
  );
  return { element, begin, watchButton, showState, onChange };
}
