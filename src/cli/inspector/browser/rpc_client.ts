/**
 * Sends requests in revision 2026-07-28, and logs all messages.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http
 */
import { readErrorId } from "../../../core/kit/error_id.ts";
import { isObject } from "../../../core/kit/json.ts";
import { encodeHeaderValue } from "../../../core/protocol/header_value.ts";
import { protocol, version } from "./config.ts";
import type { Frame, FrameKind, Outcome } from "./exchange.ts";
import { type Json, parseJson, toObject, toObjects, toText } from "./json.ts";
import { logFrame } from "./message_log.ts";
import { client } from "./server_facts.ts";
import { findFault, post, readData } from "./transport.ts";

export interface SendOptions {
  readonly signal?: AbortSignal;
  /** Values of `Mcp-Param-` headers, by header name without the prefix. */
  readonly paramHeaders?: Readonly<Record<string, string>>;
  /** The call to which the request belongs. */
  readonly call?: string;
  readonly onNotification?: (method: string, params: Json) => void;
}

const PREFIX = "io.modelcontextprotocol/";
let lastId = 0;

/** Sends a request. Never throws: a failure is returned as an outcome. */
export async function send(method: string, params: Json = {}, options: SendOptions = {}): Promise<Outcome> {
  const { signal, paramHeaders = {} } = options;
  const name = method === "resources/read" ? params.uri : method.startsWith("tasks/") ? params.taskId : params.name;
  const exchange = new Exchange(method, typeof name === "string" ? name : undefined, options);
  const headers = {
    ...Object.fromEntries(
      Object.entries(paramHeaders).map(([name, value]) => [`mcp-param-${name}`, encodeHeaderValue(value)]),
    ),
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": protocol,
    "mcp-method": method,
    ...typeof name === "string" ? { "mcp-name": encodeHeaderValue(name) } : {},
  };
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: exchange.id,
    method,
    params: { ...params, _meta: { ...toMeta(), ...toObject(params._meta) } },
  });
  exchange.log("request", body, { headers });
  try {
    const response = await post(body, { headers, signal });
    const { status } = response;
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
      const text = await response.text();
      return await exchange.readAll(text, status) ?? exchange.fail("The response is a notification", status);
    }
    for await (const data of readData(response)) {
      const outcome = await exchange.readAll(data, status);
      if (outcome) return outcome;
    }
    return exchange.fail("The stream ended without a response", status);
  } catch (error) {
    if (!signal?.aborted) {
      return exchange.fail(`${error instanceof Error ? error.message : error}; is the server still running?`);
    }
    exchange.log("closed", JSON.stringify({ closed: "The page closed the stream" }));
    return { kind: "stopped", ms: exchange.ms };
  }
}

function findErrorId(outcome: Outcome): string | undefined {
  if (outcome.kind === "error") return toText(toObject(outcome.data).errorId);
  if (outcome.kind !== "result" || outcome.result.isError !== true) return;
  return toObjects(outcome.result.content).map(({ text }) => readErrorId(String(text))).find(Boolean);
}

function toMeta(): Json {
  return {
    [`${PREFIX}protocolVersion`]: protocol,
    [`${PREFIX}clientInfo`]: { name: "inspector", version },
    [`${PREFIX}clientCapabilities`]: client.capabilities,
    ...client.logLevel ? { [`${PREFIX}logLevel`]: client.logLevel } : {},
  };
}

class Exchange {
  readonly id: number = ++lastId;
  readonly #method: string;
  readonly #subject: string | undefined;
  readonly #options: SendOptions;
  readonly #start = performance.now();

  constructor(method: string, subject: string | undefined, options: SendOptions) {
    this.#method = method;
    this.#subject = subject;
    this.#options = options;
  }

  /** Milliseconds since the request was sent. */
  get ms(): number {
    return performance.now() - this.#start;
  }

  log(kind: FrameKind, text: string, more: Partial<Frame> = {}): void {
    const { call } = this.#options;
    logFrame({ kind, id: this.id, call, method: this.#method, subject: this.#subject, text, ms: this.ms, ...more });
  }

  fail(message: string, status?: number): Outcome {
    this.log("failure", JSON.stringify({ failure: message }), { status });
    return { kind: "error", message, ms: this.ms, status };
  }

  /** Adds the reason to an unexpected error. Returns `undefined` for a notification. */
  async readAll(text: string, status: number): Promise<Outcome | undefined> {
    const outcome = this.read(text, status);
    const id = outcome && findErrorId(outcome);
    const why = id === undefined ? undefined : await findFault(id);
    if (outcome === undefined || outcome.kind === "stopped" || why === undefined) return outcome;
    this.log("fault", why);
    return { ...outcome, why };
  }

  /** Reads and logs a message. Returns `undefined` for a notification. */
  read(text: string, status: number): Outcome | undefined {
    const parsed = parseJson(text);
    const message = "value" in parsed ? parsed.value : undefined;
    if (!isObject(message)) {
      return this.fail(`The server's response is not a JSON-RPC message: ${text.slice(0, 200)}`, status);
    }
    const { method, params, result, error } = message;
    if (typeof method === "string") {
      this.log("notification", text, { method, subject: undefined });
      return void this.#options.onNotification?.(method, toObject(params));
    }
    if (isObject(result)) {
      const { resultType, isError } = result;
      const kind = resultType === "input_required" ? "question" : isError === true ? "tool-error" : "result";
      this.log(kind, text, { status });
      return { kind: "result", result, ms: this.ms, size: text.length };
    }
    this.log("error", text, { status });
    const { code, message: reason, data } = toObject(error);
    return {
      kind: "error",
      code: typeof code === "number" ? code : undefined,
      message: typeof reason === "string" ? reason : "The response has neither a result nor an error",
      data,
      ms: this.ms,
      status,
    };
  }
}
