/**
 * Reads the Content-Type and Accept headers.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http
 */

export interface Accepts {
  readonly json: boolean;
  readonly stream: boolean;
}

/** Requiring JSON protects against web pages, which can send other common types without a CORS preflight. */
export function isJsonType(type: string | null): boolean {
  if (type === "application/json") return true;
  const [name = "", ...parameters] = (type ?? "").toLowerCase().split(";").map((part) => part.trim());
  // Reject a comma, because a comma means that several headers were joined, and that the type is ambiguous.
  return name === "application/json" &&
    parameters.every((part) => part.startsWith("charset=") ? /^charset="?utf-8"?$/.test(part) : !part.includes(","));
}

/** Without the header, or with `*` + `/*`, the client accepts JSON and streams. */
export function readAccept(accept: string | null): Accepts {
  if (!accept?.trim()) return { json: true, stream: true };
  const ranges = new Map<string, boolean>();
  for (const part of accept.toLowerCase().split(",")) {
    const [range, ...parameters] = part.split(";").map((piece) => piece.trim());
    if (RANGES.has(range)) ranges.set(range, !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter)));
  }
  // The most specific media range takes precedence.
  const takes = (...names: string[]) => !!names.map((name) => ranges.get(name)).find((wanted) => wanted !== undefined);
  return {
    json: takes("application/json", "application/*", "*/*"),
    stream: takes("text/event-stream", "text/*", "*/*"),
  };
}

/** The relevant media ranges. Other ranges are not stored, because a header can contain a hundred thousand ranges. */
const RANGES: ReadonlySet<string> = new Set([
  "application/json",
  "text/event-stream",
  "application/*",
  "text/*",
  "*/*",
]);
