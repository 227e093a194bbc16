/**
 * `server/discover`: what this server is and can do.
 *
 * @see specification/2026-07-28/server/discover
 * @module
 */
import type { Core } from "../../core/core.ts";
import { type Method, toMethod } from "../../core/feature.ts";
import { VERSION } from "./meta_keys.ts";

/** The method. */
export function discover(core: Core): Method {
  return toMethod((call) => {
    call.cache = { ttlMs: 0, scope: "public" };
    return {
      supportedVersions: [VERSION],
      capabilities: { ...core.registry.capabilities, logging: {} },
      instructions: core.instructions,
    };
  });
}
