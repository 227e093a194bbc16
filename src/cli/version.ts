/**
 * Which version of the library this is.
 *
 * @module
 */

/** The version in `deno.json`; a test holds them together. Not read from there: a bundle or a registry may not carry it. */
export const VERSION = "0.1.0";
