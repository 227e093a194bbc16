/**
 * The history of calls, from which the user can repeat each call.
 */
import { addToCall } from "./call_light.ts";
import { h, makeButton, serverText } from "./dom.ts";
import { formatMs, type Json, toCompact } from "./json.ts";

/** A call, and the list item that was called. */
export interface Call {
  /** The title of the list that contains the item, such as `Tools`. */
  readonly list: string;
  readonly key: string;
  /** The values that the user entered in the form. */
  readonly given: Json;
}

export interface CallEnd {
  /** The name of the call in the log. */
  readonly call: string;
  /** The state that the history shows, such as `Done`. */
  readonly state: string;
  readonly kind: string;
  readonly ms: number;
}

const MAX_CALLS = 200;
/** Maximum number of characters to show of a call's arguments. */
const MAX_SHOWN = 300;

const list = h("ol.calls", { "aria-label": "Calls" });
const none = h("p.muted", "No calls yet.");
let repeat: (call: Call) => boolean = () => false;

export const historyPanel: HTMLElement = h("div.page", h("h2", "History"), none, list);

/** Sets the function that repeats a call. The function returns `false` if the item is no longer in its list. */
export function onRepeat(callback: (call: Call) => boolean): void {
  repeat = callback;
}

export function recordCall(call: Call, { call: name, state, kind, ms }: CallEnd): void {
  const again = makeButton("button.small", "Again", () => {
    again.disabled = !repeat(call);
    if (again.disabled) again.textContent = "No longer in the list";
  });
  const given = Object.keys(call.given).length ? toCompact(call.given).slice(0, MAX_SHOWN) : "";
  none.hidden = true;
  const item = h(
    "li",
    h("span.muted", new Date().toLocaleTimeString()),
    h("strong", serverText(call.key)),
    h("code.grow", serverText(given)),
    h(`span.state.${kind}`, state),
    h("span.muted", formatMs(ms)),
    again,
  );
  addToCall(item, name);
  list.prepend(item);
  if (list.childElementCount > MAX_CALLS) list.lastElementChild?.remove();
}
