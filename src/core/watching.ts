/**
 * What clients may watch.
 *
 * @module
 */
import type { Limits } from "./limits.ts";

/** Whether one client may watch all these resources. */
export function isWatchable(uris: readonly string[], { streams: { watchedUris } }: Limits): boolean {
  return uris.length <= watchedUris && uris.join("").length <= watchedUris * 256;
}
