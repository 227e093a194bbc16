/**
 * Sends requests of revision 2026-07-28, and reports every message.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http
 * @module
 */
import type { Json, JsonTools } from "./json_tools.ts";
import type { Transport } from "./transport.ts";

/** The kind of a message. `closed` stands for a stream that the page closed. */
export type FrameKind =
  | "request"
  | "notification"
  | "result"
  | "question"
  | "answer"
  | "tool error"
  | "error"
  | "failure"
  | "closed";

/** A message. */
export interface Frame {
  readonly kind: FrameKind;
  /** The ID of its request. */
  readonly id: number;
  readonly method: string;
  /** The tool, prompt or URI of the request. */
  readonly subject?: string;
  /** The text of the message. */
  readonly text: string;
  /** The time in milliseconds since 1970. */
  readonly at: number;
  /** The time since the request in milliseconds. */
  readonly ms: number;
  /** The HTTP status of the response, in its last message. */
  readonly status?: number;
  /** The protocol headers of a request. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The outcome of a request. */
export type Outcome =
  | { readonly kind: "result"; readonly result: Json; readonly ms: number; readonly size: number }
  | {
    readonly kind: "error";
    readonly code?: number;
    readonly message: string;
    readonly data?: unknown;
    readonly ms: number;
    readonly status?: number;
  }
  | { readonly kind: "stopped"; readonly ms: number };

/** Options of a request. */
export interface SendOptions {
  readonly signal?: AbortSignal;
  /** Arguments for `Mcp-Param-` headers, by header name without the prefix. */
  readonly paramHeaders?: Readonly<Record<string, string>>;
  readonly onNotification?: (method: string, params: Json) => void;
}

/** The connection to the server. */
export interface RpcClient {
  /** Sends a request. Never throws. */
  send(method: string, params?: Json, options?: SendOptions): Promise<Outcome>;
  /** The capabilities to declare. Can be changed. */
  capabilities: Json;
  /** The minimum level of log messages. Can be changed. */
  logLevel?: string;
}

/** Options of the client. */
export interface RpcClientOptions {
  readonly line: Transport;
  /** The protocol revision. */
  readonly protocol: string;
  /** The version of the page. */
  readonly version: string;
  readonly onFrame: (frame: Frame) => void;
}

/** Creates the client. */
export function createRpcClient(
  { line, protocol, version, onFrame }: RpcClientOptions,
  { isObject, parse }: JsonTools,
): RpcClient {
  const prefix = "io.modelcontextprotocol/";
  let lastId = 0;

  const wire: RpcClient = { send, capabilities: {} };

  async function send(method: string, params: Json = {}, options: SendOptions = {}): Promise<Outcome> {
    const id = ++lastId;
    const subject = method === "resources/read" ? params.uri : params.name;
    const named = typeof subject === "string" ? { subject } : {};
    const start = performance.now();
    const passed = () => performance.now() - start;
    const report = (kind: Frame["kind"], text: string, status?: number) =>
      onFrame({ kind, id, method, ...named, text, at: Date.now(), ms: passed(), status });
    const meta = isObject(params._meta) ? params._meta : {};
    const body = JSON.stringify({
      jsonrpc: "2.0",
      id,
      method,
      params: {
        ...params,
        _meta: {
          [`${prefix}protocolVersion`]: protocol,
          [`${prefix}clientInfo`]: { name: "inspector", version },
          [`${prefix}clientCapabilities`]: wire.capabilities,
          ...wire.logLevel ? { [`${prefix}logLevel`]: wire.logLevel } : {},
          ...meta,
        },
      },
    });
    function fail(message: string, status?: number): Outcome {
      report("failure", JSON.stringify({ failure: message }), status);
      return { kind: "error", message, ms: passed(), status };
    }

    // A message is a notification or the response.
    function read(text: string, status: number): Outcome | undefined {
      const parsed = parse(text);
      const message = "value" in parsed ? parsed.value : undefined;
      if (!isObject(message)) {
        return fail(`The response of the server is not a JSON-RPC message: ${text.slice(0, 200)}`, status);
      }
      const { method: notified, params: about, result, error } = message;
      if (typeof notified === "string") {
        onFrame({ kind: "notification", id, method: notified, text, at: Date.now(), ms: passed() });
        options.onNotification?.(notified, isObject(about) ? about : {});
        return;
      }
      if (isObject(result)) {
        const { resultType, isError } = result;
        report(resultType === "input_required" ? "question" : isError === true ? "tool error" : "result", text, status);
        return { kind: "result", result, ms: passed(), size: text.length };
      }
      report("error", text, status);
      const { code, message: reason, data } = isObject(error) ? error : {};
      return {
        kind: "error",
        code: typeof code === "number" ? code : undefined,
        message: typeof reason === "string" ? reason : "The response has neither a result nor an error",
        data,
        ms: passed(),
        status,
      };
    }

    const paramHeaders = Object.fromEntries(
      Object.entries(options.paramHeaders ?? {}).map(([name, value]) => [`mcp-param-${name}`, encode(value)]),
    );
    const headers = {
      ...paramHeaders,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": protocol,
      "mcp-method": method,
      ...typeof subject === "string" ? { "mcp-name": encode(subject) } : {},
    };
    onFrame({ kind: "request", id, method, ...named, text: body, at: Date.now(), ms: 0, headers });
    try {
      const response = await line.post(body, { headers, signal: options.signal });
      if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
        return read(await response.text(), response.status) ?? fail("The response is a notification", response.status);
      }
      for await (const data of line.events(response)) {
        const outcome = read(data, response.status);
        if (outcome) return outcome;
      }
      return fail("The stream ended without a response", response.status);
    } catch (error) {
      if (!options.signal?.aborted) {
        return fail(`${error instanceof Error ? error.message : error}; is the server still running?`);
      }
      report("closed", JSON.stringify({ closed: "The page closed the stream" }));
      return { kind: "stopped", ms: passed() };
    }
  }

  /** Encodes a header value: unchanged if that is safe, otherwise Base64 of its UTF-8 bytes. */
  function encode(value: string): string {
    if (/^(?![\t ])[\t -~]*(?<![\t ])$/.test(value) && !/^=\?base64\?.*\?=$/.test(value)) return value;
    return `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(value)))}?=`;
  }

  return wire;
}
