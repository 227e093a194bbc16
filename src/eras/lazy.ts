/**
 * Loads an era when the first client needs it.
 *
 * @module
 */
import type { Era } from "../core/era.ts";

/** An era that is loaded with its first message. What arrives while it is loading is served in order. */
export function lazyEra(load: () => Promise<Era>): Era {
  let loaded: Era | undefined;
  let loading: Promise<Era> | undefined;
  const open = () =>
    loading ??= load().then((era) => {
      loaded = era;
      return era;
    });
  return {
    accept: (message, link) => loaded ? loaded.accept(message, link) : open().then((era) => era.accept(message, link)),
    attach: (link) => open().then((era) => era.attach?.(link) ?? {}),
    detach: (link) => open().then((era) => era.detach?.(link) ?? {}),
  };
}
