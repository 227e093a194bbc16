/**
 * The name and the version of the library.
 */

/**
 * The version in `deno.json`. The version is repeated here, because a bundle or a package may not contain `deno.json`.
 * A test compares the two versions.
 */
export const VERSION = "0.1.0";

/** The name of the package in every registry, as in `deno.json`. A test compares the two names. */
export const NAME = "@x/mcp";
