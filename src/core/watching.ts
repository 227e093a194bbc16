/**
 * What clients may watch, and of which changes they may hear.
 *
 * @module
 */
import type { Call } from "./call.ts";
import type { Change } from "./changes.ts";
import type { Engine } from "./era.ts";
import { isAllowed } from "./feature.ts";
import type { Limits } from "./limits.ts";

/** Whether one client may watch all these resources. */
export function isWatchable(uris: readonly string[], { streams: { watchedUris } }: Limits): boolean {
  return uris.length <= watchedUris && uris.join("").length <= watchedUris * 256;
}

/** Whether a caller may hear of a change: it must be of something that it may see. */
export function mayHear({ core, registry }: Engine, change: Change, call: Call): boolean | Promise<boolean> {
  if (change.kind === "close") return true;
  if (change.kind === "resource") return registry.compiled("resources")?.sees?.(change.uri, call) ?? true;
  const { handlers } = change;
  if (!handlers || handlers.some(({ allow }) => !allow)) return true;
  const seen = handlers.map(({ allow }) => isAllowed(allow, call, core));
  return seen.includes(true) || Promise.all(seen).then((seen) => seen.includes(true));
}

/**
 * Makes a function that sends notifications of changes. While the client has no room, the same text is kept once,
 * however often it comes, so what waits is bounded by what there is to change.
 */
export function createNotifier(send: (text: string) => Promise<void> | undefined): (text: string) => void {
  const late = new Set<string>();
  let isFull = false;

  return function notify(text) {
    if (isFull) return void late.add(text);
    const room = send(text);
    if (!room) return;
    isFull = true;
    room.then(() => {
      isFull = false;
      const texts = [...late];
      late.clear();
      texts.forEach(notify);
    });
  };
}
