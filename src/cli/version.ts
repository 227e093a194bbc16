/**
 * The version of the library.
 *
 * @module
 */

/** The version in `deno.json`. A copy, because a bundle or a registry may not contain that file; a test compares them. */
export const VERSION = "0.1.0";
