/**
 * Writes bodies of the type `multipart/form-data`. `FormData` cannot set the type of a text.
 *
 * @see RFC 7578
 */
import { fromBase64 } from "../../core/kit/base64.ts";
import { decodePercent } from "../../core/kit/url_text.ts";
import { ToolError } from "../../library.ts";

export interface SentFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly type?: string;
  readonly name?: string;
}

export interface Part {
  readonly name: string;
  readonly type?: string;
  readonly content: string | SentFile;
}

/** The description of an argument with a file. */
export const FILE_HINT = "A file, as base64 or as a data URL such as data:image/png;name=a.png;base64,…";

/**
 * Reads a file from base64, or from a data URL, which may contain the media type and the name of the file.
 *
 * @throws {ToolError} if the text is neither, or the media type is invalid.
 */
export function readFile(value: unknown, argument: string): SentFile {
  const text = String(value);
  const [, type, parameters = "", encoded = text] = /^data:([^;,]*)((?:;[^;,]*)*),(.*)$/s.exec(text) ?? [];
  if (type && !/^[\w.+-]+\/[\w.+-]+$/.test(type)) {
    throw new ToolError(
      `Cannot send the request: ${argument} has an invalid media type; use a type such as image/png`,
    );
  }
  const isText = type !== undefined && !/;base64$/i.test(parameters);
  const bytes = isText ? decodeText(encoded) : fromBase64(encoded.replace(/\s/g, ""));
  if (!bytes) {
    throw new ToolError(`Cannot send the request: ${argument} is not base64; encode the bytes of the file`);
  }
  const [, name] = /;name=([^;]*)/i.exec(parameters) ?? [];
  return { bytes, type: type || undefined, name: name && (decodePercent(name) ?? name) };
}

function decodeText(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(decodePercent(text) ?? text);
}

export function writeMultipart(parts: readonly Part[]): { readonly body: Blob; readonly contentType: string } {
  const boundary = `form-${crypto.randomUUID()}`;
  const chunks = parts.flatMap(({ name, type, content }): readonly BlobPart[] => {
    const isText = typeof content === "string";
    const contentType = type ?? (isText ? undefined : content.type ?? "application/octet-stream");
    const lines = [
      `--${boundary}`,
      `content-disposition: form-data; name=${quote(name)}` +
      (isText ? "" : `; filename=${quote(content.name ?? name)}`),
      ...contentType ? [`content-type: ${contentType.replace(/[\r\n]/g, " ")}`] : [],
    ];
    return [`${lines.join("\r\n")}\r\n\r\n`, isText ? content : content.bytes, "\r\n"];
  });
  return {
    body: new Blob([...chunks, `--${boundary}--\r\n`]),
    contentType: `multipart/form-data; boundary=${boundary}`,
  };
}

/** Quotes a name as browsers do, so that a name cannot add a header. */
function quote(name: string): string {
  return `"${name.replaceAll("\r", "%0D").replaceAll("\n", "%0A").replaceAll('"', "%22")}"`;
}
