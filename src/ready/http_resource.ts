/**
 * Resources whose contents are the body of an HTTP response.
 */
import { type Context, type FixedResource, resource, type ResourceEntry, ToolError } from "../library.ts";
import { checkOptions, type KnownOptions, toPlace } from "../core/known_options.ts";
import { toBase64 } from "../core/kit/base64.ts";
import { sendGuarded } from "./http_request.ts";
import {
  fillHeaders,
  type HttpOptions,
  parseHeaders,
  parseHttpTemplate,
  readOrigin,
  REQUEST_RULES,
} from "./http_template.ts";
import type { HttpLimits } from "./http_tool.ts";
import { readToolInput } from "./tool_input.ts";
import { decodeText, readMediaType } from "./media_type.ts";

/** Options of {@linkcode httpResource}. Only `url` and `name` are required. */
export interface HttpResourceOptions extends HttpLimits, Omit<ResourceEntry, "uri" | "size"> {
  /** The `http` or `https` URL to read. */
  readonly url: string;
  /** URI of the resource. Defaults to the URL. */
  readonly uri?: string;
}

const { url, headers, timeoutMs, maxBytes, allowPrivate } = REQUEST_RULES;
const OPTIONS: KnownOptions<keyof HttpResourceOptions> = {
  names: {
    url,
    uri: true,
    name: true,
    title: true,
    description: true,
    mimeType: true,
    annotations: true,
    icons: true,
    _meta: true,
    headers,
    timeoutMs,
    maxBytes,
    allowPrivate,
  },
};

/**
 * Creates a resource whose contents are the body of an HTTP response. Neither the request nor its redirects can reach
 * this machine or its network, unless `allowPrivate` lists the host.
 *
 * ```ts
 * import { createServer } from "@x/mcp";
 * import { httpResource } from "@x/mcp/handlers";
 *
 * const status = httpResource({ url: "https://status.example.com/", uri: "status://now", name: "status" });
 *
 * export default createServer({ name: "status", version: "1.0.0", handlers: [status] });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function httpResource(options: HttpResourceOptions): FixedResource {
  const place = toPlace("resource", options, "url");
  checkOptions(`make ${place}`, options, OPTIONS);
  return makeHttpResource(options, {
    toProblem: (path, state) => new TypeError(`Cannot make ${place}: ${path.join(".")}: ${state}`),
  });
}

export function makeHttpResource(
  { url: urlTemplate, headers: given = {}, timeoutMs, maxBytes, allowPrivate, ...entry }: HttpResourceOptions,
  { readEnv, toProblem }: HttpOptions,
): FixedResource {
  const input = readToolInput(undefined);
  const fill = (text: string, path: readonly string[]) =>
    parseHttpTemplate(text, { path, readEnv, toProblem, input }).fill(() => "");
  const urlText = fill(urlTemplate, ["url"]);
  readOrigin(urlTemplate, { readEnv, toProblem, path: ["url"] });
  const url = new URL(urlText);
  const parsed = parseHeaders(given, {
    parse: (text, key) => parseHttpTemplate(text, { path: ["headers", key], readEnv, toProblem, input }),
    toProblem,
  });
  const headers = fillHeaders(parsed, {});
  const uri = entry.uri ?? url.href;

  async function read(_: string, ctx: Context) {
    const outgoing = { url, method: "GET", headers: new Headers(headers), signal: ctx.signal };
    const response = await sendGuarded(outgoing, { timeoutMs, maxBytes, allowPrivate });
    const { status } = response;
    const mediaType = readMediaType(response);
    const bytes = new Uint8Array(await response.arrayBuffer());
    if (status === 404 || status === 410) return undefined;
    if (status < 200 || status > 299) throw new ToolError(`Cannot read ${uri}: ${url.host} responded with ${status}`);
    const text = decodeText(bytes);
    const mimeType = entry.mimeType ?? (mediaType || undefined);
    return text === undefined ? { uri, mimeType, blob: toBase64(bytes) } : { uri, mimeType, text };
  }

  return resource({ ...entry, uri, read });
}
