// An HTTP server that returns what it was sent, and a client that calls the operations of a document on it.
import { createServer, type Observer, type Principal } from "../../mod.ts";
import { type Api, openapi, type OpenApiOptions } from "../../src/ready/openapi/openapi.ts";
import { connectTest } from "../../src/testing/testing.ts";
import type { Client } from "../../src/client/client.ts";
import { withApi } from "../ready/api.ts";

/** A request as it was received, with the body as characters of one byte. */
export interface Received {
  readonly method: string;
  /** The path with the query, as it was sent. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Calls the operations of a document. */
export interface Calling {
  readonly api: Api;
  readonly client: Client;
  /** The requests, in the order in which they arrived. */
  readonly received: readonly Received[];
  /** Calls a tool. Returns the request that the tool sent. Throws if the call fails. */
  send(name: string, args?: Readonly<Record<string, unknown>>): Promise<Received>;
  /** Calls a tool. Returns the text of its result, and whether it is an error. */
  call(name: string, args?: Readonly<Record<string, unknown>>): Promise<{ text: string; isError?: boolean }>;
}

export interface EchoOptions extends Omit<OpenApiOptions, "baseUrl" | "allowPrivate"> {
  /** The path of the base URL. */
  readonly basePath?: string;
  readonly principal?: Principal;
  readonly observer?: Observer;
  /** Responds to a request, without its body. Defaults to the text "ok". */
  readonly respond?: (request: Request, host: string) => Response | Promise<Response>;
}

const toText = (bytes: ArrayBuffer) => String.fromCharCode(...new Uint8Array(bytes));

/** Returns a received request. */
export async function receive(request: Request): Promise<Received> {
  return {
    method: request.method,
    target: request.url.replace(/^https?:\/\/[^/]*/, ""),
    headers: Object.fromEntries(request.headers),
    body: toText(await request.arrayBuffer()),
  };
}

/** Serves a document whose API is on this machine, and calls its operations. */
export async function withEcho(
  document: object,
  { basePath = "", principal, observer, respond, ...options }: EchoOptions,
  use: (calling: Calling) => Promise<void>,
): Promise<void> {
  const received: Received[] = [];
  await withApi(async (request, host) => {
    received.push(await receive(request));
    const { url, method, headers } = request;
    return await respond?.(new Request(url, { method, headers }), host) ?? new Response("ok");
  }, async (host) => {
    const api = openapi(document, { ...options, baseUrl: `http://${host}${basePath}`, allowPrivate: [host] });
    const server = createServer({ name: "echo", version: "1.0.0", handlers: [api], observer });
    await using client = await connectTest(server, { principal });
    const call: Calling["call"] = async (name, args = {}) => {
      const { content, isError } = await client.callTool(name, args);
      return { text: content.map((each) => "text" in each ? each.text : JSON.stringify(each)).join("\n"), isError };
    };
    const send: Calling["send"] = async (name, args) => {
      const count = received.length;
      const { text, isError } = await call(name, args);
      if (isError || received.length === count) throw new Error(text);
      return received[received.length - 1];
    };
    await use({ api, client, received, call, send });
  });
}

/** A reference to a schema among the components. */
export const ref = (name: string): { readonly $ref: string } => ({ $ref: `#/components/schemas/${name}` });

/** An operation with a body. */
export function post(schema?: object, type = "application/json", more: object = {}) {
  return { method: "post", requestBody: { content: { [type]: { schema, ...more } } } };
}

/** A document with one operation for each entry. An entry has the parts of an operation, with `path` and `method`. */
export function toDocument(
  operations: Readonly<
    Record<string, { readonly path?: string; readonly method?: string; readonly [key: string]: unknown }>
  >,
  parts: object = {},
): object {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const [operationId, { path = `/${operationId}`, method = "get", ...operation }] of Object.entries(operations)) {
    (paths[path] ??= {})[method] = { operationId, ...operation };
  }
  return { openapi: "3.1.0", info: { title: "Echo", version: "1.0.0" }, paths, ...parts };
}
