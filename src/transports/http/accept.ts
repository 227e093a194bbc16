/**
 * The types that a client sends and takes.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http
 * @module
 */

/** Which answers a client takes. */
export interface Accepts {
  readonly json: boolean;
  readonly stream: boolean;
}

/** Whether a body is announced as JSON in UTF-8. Other types can be sent by any web page without asking first. */
export function isJsonType(type: string | null): boolean {
  if (type === "application/json") return true;
  const [name = "", ...parameters] = (type ?? "").toLowerCase().split(";").map((part) => part.trim());
  // A comma joins several header lines to one: then nobody knows which of the types the sender meant.
  return name === "application/json" &&
    parameters.every((part) => part.startsWith("charset=") ? /^charset="?utf-8"?$/.test(part) : !part.includes(","));
}

/** Which answers a client takes, by its Accept header. Without one, or with `*` + `/*`, it takes both. */
export function readAccept(accept: string | null): Accepts {
  if (!accept?.trim()) return { json: true, stream: true };
  const ranges = new Map(
    accept.toLowerCase().split(",").map((part) => {
      const [range, ...parameters] = part.split(";").map((piece) => piece.trim());
      return [range, !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))];
    }),
  );
  // The narrowest range that was named decides.
  const takes = (...names: string[]) => !!names.map((name) => ranges.get(name)).find((wanted) => wanted !== undefined);
  return {
    json: takes("application/json", "application/*", "*/*"),
    stream: takes("text/event-stream", "text/*", "*/*"),
  };
}
