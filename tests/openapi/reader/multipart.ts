// Takes a multipart body apart.

export interface Part {
  readonly headers: ReadonlyMap<string, string>;
  readonly name?: string;
  readonly fileName?: string;
  /** Lower-case media type without parameters. Parts without one are `text/plain` (RFC 7578, section 4.4). */
  readonly type: string;
  readonly body: Uint8Array<ArrayBuffer>;
}

const LINE_END = [13, 10];

function indexOfBytes(bytes: Uint8Array, wanted: readonly number[], start: number): number {
  for (let at = start; at + wanted.length <= bytes.length; at++) {
    if (wanted.every((byte, offset) => bytes[at + offset] === byte)) return at;
  }
  return -1;
}

export function headerParameter(header: string, name: string): string | undefined {
  const match = new RegExp(`;\\s*${name}\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|([^;\\s]+))`, "i").exec(header);
  if (match === null) return undefined;
  const quoted = match[1];
  if (quoted === undefined) return match[2];
  return quoted.replace(/\\(["\\])/g, "$1");
}

/** Browsers write quotes and line ends of names as `%22`, `%0D` and `%0A`. */
function unescapeName(text: string): string {
  return text.replace(/%(22|0D|0A)/gi, (triple) => String.fromCharCode(parseInt(triple.slice(1), 16)));
}

function extendedParameter(header: string, name: string): string | undefined {
  const match = new RegExp(`;\\s*${name}\\*\\s*=\\s*utf-8'[^']*'([^;\\s]+)`, "i").exec(header);
  try {
    return match?.[1] === undefined ? undefined : decodeURIComponent(match[1]);
  } catch {
    return undefined;
  }
}

/** Returns the parts, or a sentence that says what is wrong with the body. */
export function readMultipart(body: Uint8Array<ArrayBuffer>, contentType: string): readonly Part[] | string {
  const boundary = headerParameter(contentType, "boundary");
  if (boundary === undefined || boundary === "") return "The multipart content type has no boundary.";
  const mark = [...new TextEncoder().encode(`--${boundary}`)];
  const parts: Part[] = [];
  let at = mark.every((byte, offset) => body[offset] === byte) ? 0 : indexOfBytes(body, [...LINE_END, ...mark], 0);
  if (at < 0) return "The multipart body has no part with its boundary.";
  if (at > 0) at += 2;
  while (true) {
    at += mark.length;
    if (body[at] === 45 && body[at + 1] === 45) return parts;
    const start = indexOfBytes(body, LINE_END, at);
    const end = start < 0 ? -1 : indexOfBytes(body, [...LINE_END, ...mark], start);
    if (end < 0) return "The multipart body does not end with its closing boundary.";
    // A part without headers starts with an empty line.
    const isBare = body[start + 2] === 13 && body[start + 3] === 10;
    const headEnd = isBare ? start : indexOfBytes(body, [...LINE_END, ...LINE_END], start);
    if (headEnd < 0 || headEnd > end) return "A part of the multipart body has no end of headers.";
    const head = new TextDecoder().decode(body.slice(start + 2, Math.max(headEnd, start + 2)));
    const bodyStart = headEnd + 4;
    parts.push(readPart(head, bodyStart > end ? new Uint8Array() : body.slice(bodyStart, end)));
    at = end + 2;
  }
}

function readPart(head: string, body: Uint8Array<ArrayBuffer>): Part {
  const headers = new Map<string, string>();
  for (const line of head.split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) headers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
  }
  const disposition = headers.get("content-disposition") ?? "";
  const name = headerParameter(disposition, "name");
  const fileName = extendedParameter(disposition, "filename") ?? headerParameter(disposition, "filename");
  const type = (headers.get("content-type") ?? "text/plain").split(";")[0] ?? "";
  return {
    headers,
    ...name === undefined ? {} : { name: unescapeName(name) },
    ...fileName === undefined ? {} : { fileName: unescapeName(fileName) },
    type: type.trim().toLowerCase(),
    body,
  };
}

export interface FileValue {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly name?: string;
  readonly type?: string;
  /** The base64 text without the `data:` prefix, if there is one. */
  readonly base64?: string;
}

/** The bytes of a file argument: base64, or a `data:` URL with an optional `;name=`. */
export function decodeFile(text: string): FileValue | undefined {
  const match = /^data:([^,]*),(.*)$/s.exec(text);
  if (match === null) {
    const bytes = decodeBase64(text);
    return bytes === undefined ? undefined : { bytes, base64: text };
  }
  const [type = "", ...parameters] = (match[1] ?? "").split(";").map((part) => part.trim());
  const data = match[2] ?? "";
  const isBase64 = parameters.at(-1)?.toLowerCase() === "base64";
  const bytes = isBase64 ? decodeBase64(decodeText(data)) : new TextEncoder().encode(decodeText(data));
  if (bytes === undefined) return undefined;
  const name = parameters.find((part) => part.toLowerCase().startsWith("name="))?.slice(5);
  return {
    bytes,
    ...name === undefined ? {} : { name: decodeText(name) },
    ...type === "" ? {} : { type: type.toLowerCase() },
    ...isBase64 ? { base64: data } : {},
  };
}

function decodeText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  const plain = text.replace(/\s+/g, "").replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, "");
  if (!/^[A-Za-z0-9+/]*$/.test(plain) || plain.length % 4 === 1) return undefined;
  return Uint8Array.from(atob(plain), (char) => char.charCodeAt(0));
}

export function isSameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}
