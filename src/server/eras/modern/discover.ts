/**
 * The method `server/discover`, which describes the server.
 *
 * @see specification/2026-07-28/server/discover
 */
import { toInstructions } from "../../engine/added_instructions.ts";
import { toAnnounced } from "../../engine/announced.ts";
import type { Engine } from "../../engine/era.ts";
import { type Method, toMethod } from "../../visibility/feature.ts";
import { META_SERVER, VERSION } from "./meta_keys.ts";

export function discover({ core, registry }: Engine): Method {
  return toMethod({
    cache: { ttlMs: 0, scope: "public" },
    run: ({ link }) => ({
      supportedVersions: [VERSION],
      capabilities: toAnnounced(core, link, registry.capabilities),
      instructions: toInstructions(core),
      _meta: { [META_SERVER]: core.identity },
    }),
  });
}
