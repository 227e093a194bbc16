/**
 * The protocol revisions that clients and servers speak.
 *
 * @module
 */
import type { Revision } from "../library.ts";

/** The revision without handshakes. */
export const MODERN = "2026-07-28" satisfies Revision;

/** The revisions with a handshake, newest first. The last one has a transport of its own too. */
export const LEGACY: readonly string[] = [
  "2025-11-25",
  "2025-06-18",
  "2025-03-26",
  "2024-11-05",
] satisfies readonly Revision[];

/** All revisions, newest first. */
export const REVISIONS: readonly string[] = [MODERN, ...LEGACY];
