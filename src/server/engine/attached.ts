/**
 * Private values that parts of a server attach to principals.
 */
import { isObject } from "../../core/protocol/jsonrpc.ts";
import type { Principal } from "../call/context.ts";
import type { Sealer } from "../call/sealer.ts";

/** The attached values, by the purpose of the part. They are not members of a principal, because handlers see those. */
const attached = new WeakMap<Principal, Readonly<Record<string, unknown>>>();

const PURPOSE = "attached";

/** Attaches a value of a part to a principal. Replaces an earlier value of the same part. */
export function attachValue(principal: Principal, part: string, value: unknown): void {
  attached.set(principal, { ...attached.get(principal), [part]: value });
}

export function readAttached(principal: Principal | undefined, part: string): unknown {
  return principal && attached.get(principal)?.[part];
}

/** Attaches the values of `from` to `to`, a copy of the principal. */
export function shareAttached(from: Principal, to: Principal): void {
  const values = attached.get(from);
  if (values) attached.set(to, values);
}

/** Seals all values that are attached to a principal. Resolves to `undefined` if there are none. */
export async function sealAttached(sealer: Sealer, principal: Principal | undefined): Promise<string | undefined> {
  const values = principal && attached.get(principal);
  return values && await sealer.seal(PURPOSE, [principal.id, values]);
}

/** Attaches what `sealAttached` sealed. Resolves to `false` if the text was changed or sealed for another principal. */
export async function openAttached(sealer: Sealer, principal: Principal | undefined, text: string): Promise<boolean> {
  const opened = await sealer.open(PURPOSE, text);
  const [id, values]: readonly unknown[] = Array.isArray(opened) ? opened : [];
  if (!principal || id !== principal.id || !isObject(values)) return false;
  attached.set(principal, values);
  return true;
}
