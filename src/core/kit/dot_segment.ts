/**
 * Tests whether a server may read a decoded segment of a path as `.` or `..`. Some servers ignore white space and
 * control characters, or everything after a NUL character, a semicolon or a comma, and some convert characters such as
 * the full-width full stop to ASCII.
 */
export function isDotSegment(segment: string): boolean {
  const [start] = segment.split("\0", 1);
  return [start, segment].some((text) => /^\.{1,2}([;,]|$)/.test(text.normalize("NFKC").replace(/[\s\p{C}]/gu, "")));
}

/** Tests whether a server may find a dot segment in the path of a URL, also in one that ends at an encoded slash. */
export function hasDotSegment(path: string): boolean {
  const decoded = path.replace(
    /(%[\da-f]{2})+/gi,
    (bytes) => new TextDecoder().decode(Uint8Array.from(bytes.slice(1).split("%"), (byte) => parseInt(byte, 16))),
  );
  return decoded.normalize("NFKC").split(/[/\\]/).some(isDotSegment);
}
