/**
 * Tools that send an HTTP request.
 *
 * @module
 */
import { type Context, type Handler, media, tool, type ToolResult } from "../../library.ts";
import { isObject } from "../../kit/json.ts";
import { type HttpResponse, sendRequest } from "./http_request.ts";
import {
  buildUrl,
  type HttpOptions,
  parseHttpTemplate,
  type ParseTemplate,
  readOrigin,
  type UrlTemplate,
} from "./http_template.ts";
import type { FetchTool } from "./schema.ts";
import type { Template } from "./template.ts";
import { type Arguments, readToolInput, toArgumentText } from "./tool_input.ts";
import { decodeText } from "./media_type.ts";

/** Makes a tool that sends an HTTP request. */
export function httpTool(name: string, config: FetchTool, { readEnv, toProblem }: HttpOptions): Handler {
  const { title, description, annotations, output, fetch: request } = config;
  const { body, method = body === undefined ? "GET" : "POST" } = request;
  const input = readToolInput(config.input);
  const parse: ParseTemplate = (text, path, optional) =>
    parseHttpTemplate(text, { path: ["fetch", ...path], readEnv, toProblem, input, optional });
  if (body !== undefined && (method === "GET" || method === "HEAD")) {
    throw toProblem(["fetch", "body"], `a ${method} request has no body; use POST, or put the arguments into query`);
  }
  const url: UrlTemplate = {
    template: parse(request.url, ["url"]),
    origin: readOrigin(request.url, { readEnv, toProblem, path: ["fetch", "url"] }),
    query: parseEntries(request.query, (text, key) => parse(text, ["query", key], input.names)),
  };
  const headers = parseEntries(request.headers, (text, key) => parse(text, ["headers", key]));
  const fillBody = parseBody(body, (text, path) => parse(text, ["body", ...path], input.names));

  async function run(given: Arguments, ctx: Context): Promise<ToolResult | object> {
    const args = input.addDefaults(given);
    const target = buildUrl(url, args);
    const filledBody = fillBody(args);
    const isJson = filledBody !== undefined && typeof body !== "string";
    const filledHeaders = headers.map(([key, value]) => [key, value.fill((name) => toArgumentText(args[name]))]);
    const response = await sendRequest(target, {
      method,
      headers: { ...isJson ? { "content-type": "application/json" } : {}, ...Object.fromEntries(filledHeaders) },
      body: filledBody === undefined ? undefined : isJson ? JSON.stringify(filledBody) : toArgumentText(filledBody),
      timeoutMs: request.timeoutMs ?? 30_000,
      maxBytes: request.maxBytes ?? 1_048_576,
      allowPrivate: request.allowPrivate ?? [],
      signal: ctx.signal,
    });
    return toResult(response, target);
  }

  return tool({ name, title, description, annotations, input: input.schema, output, run });
}

function parseEntries(
  entries: Readonly<Record<string, string>> | undefined,
  parse: (text: string, key: string) => Template,
): readonly (readonly [key: string, value: Template])[] {
  return Object.entries(entries ?? {}).map(([key, text]) => [key, parse(text, key)]);
}

/**
 * Makes a function that fills a JSON value with arguments. Values that consist only of a missing argument are left out.
 */
function parseBody(
  body: unknown,
  parse: ParseTemplate,
  path: readonly (string | number)[] = [],
): (args: Arguments) => unknown {
  if (typeof body === "string") {
    const template = parse(body, path);
    const { onlyArgument } = template;
    if (onlyArgument !== undefined) return (args) => args[onlyArgument];
    return (args) => template.fill((name) => args[name] === undefined ? "" : toArgumentText(args[name]));
  }
  if (Array.isArray(body)) {
    const items = body.map((item, i) => parseBody(item, parse, [...path, i]));
    return (args) => items.map((fill) => fill(args)).filter((item) => item !== undefined);
  }
  if (isObject(body)) {
    const fields = Object.entries(body).map(([key, value]) => [key, parseBody(value, parse, [...path, key])] as const);
    return (args) => Object.fromEntries(fields.map(([key, fill]) => [key, fill(args)]));
  }
  return () => body;
}

function toResult({ status, mediaType, bytes }: HttpResponse, url: URL): ToolResult | object {
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
  if (/^application\/(.*\+)?json$/.test(mediaType)) {
    try {
      const value: unknown = JSON.parse(text);
      if (isObject(value)) return { content: [{ type: "text", text }], structuredContent: value };
    } catch {
      // The response is returned as text.
    }
  }
  return { content: [{ type: "text", text }] };
}
