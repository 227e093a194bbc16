/**
 * Options of files and folders.
 */
import type { UseItem } from "../server/engine/layers.ts";
import type { Allow, ResourceEntry } from "../library.ts";
import type { GroupedOptions } from "../server/visibility/feature.ts";

/** Options that {@linkcode folder} and {@linkcode file} have in common. Only `path` is required. */
export interface LocalOptions extends Omit<ResourceEntry, "uri" | "name" | "size"> {
  /**
   * The path, or a `file:` URL. A relative path is resolved against the working directory of the process. The working
   * directory is rarely the folder of the program, because clients can start servers in any folder. Write `new
   * URL("./notes", import.meta.url)` for a path relative to the file that contains this expression.
   */
  readonly path: string | URL;
  /** Maximum bytes of a file that can be read. Defaults to 1,048,576. */
  readonly maxBytes?: number;
  /** Whether to notify clients of changes. Defaults to `true`. */
  readonly watch?: boolean;
  /** Milliseconds for which clients may cache the contents. Defaults to the server's `ttlMs`. */
  readonly ttlMs?: number;
  /** Whether callers may share cached contents. Defaults to `"private"`. */
  readonly cacheScope?: "public" | "private";
  /**
   * Decides whether a caller may see and use the handlers. For other callers, the handlers do not exist. By default,
   * every caller is allowed.
   */
  readonly allow?: Allow;
  /** Scopes that the caller must have, such as `["notes:read"]`. By default, no scopes are required. */
  readonly scopes?: readonly string[];
  /** Labels, such as `admin` for `server.handlers.disable({ tag: "admin" })`. Clients do not see labels. */
  readonly tags?: readonly string[];
  /** Middleware and layers for the handlers. The first middleware is the outermost. */
  readonly use?: readonly UseItem[];
}

/** Options that resources and tools have in common. */
export type CommonOptions = Pick<LocalOptions, "allow" | "scopes" | "tags" | "use">;

/** Options of a resource without its name, its URI and the function that reads it. */
export type ResourceMetadata = Omit<LocalOptions, "path" | "maxBytes" | "watch">;

/** Changes the options of a handler, as a group does for its handlers. */
export type ChangeOptions = <O extends GroupedOptions>(options: O) => O;
