/**
 * Tools that send an HTTP request.
 */
import {
  type Context,
  type JsonSchema,
  media,
  type Tool,
  tool,
  type ToolOptions,
  type ToolResult,
} from "../library.ts";
import { TOOL } from "../server/handlers/tool.ts";
import { checkOptions, type KnownOptions, toPlace } from "../core/known_options.ts";
import { parseExactly } from "../core/kit/exact_json.ts";
import { isObject } from "../core/kit/json.ts";
import { isJsonType, parseBody } from "./http_body.ts";
import { type RequestLimits, sendGuarded } from "./http_request.ts";
import {
  buildUrl,
  fillHeaders,
  type HttpOptions,
  parseHeaders,
  parseHttpTemplate,
  type ParseTemplate,
  readOrigin,
  REQUEST_RULES,
  type UrlTemplate,
} from "./http_template.ts";
import { toHttpHints } from "./http_hints.ts";
import { toTitle } from "./title.ts";
import { type Arguments, readToolInput } from "./tool_input.ts";
import { decodeText, readMediaType } from "./media_type.ts";
import type { ToProblem } from "./problem.ts";

/** Headers and limits of a request. */
export interface HttpLimits extends Pick<RequestLimits, "timeoutMs" | "maxBytes" | "allowPrivate"> {
  /**
   * Request headers, such as `{ authorization: "Bearer …" }`. A header whose argument is missing is omitted. After a
   * redirect to another origin, the headers are not sent.
   */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * A request that a tool sends. In the strings of the request, `{{name}}` is replaced with the argument `name`. Write
 * `\\{{` for a literal `{{`.
 */
export interface HttpToolRequest extends HttpLimits {
  /**
   * An `http` or `https` URL, which may contain arguments after the host, such as
   * `https://api.example.com/users/{{id}}`.
   */
  readonly url: string;
  /** Method of the request. Defaults to `POST` if there is a body, otherwise to `GET`. */
  readonly method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Query parameters. A parameter whose argument is missing is omitted. */
  readonly query?: Readonly<Record<string, string>>;
  /**
   * Body of the request as JSON. A string that consists only of `{{name}}` is replaced with the argument itself, such as
   * a number or an object. The content type is `application/json`, unless `headers` contains another JSON type.
   */
  readonly json?: unknown;
  /** Body of the request as the fields of a form, which are encoded. A field whose argument is missing is omitted. */
  readonly form?: Readonly<Record<string, string>>;
  /**
   * Body of the request as text. Arguments are encoded for the `content-type` in `headers`: a form, XML, or plain text,
   * which is the default. JSON text cannot contain arguments. A body that consists only of `{{name}}` is the argument
   * itself: a string is sent unchanged, and any other value as JSON. A body that is not a string is sent like `json`.
   */
  readonly body?: unknown;
}

/** Options of {@linkcode httpTool}: the options of a tool, with `fetch` instead of `run`. */
export interface HttpToolOptions
  extends Omit<ToolOptions<JsonSchema, JsonSchema>, "input" | "output" | "run" | "forCaller"> {
  /** JSON Schema of the arguments. `type` defaults to `object`, and `additionalProperties` to `false`. */
  readonly input?: JsonSchema;
  /** JSON Schema of the structured content. */
  readonly output?: JsonSchema;
  /** The request to send. */
  readonly fetch: HttpToolRequest;
}

const REQUEST: KnownOptions<keyof HttpToolRequest> = {
  names: {
    ...REQUEST_RULES,
    method: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
    json: true,
    body: true,
  },
};

const { run: _run, forCaller: _forCaller, ...names } = TOOL.names;
const OPTIONS: KnownOptions<keyof HttpToolOptions> = {
  names: { ...names, fetch: REQUEST },
  elsewhere: {
    ...TOOL.elsewhere,
    run: "remove it, because the tool sends the request in fetch, or use tool()",
    forCaller: "use tool()",
  },
};

/**
 * Creates a tool that sends an HTTP request. The arguments cannot change the host or the structure of the path. Neither
 * the request nor its redirects can reach this machine or its network, unless `allowPrivate` lists the host.
 *
 * Without `title`, the title is the name as words. Hints that `annotations` leaves out come from the method: a tool with
 * `GET` or `HEAD` is read-only, and any other tool may delete or overwrite data.
 *
 * ```ts
 * import { createServer } from "@x/mcp";
 * import { httpTool } from "@x/mcp/handlers";
 *
 * const forecast = httpTool({
 *   name: "forecast",
 *   input: { properties: { city: { type: "string" } }, required: ["city"] },
 *   fetch: { url: "https://weather.example.com/cities/{{city}}", query: { days: "3" } },
 * });
 *
 * export default createServer({ name: "weather", version: "1.0.0", handlers: [forecast] });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid, or an argument could change the host.
 */
export function httpTool(options: HttpToolOptions): Tool {
  const place = toPlace("tool", options);
  checkOptions(`make ${place}`, options, OPTIONS);
  if (!options.fetch) {
    throw new TypeError(`Cannot make ${place}: it has no fetch; write { fetch: { url: "https://…" } }`);
  }
  return makeHttpTool(options, {
    toProblem: (path, state) => new TypeError(`Cannot make ${place}: ${path.join(".")}: ${state}`),
  });
}

export function makeHttpTool(
  { fetch: request, ...options }: HttpToolOptions,
  { readEnv, toProblem }: HttpOptions,
): Tool {
  const { body, json, form } = request;
  const bodyKey = Object.entries({ body, json, form }).find(([, value]) => value !== undefined)?.[0];
  const { method = bodyKey === undefined ? "GET" : "POST" } = request;
  const input = readToolInput(options.input);
  const toOwnProblem: ToProblem = (path, state) => toProblem(["fetch", ...path], state);
  const parse: ParseTemplate = (text, path, optional) =>
    parseHttpTemplate(text, { path, readEnv, toProblem: toOwnProblem, input, optional });
  if (bodyKey !== undefined && (method === "GET" || method === "HEAD")) {
    throw toOwnProblem(
      [bodyKey],
      `a ${method} request must not have a body; use POST, or put the arguments into query`,
    );
  }
  const url: UrlTemplate = {
    template: parse(request.url, ["url"]),
    origin: readOrigin(request.url, { readEnv, toProblem: toOwnProblem, path: ["url"] }),
    query: Object.entries(request.query ?? {}).map(([key, text]) => [key, parse(text, ["query", key], input.names)]),
  };
  const headers = parseHeaders(request.headers ?? {}, {
    parse: (text, key) => parse(text, ["headers", key], input.names),
    toProblem: toOwnProblem,
  });
  const contentType = headers.find(([name]) => name === "content-type")?.[1].fill(() => "");
  const fillBody = parseBody({ body, json, form, contentType }, { input, parse, toProblem: toOwnProblem });

  async function run(given: Arguments, ctx: Context): Promise<ToolResult | object> {
    const args = input.addDefaults(given);
    const target = buildUrl(url, args);
    const { text, contentType } = fillBody(args);
    const sent = new Headers({ ...contentType && { "content-type": contentType }, ...fillHeaders(headers, args) });
    const { signal } = ctx;
    return await toResult(
      await sendGuarded({ url: target, method, headers: sent, body: text, signal }, request),
      target,
    );
  }

  // Without a schema, the tool takes no arguments.
  const { title = toTitle(String(options.name)), annotations } = options;
  return tool({ ...options, title, annotations: toHttpHints(method, annotations), input: input.schema, run });
}

async function toResult(response: Response, url: URL): Promise<ToolResult | object> {
  const { status } = response;
  const mediaType = readMediaType(response);
  const bytes = new Uint8Array(await response.arrayBuffer());
  const text = decodeText(bytes);
  if (status < 200 || status > 299) {
    return {
      content: [{ type: "text", text: `${url.host} responded with ${status}.\n${text ?? ""}`.trim() }],
      isError: true,
    };
  }
  if (text === undefined) {
    return media(bytes, mediaType || "application/octet-stream", { uri: url.origin + url.pathname });
  }
  if (isJsonType(mediaType)) {
    try {
      const value = parseExactly(text, String);
      if (isObject(value)) return { content: [{ type: "text", text }], structuredContent: value };
    } catch {
      // The response is not JSON in spite of its media type, and is returned as text.
    }
  }
  return { content: [{ type: "text", text }] };
}
