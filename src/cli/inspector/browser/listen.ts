/**
 * Keeps a subscription open: to changes of the lists, and to resources that are watched.
 *
 * @see specification/2026-07-28/basic/patterns/subscriptions
 * @module
 */
import type { Json, JsonTools } from "./json.ts";
import type { Wire } from "./wire.ts";

/** How the subscription stands. */
export type ListenState =
  | { readonly kind: "off" }
  | { readonly kind: "opening" }
  | { readonly kind: "open"; readonly granted: Json }
  | { readonly kind: "lost"; readonly reason: string; readonly retries: boolean };

/** The subscription. */
export interface Listener {
  /** Opens it for what the filter says; the one before is closed when this one is open. Without a filter it ends. */
  listen(filter: Json | undefined): void;
}

/** What the subscription is made over, and who is told what happens. */
export interface ListenOptions {
  readonly wire: Wire;
  readonly json: JsonTools;
  readonly onState: (state: ListenState) => void;
  readonly onChange: (method: string, params: Json) => void;
  /** The subscription is there again after it was lost: something may have been missed. */
  readonly onReturn: () => void;
}

/** Makes the subscription. */
export function createListener({ wire, json: { isObject }, onState, onChange, onReturn }: ListenOptions): Listener {
  let current = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let pauseMs = 500;
  let isLost = false;

  function listen(filter: Json | undefined): void {
    clearTimeout(timer);
    const before = current;
    const mine = current = new AbortController();
    if (filter) return void open(filter, mine, () => before.abort());
    before.abort();
    onState({ kind: "off" });
  }

  /** Opens it, and calls `opened` when that is done or has failed. */
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
        pauseMs = 500;
      },
    });
    opened();
    if (mine !== current || outcome.kind === "stopped") return;
    isLost = true;
    const isFinal = outcome.kind === "error" && outcome.code !== undefined && outcome.status !== 503;
    const reason = outcome.kind === "error" ? outcome.message : "The server has closed it";
    onState({ kind: "lost", reason, retries: !isFinal });
    if (isFinal) return;
    timer = setTimeout(() => open(filter, mine), pauseMs);
    pauseMs = Math.min(pauseMs * 2, 8000);
  }

  return { listen };
}
