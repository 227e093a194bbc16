/**
 * The name and the version of the library.
 *
 * @module
 */

/**
 * The version in `deno.json`. It is repeated here, because a bundle or a registry may not contain that file. A test
 * compares them.
 */
export const VERSION = "0.1.0";

/** The name of the package in every registry, as in `deno.json`. A test compares them. */
export const NAME = "@x/mcp";
