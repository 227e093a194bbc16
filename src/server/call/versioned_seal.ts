/**
 * Seals values for clients or a store, together with the version of the values' format.
 */
import type { Sealer } from "./sealer.ts";

/** Each sealed value contains its version, so that a server with another format version rejects the value. */
export const VERSION = 1;

export async function sealVersioned(sealer: Sealer, purpose: string, value: unknown): Promise<string> {
  return await sealer.seal(purpose, [VERSION, value]);
}

/** Returns `undefined` if the text was changed, comes from another server, or has an unknown version. */
export async function openVersioned(sealer: Sealer, purpose: string, text: string): Promise<unknown> {
  const opened = await sealer.open(purpose, text);
  if (Array.isArray(opened) && opened[0] === VERSION) return opened[1];
}
