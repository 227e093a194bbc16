/**
 * Leads to the encoding of values that JSON cannot represent, which most servers never need.
 *
 * @module
 */

/** Loads the encoding of values. */
export const loadValues = (): Promise<typeof import("./encoded_results.ts")> => import("./encoded_results.ts");
