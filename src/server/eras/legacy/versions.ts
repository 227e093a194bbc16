/**
 * The revisions with a handshake, and the differences between them.
 *
 * @see specification/2025-11-25/changelog
 */

/** The revisions that start with `initialize`, newest first. */
export const VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const;

export type Version = typeof VERSIONS[number];

/** The revision that the server assumes for a request that states no revision. */
export const UNSTATED_VERSION: Version = "2025-03-26";

/** `among` defaults to all revisions with a handshake. */
export function isVersion(value: unknown, among: readonly unknown[] = VERSIONS): value is Version {
  return among.includes(value);
}

/** Whether streams start with an empty event for early reconnects. Older clients fail on an empty event. */
export function hasPriming(version: Version): boolean {
  return version >= "2025-11-25";
}

export function hasBatches(version: Version): boolean {
  return version === "2025-03-26";
}

/**
 * Returns the id of an error response to a message without a readable id. Up to 2025-06-18, this id is `null`, as in
 * JSON-RPC. Later revisions omit the id. Pass `null` for a request that states no revision, and `undefined` if the
 * revision is unknown; the id is then omitted.
 */
export function toNoId(version: string | null | undefined): null | undefined {
  return version === null || version !== undefined && version < "2025-11-25" ? null : undefined;
}
