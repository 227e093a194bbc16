/**
 * A small client of the MCP endpoint, which lists and calls tools.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http
 */
import { encodeHeaderValue } from "../../core/protocol/header_value.ts";
import { findHeaderParams } from "../../core/schema/header_params.ts";
import type { JsonSchema } from "../../core/schema/json_schema.ts";
import type { WebMcpRegisterOptions } from "../page.ts";

const VERSION = "2026-07-28";
const META = "io.modelcontextprotocol/";
/** Maximum number of requests for one call, which can ask several times, and for one list, which can have pages. */
const MAX_ROUNDS = 32;

export interface ListedTool {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema: JsonSchema;
  readonly annotations?: { readonly title?: string; readonly readOnlyHint?: boolean; readonly openWorldHint?: boolean };
}

export interface CallOptions {
  /** Asks the user a question without fields. */
  readonly ask: (question: string) => Promise<boolean>;
  readonly signal: AbortSignal;
}

export interface CallResult {
  readonly content: unknown;
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
}

type Json = Readonly<Record<string, unknown>>;

/** The error if the server requires a valid access token. */
export class UnauthorizedError extends Error {}

/** Sends requests to the MCP endpoint with the credentials of the page's user. */
export class Endpoint {
  readonly #url: string;
  readonly #options: WebMcpRegisterOptions;
  #count = 0;

  constructor(url: string, options: WebMcpRegisterOptions) {
    this.#url = url;
    this.#options = options;
  }

  /** Lists the tools of all pages. */
  async list(): Promise<readonly ListedTool[]> {
    const tools: ListedTool[] = [];
    let cursor: unknown;
    for (let left = MAX_ROUNDS; left; left--) {
      const result = await this.#request("tools/list", { cursor });
      tools.push(...result.tools as ListedTool[]); // The cast is safe, because the page trusts its server.
      cursor = result.nextCursor;
      if (cursor === undefined) return tools;
    }
    throw tooMany("list tools", "pages");
  }

  /** Calls a tool, and answers its questions. */
  async call({ name, inputSchema }: ListedTool, args: Json, { ask, signal }: CallOptions): Promise<CallResult> {
    const headers: Record<string, string> = { "mcp-name": encodeHeaderValue(name) };
    for (const { header, path } of findHeaderParams(inputSchema)) {
      const value = path.reduce<unknown>(
        (at, key) => Object.hasOwn(Object(at), key) ? Object(at)[key] : undefined,
        args,
      );
      if (value !== undefined && value !== null) headers[`mcp-param-${header}`] = encodeHeaderValue(String(value));
    }
    let answers: Json = {};
    for (let left = MAX_ROUNDS; left; left--) {
      const result = await this.#request("tools/call", { name, arguments: args, ...answers }, headers, signal);
      if (result.resultType !== "input_required") {
        const { content, structuredContent, isError } = result;
        return { content, structuredContent, isError: isError === true };
      }
      const { inputRequests = {}, requestState } = result;
      const inputResponses: Record<string, unknown> = {};
      for (const [key, question] of Object.entries(Object(inputRequests))) {
        inputResponses[key] = await answer(question, ask);
      }
      answers = { inputResponses, requestState };
    }
    throw tooMany(`call ${name}`, "questions");
  }

  async #request(method: string, params: Json, more: Record<string, string> = {}, signal?: AbortSignal): Promise<Json> {
    const { token, cookies } = this.#options;
    const bearer = await token?.();
    const _meta = {
      [`${META}protocolVersion`]: VERSION,
      [`${META}clientInfo`]: { name: "WebMCP", version: VERSION },
      [`${META}clientCapabilities`]: { elicitation: { form: {} } },
    };
    const id = ++this.#count;
    const action = `Cannot send ${method}`;
    const response = await fetch(this.#url, {
      method: "POST",
      headers: {
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": VERSION,
        "mcp-method": method,
        ...bearer ? { authorization: `Bearer ${bearer}` } : {},
        ...more,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, _meta } }),
      credentials: cookies ? "include" : "omit",
      cache: "no-store",
      redirect: "error",
      signal,
    }).catch((error) => {
      signal?.throwIfAborted();
      const cors = `its cors does not allow ${cookies ? "cookies of " : ""}this page`;
      throw new Error(`${action}: the server at ${this.#url} cannot be reached, or ${cors}`, { cause: error });
    });
    const { error, result } = readReply(await response.text(), response.headers.get("content-type") ?? "", id);
    if (result) return result;
    if (response.status === 401) {
      throw new UnauthorizedError(`${action}: the server requires a valid access token; sign in`);
    }
    throw new Error(`${action}: ${error?.message ?? `the response has status ${response.status}`}`);
  }
}

function tooMany(action: string, what: string): Error {
  return new Error(`Cannot ${action}: there are over ${MAX_ROUNDS} ${what}`);
}

interface Reply {
  readonly id?: unknown;
  readonly result?: Json;
  readonly error?: { readonly message?: string };
}

function readReply(text: string, type: string, id: number): Reply {
  const isStream = type.startsWith("text/event-stream");
  const texts = isStream ? text.split(/\r?\n\r?\n/).map(readData) : [text];
  for (const each of texts) {
    try {
      const message: Reply = Object(JSON.parse(each));
      if (!isStream || message.id === id) return message;
    } catch {
      // A comment in a stream, or the response of a proxy.
    }
  }
  return {};
}

/** Returns the data of an event. Splits only at line ends of streams, because JSON can contain U+2028 and U+2029. */
function readData(event: string): string {
  const lines = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
  return lines.map((line) => line.slice("data:".length)).join("\n");
}

/** Answers a question for consent. Cancels a question with fields, because an agent must not fill in the form. */
async function answer(question: unknown, ask: CallOptions["ask"]): Promise<unknown> {
  const { method, params = {} } = Object(question);
  const { message, requestedSchema } = Object(params);
  const hasFields = Object.keys(Object(Object(requestedSchema).properties)).length > 0;
  if (method !== "elicitation/create" || hasFields || !requestedSchema) return { action: "cancel" };
  return await ask(String(message)) ? { action: "accept", content: {} } : { action: "decline" };
}
