/**
 * Recognizes the messages of the modern era. Not needed in a server that has no other era.
 *
 * @see specification/2026-07-28/basic/versioning (Backward Compatibility)
 * @module
 */
import type { Incoming } from "../../protocol/jsonrpc.ts";
import type { Link } from "../../core/link.ts";
import { META_VERSION, VERSION } from "./meta_keys.ts";

/** Claims a message if its metadata or headers name this era, or if the method exists only in it. */
export function claims(message: Incoming, link: Link): boolean {
  if (message.kind === "request") {
    const meta = message.params?._meta;
    if (typeof meta === "object" && meta !== null && META_VERSION in meta) return true;
    if (message.method === "server/discover") return true;
  }
  return claimsLink(link);
}

/** Claims a request without a message if its headers name this era. */
export function claimsLink({ version }: Link): boolean {
  return typeof version === "string" && !(/^\d{4}-\d\d-\d\d$/.test(version) && version < VERSION);
}
