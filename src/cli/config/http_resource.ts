/**
 * Resources that serve the response to an HTTP request.
 *
 * @module
 */
import { type Context, type Handler, resource, ToolError } from "../../library.ts";
import { toBase64 } from "../../kit/base64.ts";
import type { ResourceMetadata } from "./file_resources.ts";
import { sendRequest } from "./http_request.ts";
import { type HttpOptions, parseHttpTemplate, readOrigin } from "./http_template.ts";
import type { UrlResource } from "./schema.ts";
import { readToolInput } from "./tool_input.ts";
import { decodeText } from "./media_type.ts";

/** Makes a resource that serves the response to an HTTP request. */
export function httpResource(
  config: UrlResource,
  metadata: ResourceMetadata,
  { readEnv, toProblem }: HttpOptions,
): Handler {
  const input = readToolInput(undefined);
  const fill = (text: string, path: readonly string[]) =>
    parseHttpTemplate(text, { path, readEnv, toProblem, input }).fill(() => "");
  const urlText = fill(config.url, ["url"]);
  readOrigin(config.url, { readEnv, toProblem, path: ["url"] });
  const url = new URL(urlText);
  const headers = Object.fromEntries(
    Object.entries(config.headers ?? {}).map(([key, text]) => [key, fill(text, ["headers", key])]),
  );
  const uri = config.uri ?? url.href;

  async function read(_: string, ctx: Context) {
    const { status, mediaType, bytes } = await sendRequest(url, {
      method: "GET",
      headers,
      timeoutMs: config.timeoutMs ?? 30_000,
      maxBytes: config.maxBytes ?? 1_048_576,
      allowPrivate: config.allowPrivate ?? [],
      signal: ctx.signal,
    });
    if (status === 404 || status === 410) return undefined;
    if (status < 200 || status > 299) throw new ToolError(`Cannot read ${uri}: ${url.host} responded with ${status}`);
    const text = decodeText(bytes);
    const mimeType = metadata.mimeType ?? (mediaType || undefined);
    return text === undefined ? { uri, mimeType, blob: toBase64(bytes) } : { uri, mimeType, text };
  }

  return resource({ ...metadata, uri, name: config.name, read });
}
