/**
 * Tools and resources that are read from another server.
 *
 * @module
 */
import { type Context, type Handler, media, resource, tool, ToolError, type ToolResult } from "../../library.ts";
import { isObject } from "../../protocol/jsonrpc.ts";
import { toBase64 } from "../../protocol/base64.ts";
import { findMissing, type Input, toArgumentText, toInput } from "./arguments.ts";
import type { Facts } from "./file_resources.ts";
import { toText } from "./media_type.ts";
import { type Answer, request } from "./request.ts";
import type { FetchTool, UrlResource } from "./schema.ts";
import { type ReadEnv, type Template, toTemplate } from "./template.ts";

/** Where a tool or resource is made. */
export interface HttpOptions {
  readonly env: ReadEnv;
  /** An error about a part of it. */
  readonly refuse: (path: readonly (string | number)[], state: string) => Error;
}

type Arguments = Readonly<Record<string, unknown>>;

/** A tool that makes a request. */
export function fetchTool(name: string, told: FetchTool, { env, refuse }: HttpOptions): Handler {
  const { title, description, annotations, output, fetch: asked } = told;
  const { body, method = body === undefined ? "GET" : "POST" } = asked;
  const input = toInput(told.input);
  const read = (text: string, path: readonly (string | number)[], given?: readonly string[]) =>
    readTemplate(text, { path: ["fetch", ...path], env, refuse, input, given });
  if (body !== undefined && (method === "GET" || method === "HEAD")) {
    throw refuse(["fetch", "body"], `a ${method} request has no body; use POST, or put the arguments into query`);
  }
  const url = read(asked.url, ["url"]);
  const origin = readOrigin(asked.url, { env, refuse, path: ["fetch", "url"] });
  const query = Object.entries(asked.query ?? {}).map(([key, text]) =>
    [key, read(text, ["query", key], input.names)] as const
  );
  const headers = Object.entries(asked.headers ?? {}).map(([key, text]) =>
    [key, read(text, ["headers", key])] as const
  );
  const fillBody = readBody(body, (text, path) => read(text, ["body", ...path], input.names));

  async function run(given: Arguments, ctx: Context): Promise<ToolResult | object> {
    const args = input.complete(given);
    const target = toUrl(url, query, args, origin);
    const filled = fillBody(args);
    const isJson = filled !== undefined && typeof body !== "string";
    const answer = await request(target, {
      method,
      headers: {
        ...isJson ? { "content-type": "application/json" } : {},
        ...Object.fromEntries(headers.map(([key, value]) => [key, value.fill((name) => toArgumentText(args[name]))])),
      },
      body: filled === undefined ? undefined : isJson ? JSON.stringify(filled) : toArgumentText(filled),
      timeoutMs: asked.timeoutMs ?? 30_000,
      maxBytes: asked.maxBytes ?? 1_048_576,
      allowPrivate: asked.allowPrivate ?? [],
      signal: ctx.signal,
    });
    return toResult(answer, target);
  }

  return tool({ name, title, description, annotations, input: input.schema, output, run });
}

/** A resource that is read by a request. */
export function urlResource(told: UrlResource, facts: Facts, { env, refuse }: HttpOptions): Handler {
  const read = (text: string, path: readonly string[]) =>
    readTemplate(text, { path, env, refuse, input: toInput(undefined) }).fill(() => "");
  const text = read(told.url, ["url"]);
  readOrigin(told.url, { env, refuse, path: ["url"] });
  const url = new URL(text);
  const headers = Object.fromEntries(
    Object.entries(told.headers ?? {}).map(([key, text]) => [key, read(text, ["headers", key])]),
  );
  const uri = told.uri ?? url.href;
  return resource({
    ...facts,
    uri,
    name: told.name,
    async read(_: string, ctx: Context) {
      const { status, type, bytes } = await request(url, {
        method: "GET",
        headers,
        timeoutMs: told.timeoutMs ?? 30_000,
        maxBytes: told.maxBytes ?? 1_048_576,
        allowPrivate: told.allowPrivate ?? [],
        signal: ctx.signal,
      });
      if (status === 404 || status === 410) return undefined;
      if (status < 200 || status > 299) throw new ToolError(`Cannot read ${uri}: ${url.host} answered with ${status}`);
      const text = toText(bytes);
      const mimeType = facts.mimeType ?? (type || undefined);
      return text === undefined ? { uri, mimeType, blob: toBase64(bytes) } : { uri, mimeType, text };
    },
  });
}

interface TemplateOptions extends HttpOptions {
  readonly path: readonly (string | number)[];
  readonly input: Input;
  /** Arguments that may be missing here. */
  readonly given?: readonly string[];
}

function readTemplate(text: string, { path, env, refuse, input, given }: TemplateOptions): Template {
  let template: Template;
  try {
    template = toTemplate(text, env);
  } catch (error) {
    throw refuse(path, error instanceof Error ? error.message : String(error));
  }
  const missing = findMissing(template, input, given);
  if (missing) throw refuse(path, missing);
  return template;
}

/** Where requests go, which no argument may change: it stands in the URL before the first of them. */
function readOrigin(text: string, { env, refuse, path }: HttpOptions & { path: readonly string[] }): string {
  const url = toTemplate(text, env).fill(() => "\0");
  const [start] = url.split("\0");
  if (!/^https?:\/\//i.test(start)) throw refuse(path, "it does not begin with http:// or https://");
  if (url.includes("\0") && !/^https?:\/\/[^/?#]+[/?#]/i.test(start)) {
    throw refuse(path, "an argument stands in the host, which a call may not choose; put it behind the host");
  }
  const plain = url.replaceAll("\0", "x");
  if (!URL.canParse(plain)) throw refuse(path, "it is no URL; write it as https://host/path");
  const { username, password, origin } = new URL(plain);
  if (username || password) throw refuse(path, "it has a name or password; put them into headers, as authorization");
  return origin;
}

function toUrl(
  template: Template,
  query: readonly (readonly [key: string, value: Template])[],
  args: Arguments,
  origin: string,
): URL {
  const text = template.fill((name) => encodeURIComponent(toArgumentText(args[name])));
  checkSegments(template, text);
  // A URL is tidied when it is read: `/users/../admin` is another path.
  if (/(^|\/)(\.|%2e){1,2}(\/|$)/i.test(text.replace(/[?#].*$/s, "").replace(/^https?:\/\/[^/]*/i, ""))) {
    throw new ToolError("Cannot make the request: an argument makes . or .. a part of the path");
  }
  const url = new URL(text);
  if (url.origin !== origin) throw new ToolError("Cannot make the request: an argument changes the host");
  const pairs = query.flatMap(([key, value]) => {
    if (value.names.some((name) => args[name] === undefined)) return [];
    const sole = value.sole === undefined ? undefined : args[value.sole];
    const values = Array.isArray(sole) ? sole : [value.fill((name) => toArgumentText(args[name]))];
    return values.map((each) => `${encodeURIComponent(key)}=${encodeURIComponent(toArgumentText(each))}`);
  });
  // Not by way of `searchParams`, which would write what stands there already in another way.
  if (pairs.length) url.search = [url.search.slice(1), ...pairs].filter(Boolean).join("&");
  return url;
}

/** Without an empty argument's segment the path is another one: `DELETE /notes/` may delete all notes. */
function checkSegments(template: Template, text: string): void {
  const toSegments = (url: string) => url.split(/[?#]/, 1)[0].split("/");
  const filled = toSegments(text);
  // Values are encoded, so that they hold no slash, and the segments are as many.
  const isEmpty = toSegments(template.fill(() => "\0")).some((segment, i) => segment.includes("\0") && !filled[i]);
  if (isEmpty) throw new ToolError("Cannot make the request: an argument is empty, which makes the path another one");
}

type ReadText = (text: string, path: readonly (string | number)[]) => Template;

/** Makes the function that puts arguments into a JSON value. What is made of a missing argument alone is left out. */
function readBody(
  body: unknown,
  read: ReadText,
  path: readonly (string | number)[] = [],
): (args: Arguments) => unknown {
  if (typeof body === "string") {
    const template = read(body, path);
    const { sole } = template;
    if (sole !== undefined) return (args) => args[sole];
    return (args) => template.fill((name) => args[name] === undefined ? "" : toArgumentText(args[name]));
  }
  if (Array.isArray(body)) {
    const items = body.map((item, i) => readBody(item, read, [...path, i]));
    return (args) => items.map((fill) => fill(args)).filter((item) => item !== undefined);
  }
  if (isObject(body)) {
    const fields = Object.entries(body).map(([key, value]) => [key, readBody(value, read, [...path, key])] as const);
    return (args) => Object.fromEntries(fields.map(([key, fill]) => [key, fill(args)]));
  }
  return () => body;
}

function toResult({ status, type, bytes }: Answer, url: URL): ToolResult | object {
  const text = toText(bytes);
  if (status < 200 || status > 299) {
    return {
      content: [{ type: "text", text: `${url.host} answered with ${status}.\n${text ?? ""}`.trim() }],
      isError: true,
    };
  }
  if (text === undefined) return media(bytes, type || "application/octet-stream", { uri: url.origin + url.pathname });
  if (/^application\/(.*\+)?json$/.test(type)) {
    try {
      const value: unknown = JSON.parse(text);
      if (isObject(value)) return { content: [{ type: "text", text }], structuredContent: value };
    } catch {
      // The text says what it is.
    }
  }
  return { content: [{ type: "text", text }] };
}
