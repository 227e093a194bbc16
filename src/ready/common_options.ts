/**
 * Options that the resources and the tools of one folder have in common.
 *
 * @module
 */
import type { Allow, Middleware, ResourceEntry } from "../library.ts";
import type { GroupedOptions } from "../core/visibility/feature.ts";

/** Options that decide who may use handlers, and what runs around them. */
export interface CommonOptions {
  /** Decides whether a caller may see and use all of it. For other callers it does not exist. */
  readonly allow?: Allow;
  /** Scopes that the caller must have, such as `["notes:read"]`. Defaults to none. */
  readonly scopes?: readonly string[];
  /** Labels for `server.handlers.disable({ tag: "admin" })` and such. Clients do not see them. */
  readonly tags?: readonly string[];
  /** Middleware. The first one is the outermost. */
  readonly use?: readonly Middleware[];
}

/** Options that describe resources to clients, beside the name and the URI. */
export interface ResourceDescription extends Omit<ResourceEntry, "uri" | "name" | "size"> {
  /** Milliseconds for which clients may cache the contents. Defaults to the server's `ttlMs`. */
  readonly ttlMs?: number;
  /** Whether callers may share cached contents. Defaults to `"private"`. */
  readonly cacheScope?: "public" | "private";
}

/** Changes the options of a handler, as a group does. */
export type ChangeOptions = <O extends GroupedOptions>(options: O) => O;
