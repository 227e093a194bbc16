/**
 * Recognizes the messages of the modern era, and loads it with the first one.
 *
 * @see specification/2026-07-28/basic/versioning
 * @module
 */
import type { Incoming } from "../../protocol/jsonrpc.ts";
import type { Engine } from "../../core/era.ts";
import type { Link } from "../../core/call/link.ts";
import type { SelectiveEra } from "../choose.ts";
import { LazyEra } from "../lazy.ts";
import { META_VERSION, VERSION } from "./meta_keys.ts";

/** Creates the era of revision 2026-07-28. */
export function modernEra(engine: Engine): SelectiveEra {
  return new LazyModernEra(async () => (await import("./modern.ts")).loadedEra(engine));
}

class LazyModernEra extends LazyEra implements SelectiveEra {
  /** Claims a message if its metadata or headers name this era, or if the method exists only in it. */
  claims(message: Incoming, link: Link): boolean {
    if (message.kind === "request" || message.kind === "notification") {
      const meta = message.params?._meta;
      if (typeof meta === "object" && meta !== null && META_VERSION in meta) return true;
      if (message.method === "server/discover") return true;
    }
    return this.claimsLink(link);
  }

  claimsLink({ version }: Link): boolean {
    return typeof version === "string" && !(/^\d{4}-\d\d-\d\d$/.test(version) && version < VERSION);
  }
}
