// Helpers for raw HTTP/1.1 messages, for programs that use sockets directly.

/** Tests whether a text contains a complete response. */
export function isWhole(text: string): boolean {
  const at = text.indexOf("\r\n\r\n");
  if (at < 0) return false;
  const length = /content-length: (\d+)/i.exec(text.slice(0, at))?.[1];
  if (length === undefined && /^HTTP\/1\.1 20[24]/.test(text) && !/transfer-encoding/i.test(text)) return true;
  return length === undefined ? text.endsWith("\r\n0\r\n\r\n") : text.length >= at + 4 + Number(length);
}

/** Encodes a request for `/mcp` as bytes. */
export function toBytes(
  method: string,
  port: number,
  headers: Readonly<Record<string, string>>,
  body = "",
): Uint8Array<ArrayBuffer> {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const length = body ? [`content-length: ${new TextEncoder().encode(body).length}`] : [];
  const head = [`${method} /mcp HTTP/1.1`, `host: 127.0.0.1:${port}`, ...lines, ...length];
  return new TextEncoder().encode(`${head.join("\r\n")}\r\n\r\n${body}`);
}
