/**
 * The protocol revisions, and the selection of the revisions that a server serves.
 *
 * @see specification/2026-07-28/basic/versioning
 */
import { quote } from "../../core/protocol/errors.ts";
import { VERSION } from "./modern/meta_keys.ts";

/** A protocol revision that this library supports. */
export type Revision = "2026-07-28" | "2025-11-25" | "2025-06-18" | "2025-03-26" | "2024-11-05";

/** All supported protocol revisions, newest first. */
export const REVISIONS: readonly Revision[] = [VERSION, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/** Returns the revisions to serve, newest first. Throws if the list is empty or contains an unknown revision. */
export function readRevisions(given: readonly Revision[] = REVISIONS): readonly Revision[] {
  const refuse = (state: string) =>
    new TypeError(`Cannot create a server: revisions ${state}; list some of ${REVISIONS.join(", ")}`);
  if (!Array.isArray(given)) throw refuse("is not a list");
  const unknown: unknown = given.find((each) => !REVISIONS.includes(each));
  if (unknown !== undefined) throw refuse(`has ${quote(String(unknown))}, which is not a revision`);
  if (!given.length) throw refuse("is empty");
  return REVISIONS.filter((each) => given.includes(each));
}
