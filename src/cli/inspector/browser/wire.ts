/**
 * Talks to the server as any client of 2026-07-28 does, and tells of every frame.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http
 * @module
 */
import type { Json, JsonTools } from "./json.ts";
import type { Line } from "./line.ts";

/** What a message is; `closed` is none, but the end that the page has made. */
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

/** One message on the wire. */
export interface Frame {
  readonly kind: FrameKind;
  /** Id of the request it belongs to. */
  readonly id: number;
  readonly method: string;
  /** The tool, the prompt or the URI that the request is about. */
  readonly subject?: string;
  /** As it was sent. */
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Milliseconds since the request. */
  readonly ms: number;
  /** HTTP status of the answer, in its last frame. */
  readonly status?: number;
  /** The protocol's headers of a request. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What became of a request. */
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

/** How to send a request. */
export interface SendOptions {
  readonly signal?: AbortSignal;
  /** Arguments that are repeated in headers, by the name behind `Mcp-Param-`. */
  readonly repeated?: Readonly<Record<string, string>>;
  readonly onNotification?: (method: string, params: Json) => void;
}

/** The connection to the server. */
export interface Wire {
  /** Sends a request. Never throws. */
  send(method: string, params?: Json, options?: SendOptions): Promise<Outcome>;
  /** What the page says that it can do; may be changed. */
  capabilities: Json;
  /** Least severe log message that the server should send; may be changed. */
  logLevel?: string;
}

/** How the page reaches the server and who it says that it is. */
export interface WireOptions {
  readonly line: Line;
  /** Revision of the protocol. */
  readonly protocol: string;
  /** Version of the page. */
  readonly version: string;
  readonly onFrame: (frame: Frame) => void;
}

/** Makes the connection. */
export function createWire(
  { line, protocol, version, onFrame }: WireOptions,
  { isObject, parse }: JsonTools,
): Wire {
  const prefix = "io.modelcontextprotocol/";
  let lastId = 0;

  const wire: Wire = { send, capabilities: {} };

  async function send(method: string, params: Json = {}, options: SendOptions = {}): Promise<Outcome> {
    const id = ++lastId;
    const subject = method === "resources/read" ? params.uri : params.name;
    const named = typeof subject === "string" ? { subject } : {};
    const start = performance.now();
    const passed = () => performance.now() - start;
    const tell = (kind: Frame["kind"], text: string, status?: number) =>
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
      tell("failure", JSON.stringify({ failure: message }), status);
      return { kind: "error", message, ms: passed(), status };
    }

    // A notification on the way, or the answer.
    function read(text: string, status: number): Outcome | undefined {
      const parsed = parse(text);
      const message = "value" in parsed ? parsed.value : undefined;
      if (!isObject(message)) return fail(`The server's answer is not a message: ${text.slice(0, 200)}`, status);
      const { method: told, params: about, result, error } = message;
      if (typeof told === "string") {
        onFrame({ kind: "notification", id, method: told, text, at: Date.now(), ms: passed() });
        options.onNotification?.(told, isObject(about) ? about : {});
        return;
      }
      if (isObject(result)) {
        const { resultType, isError } = result;
        tell(resultType === "input_required" ? "question" : isError === true ? "tool error" : "result", text, status);
        return { kind: "result", result, ms: passed(), size: text.length };
      }
      tell("error", text, status);
      const { code, message: reason, data } = isObject(error) ? error : {};
      return {
        kind: "error",
        code: typeof code === "number" ? code : undefined,
        message: typeof reason === "string" ? reason : "The answer has neither a result nor an error",
        data,
        ms: passed(),
        status,
      };
    }

    const repeated = Object.fromEntries(
      Object.entries(options.repeated ?? {}).map(([name, value]) => [`mcp-param-${name}`, encode(value)]),
    );
    const headers = {
      ...repeated,
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
        return read(await response.text(), response.status) ?? fail("The answer is a notification", response.status);
      }
      for await (const data of line.events(response)) {
        const outcome = read(data, response.status);
        if (outcome) return outcome;
      }
      return fail("The stream ended without an answer", response.status);
    } catch (error) {
      if (!options.signal?.aborted) {
        return fail(`${error instanceof Error ? error.message : error}; is the server still running?`);
      }
      tell("closed", JSON.stringify({ closed: "The page has closed the stream" }));
      return { kind: "stopped", ms: passed() };
    }
  }

  /** A text as a header value: as it is where that is safe, else its UTF-8 in Base64. */
  function encode(value: string): string {
    if (/^(?![\t ])[\t -~]*(?<![\t ])$/.test(value) && !/^=\?base64\?.*\?=$/.test(value)) return value;
    return `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(value)))}?=`;
  }

  return wire;
}
