/**
 * Functions that all eras use for subscriptions: limits, permissions and backpressure.
 */
import type { Call } from "../call/call.ts";
import type { ChangeNotifier } from "../call/context.ts";
import { type Change, checkUri, type Toggled } from "../visibility/changes.ts";
import type { Engine } from "./era.ts";
import { isAllowed } from "../visibility/feature.ts";
import type { Bounds } from "../capacity/limits.ts";
import { type Serving, Subscribers } from "../visibility/subscribers.ts";

/** Tests whether the number and the lengths of the URIs are within the limits for one subscription. */
export function isWatchable(uris: readonly string[], { streams: { watchedUris } }: Bounds): boolean {
  return uris.length <= watchedUris && uris.join("").length <= watchedUris * 256;
}

/** The caller must be allowed to see the changed handler or resource. */
export function mayNotify(engine: Engine, change: Change, call: Call): boolean | Promise<boolean> {
  const { core, registry } = engine;
  if (change.kind === "close" || change.kind === "log") return true;
  if (change.kind === "resource") {
    const { uri, owner: from, to } = change;
    const serving = registry.compiled("resources")?.servedTo?.(uri, call) ?? [{}];
    const isOwned = (serving: readonly Serving[]) => serving.some(({ owner }) => from === undefined || owner === from);
    const isSeen = serving instanceof Promise ? serving.then(isOwned, () => false) : isOwned(serving);
    if (!to) return isSeen;
    const selected = [...to].map((allow) => isAllowed(allow, call, core));
    return Promise.all([isSeen, ...selected]).then(([isSeen, ...selected]) => isSeen && selected.includes(true));
  }
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
 * Counts a subscriber to a URI, if the caller may see the resource, so that the provider's hooks are called. Counts again
 * after changes of the list of resources, because another provider may serve the URI then. Returns a function that ends
 * the subscription. The function may be called more than once.
 */
export function countSubscriber(engine: Engine, uri: string, call: Call): () => void {
  const { changes, core, registry, scheduler } = engine;
  if (!scheduler.isOpen) return () => {};
  // Read the account now, because the address of the client is unknown after the client has disconnected.
  const { account } = call.link;
  const toServer = (owner: string | undefined) => toNotifier(engine, owner);
  // Each endpoint has its own counts.
  const all = core.state.slot(engine, () => new Subscribers(core, toServer, changes));
  return all.watch(uri, { account, limits: core.limits }, () => {
    const resources = registry.compiled("resources");
    return resources?.hasHooks ? resources.servedTo?.(uri, call) ?? [] : [];
  });
}

/**
 * Returns the functions with which a part of the server announces changes. `owner` is the key of a provider without a
 * scheme, whose changes of resources count only for callers for whom the provider serves the resource.
 */
export function toNotifier({ changes, host: { server } }: Engine, owner: string | undefined): ChangeNotifier {
  if (owner === undefined) return server;
  return {
    listChanged: server.listChanged,
    resourceUpdated(uri, { to } = {}) {
      checkUri(uri);
      changes.emit({ kind: "resource", uri, owner, ...to && { to: new Set([to]) } });
    },
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
