/**
 * Seals values that clients carry or a store contains, together with the version of their format.
 *
 * @module
 */
import type { Sealer } from "./sealer.ts";

/**
 * The current version. It is sealed in front of the value, so that other versions can be recognized when a value is
 * opened.
 */
export const VERSION = 1;

/** Seals a JSON value in the current version. */
export async function sealVersioned(sealer: Sealer, purpose: string, value: unknown): Promise<string> {
  return await sealer.seal(purpose, [VERSION, value]);
}

/**
 * Opens a sealed value. Returns `undefined` if the text was changed, comes from another server, or has an unknown
 * version.
 */
export async function openVersioned(sealer: Sealer, purpose: string, text: string): Promise<unknown> {
  const opened = await sealer.open(purpose, text);
  if (Array.isArray(opened) && opened[0] === VERSION) return opened[1];
}
