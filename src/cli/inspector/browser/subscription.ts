/**
 * Keeps a subscription to changes of lists and watched resources open.
 *
 * @see specification/2026-07-28/basic/patterns/subscriptions
 * @module
 */
import type { Json, JsonTools } from "./json_tools.ts";
import type { RpcClient } from "./rpc_client.ts";

/** The state of the subscription. */
export type SubscriptionState =
  | { readonly kind: "off" }
  | { readonly kind: "opening" }
  | { readonly kind: "open"; readonly granted: Json }
  | { readonly kind: "lost"; readonly reason: string; readonly retries: boolean };

/** The subscription. */
export interface Subscription {
  /** Opens a subscription, and closes the previous one after that. Without a filter, only closes it. */
  listen(filter: Json | undefined): void;
}

/** Dependencies. */
export interface SubscriptionOptions {
  readonly wire: RpcClient;
  readonly json: JsonTools;
  readonly onState: (state: SubscriptionState) => void;
  readonly onChange: (method: string, params: Json) => void;
  /** Called after a lost subscription was reopened, because changes may have been missed. */
  readonly onReturn: () => void;
}

/** Creates the subscription. */
export function createSubscription(
  { wire, json: { isObject }, onState, onChange, onReturn }: SubscriptionOptions,
): Subscription {
  let current = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let delayMs = 500;
  let isLost = false;

  function listen(filter: Json | undefined): void {
    clearTimeout(timer);
    const before = current;
    const mine = current = new AbortController();
    if (filter) return void open(filter, mine, () => before.abort());
    before.abort();
    onState({ kind: "off" });
  }

  /** Opens the subscription, and calls `opened` after success or failure. */
  async function open(filter: Json, mine: AbortController, opened = () => {}): Promise<void> {
    if (!isLost) onState({ kind: "opening" });
    const outcome = await wire.send("subscriptions/listen", { notifications: filter }, {
      signal: mine.signal,
      onNotification(method, params) {
        if (method !== "notifications/subscriptions/acknowledged") return onChange(method, params);
        opened();
        if (mine !== current) return;
        const { notifications } = params;
        onState({ kind: "open", granted: isObject(notifications) ? notifications : {} });
        if (isLost) onReturn();
        isLost = false;
        delayMs = 500;
      },
    });
    opened();
    if (mine !== current || outcome.kind === "stopped") return;
    isLost = true;
    const isFinal = outcome.kind === "error" && outcome.code !== undefined && outcome.status !== 503;
    const reason = outcome.kind === "error" ? outcome.message : "The server closed the subscription";
    onState({ kind: "lost", reason, retries: !isFinal });
    if (isFinal) return;
    timer = setTimeout(() => open(filter, mine), delayMs);
    delayMs = Math.min(delayMs * 2, 8000);
  }

  return { listen };
}
