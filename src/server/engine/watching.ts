/**
 * Functions that all eras use for subscriptions: limits, permissions and backpressure.
 */
import type { Call } from "../call/call.ts";
import type { Change, Toggled } from "../visibility/changes.ts";
import type { Engine } from "./era.ts";
import { isAllowed } from "../visibility/feature.ts";
import type { Bounds } from "../capacity/limits.ts";
import { Subscribers } from "../visibility/subscribers.ts";

/** Tests whether the number and the lengths of the URIs are within the limits for one subscription. */
export function isWatchable(uris: readonly string[], { streams: { watchedUris } }: Bounds): boolean {
  return uris.length <= watchedUris && uris.join("").length <= watchedUris * 256;
}

/** The caller must be allowed to see the changed handler or resource. */
export function mayNotify(engine: Engine, change: Change, call: Call): boolean | Promise<boolean> {
  const { core, registry } = engine;
  if (change.kind === "close" || change.kind === "log") return true;
  if (change.kind === "resource") return registry.compiled("resources")?.isVisible?.(change.uri, call) ?? true;
  const { handlers, toggled } = change;
  if (!handlers || handlers.some(({ allow }) => !allow)) return true;
  const seen = handlers.map(({ allow }) => isAllowed(allow, call, core));
  // Do not notify a caller for whom nothing has changed, because the notification would reveal changes for other
  // callers.
  const differs = async ([before, after]: Toggled) =>
    await isAllowed(before, call, core) !== await isAllowed(after, call, core);
  const flipped = Array.from(toggled?.values() ?? [], differs);
  return seen.includes(true) || Promise.all([...seen, ...flipped]).then((seen) => seen.includes(true));
}

/**
 * Counts a subscriber to a URI, if the caller may see the resource, so that the provider's hooks are called. Returns a
 * function that ends the subscription. The function may be called more than once.
 */
export function countSubscriber(engine: Engine, uri: string, call: Call): () => void {
  const { core, host, registry, scheduler } = engine;
  const resources = registry.compiled("resources");
  const hooks = resources?.hooksOf?.(uri);
  if (!hooks || !scheduler.isOpen) return () => {};
  // Each endpoint has its own counts.
  const all = core.state.slot(engine, () => new Subscribers(core, host.server));
  let isOver = false;
  let remove: (() => void) | undefined;
  const add = (seen: boolean) => {
    if (seen && !isOver) remove = all.add(uri, hooks);
  };
  const seen = resources?.isVisible?.(uri, call) ?? true;
  if (typeof seen === "boolean") add(seen);
  else seen.then(add);
  return () => {
    isOver = true;
    remove?.();
    remove = undefined;
  };
}

/**
 * Creates a function that sends change notifications. While the client reads too slowly, only the newest notification
 * per key waits, so the queue has at most one notification per key. The key defaults to the text.
 */
export function createNotifier(
  send: (text: string) => Promise<void> | undefined,
): (text: string, key?: string) => void {
  const late = new Map<string, string>();
  let isFull = false;

  return function notify(text, key = text) {
    if (isFull) return void late.set(key, text);
    const room = send(text);
    if (!room) return;
    isFull = true;
    room.then(() => {
      isFull = false;
      const texts = [...late];
      late.clear();
      for (const [key, text] of texts) notify(text, key);
    });
  };
}
