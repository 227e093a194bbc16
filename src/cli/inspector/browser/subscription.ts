/**
 * Keeps a subscription open, so that the page is notified of changes to lists and watched resources.
 *
 * @see specification/2026-07-28/basic/patterns/subscriptions
 */
import { type Json, toObject } from "./json.ts";
import { send } from "./rpc_client.ts";

export type SubscriptionState =
  | { readonly kind: "off" }
  | { readonly kind: "opening" }
  | { readonly kind: "open"; readonly granted: Json }
  | { readonly kind: "lost"; readonly reason: string; readonly retries: boolean };

export interface SubscriptionEvents {
  readonly onState: (state: SubscriptionState) => void;
  readonly onChange: (method: string, params: Json) => void;
  /** Called after a lost subscription was opened again, because changes may have been missed in the meantime. */
  readonly onReturn: () => void;
}

const MIN_DELAY_MS = 500;
const MAX_DELAY_MS = 8000;

/** A subscription. It is closed until `listen` is called. */
export class Subscription {
  readonly #events: SubscriptionEvents;
  #current = new AbortController();
  #timer: number | undefined;
  #delayMs = MIN_DELAY_MS;
  #isLost = false;

  constructor(events: SubscriptionEvents) {
    this.#events = events;
  }

  /**
   * Opens a subscription with `filter`, and then closes the previous subscription. If `filter` is `undefined`, only
   * closes the previous subscription.
   */
  listen(filter: Json | undefined): void {
    clearTimeout(this.#timer);
    const before = this.#current;
    const mine = this.#current = new AbortController();
    if (filter) return void this.#open(filter, mine, () => before.abort());
    before.abort();
    this.#events.onState({ kind: "off" });
  }

  /** Opens the subscription. Calls `opened` when opening has succeeded or failed. */
  async #open(filter: Json, mine: AbortController, opened = () => {}): Promise<void> {
    const { onState, onChange, onReturn } = this.#events;
    if (!this.#isLost) onState({ kind: "opening" });
    const outcome = await send("subscriptions/listen", { notifications: filter }, {
      signal: mine.signal,
      onNotification: (method, params) => {
        if (method !== "notifications/subscriptions/acknowledged") return onChange(method, params);
        opened();
        if (mine !== this.#current) return;
        onState({ kind: "open", granted: toObject(params.notifications) });
        if (this.#isLost) onReturn();
        this.#isLost = false;
        this.#delayMs = MIN_DELAY_MS;
      },
    });
    opened();
    if (mine !== this.#current || outcome.kind === "stopped") return;
    this.#isLost = true;
    const retries = outcome.kind !== "error" || outcome.code === undefined || outcome.status === 503;
    const reason = outcome.kind === "error" ? outcome.message : "The server closed the subscription";
    onState({ kind: "lost", reason, retries });
    if (!retries) return;
    this.#timer = setTimeout(() => this.#open(filter, mine), this.#delayMs);
    this.#delayMs = Math.min(this.#delayMs * 2, MAX_DELAY_MS);
  }
}
