/**
 * The revisions that begin with a handshake, and what came with which.
 *
 * @see specification/2025-11-25/changelog
 * @module
 */

/** Newest first: the first is offered to a client that asks for one we do not know. */
export const VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const;

/** One of the revisions. */
export type Version = typeof VERSIONS[number];

const known: readonly unknown[] = VERSIONS;

/** The revision of a client that states none. */
export const UNSTATED_VERSION: Version = "2025-03-26";

/** Whether a text names one of the revisions. */
export function isVersion(value: unknown): value is Version {
  return known.includes(value);
}

/** Streams open with an event that primes the client to come back (its data is empty; older clients choke on that). */
export function hasPriming(version: Version): boolean {
  return version >= "2025-11-25";
}

/** Several messages may come in one array. */
export function hasBatches(version: Version): boolean {
  return version === "2025-03-26";
}

/**
 * The id of an error about what has no id that could be read: `null`, as JSON-RPC has it, up to 2025-06-18; since then
 * it is left out, and so it is where the revision is not known. `null` is the revision of a request that states none.
 */
export function toNoId(version: string | null | undefined): null | undefined {
  return version === null || version !== undefined && version < "2025-11-25" ? null : undefined;
}
