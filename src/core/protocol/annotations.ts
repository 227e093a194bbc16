/**
 * Checks the annotations of content and of resources.
 *
 * @see specification/2026-07-28/server/resources (Annotations)
 */
import type { Annotations } from "./types.ts";

const DATE_TIME =
  /^(\d{4})-(\d\d)-(\d\d)T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** The members, each with a test and a remedy for error messages. */
export const ANNOTATIONS: Readonly<
  Record<keyof Annotations, readonly [test: (value: unknown) => boolean, remedy: string]>
> = {
  audience: [
    (value) => Array.isArray(value) && value.every((role) => role === "user" || role === "assistant"),
    'use an array of "user" and "assistant"',
  ],
  priority: [
    (value) => typeof value === "number" && value >= 0 && value <= 1,
    "use a number from 0 to 1",
  ],
  lastModified: [isDateTime, "use an ISO 8601 time with a time zone, such as 2025-01-12T15:00:58Z"],
};

/** Tests whether JSON represents a value as a time of a calendar day, with a time zone. */
function isDateTime(value: unknown): boolean {
  const [, year, month, day] = DATE_TIME.exec(value instanceof Date ? value.toJSON() : String(value)) ?? [];
  const date = new Date(Date.UTC(+year, +month - 1, +day));
  return date.getUTCMonth() === +month - 1 && date.getUTCDate() === +day;
}
