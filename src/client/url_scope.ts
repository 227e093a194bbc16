/**
 * Compares the paths and queries of URLs. Paths and queries on one host may belong to different parties.
 */

import { isDotSegment } from "../core/kit/dot_segment.ts";

/** Tests whether two URLs have the same origin, path and query. A slash at the end of a path is ignored. */
export function isSameResource(one: URL, other: URL): boolean {
  return isBelow(one, other) && isBelow(other, one) && one.search === other.search;
}

/**
 * Tests whether a URL has the origin and the path of `scope`, or a path below this path. Compares decoded segments. A
 * segment that some servers treat as several segments, such as `..%2fother`, is not below any path.
 */
export function isBelow(url: URL, scope: URL): boolean {
  if (url.origin !== scope.origin) return false;
  if (url.pathname === scope.pathname) return true;
  const [segments, wanted] = [readSegments(url), readSegments(scope)];
  return segments !== undefined && wanted !== undefined && wanted.every((segment, at) => segments[at] === segment);
}

/** Matches a decoded segment that servers may read as several segments, or without its control characters. */
const AMBIGUOUS = /[/\\%\p{Cc}]/u;

/** Returns the decoded segments of a path. Returns `undefined` if servers may read a segment in different ways. */
function readSegments({ pathname }: URL): readonly string[] | undefined {
  try {
    const segments = pathname.replace(/\/$/, "").split("/").map(decodeURIComponent);
    return segments.some((each) => AMBIGUOUS.test(each) || isDotSegment(each)) ? undefined : segments;
  } catch {
    return undefined;
  }
}
