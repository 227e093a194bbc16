/**
 * The protocol of revisions without a handshake: each request describes its client.
 *
 * @see specification/2026-07-28/basic
 * @module
 */
import { HEADER_MISMATCH, UNSUPPORTED_VERSION } from "../protocol/errors.ts";
import { encodeHeaderValue } from "../protocol/header_value.ts";
import { isObject, type Params, type Result } from "../protocol/jsonrpc.ts";
import type { LogLevel } from "../protocol/types.ts";
import { findHeaderParams, type HeaderParam } from "../schema/header_params.ts";
import type { UnfinishedCall } from "./extension.ts";
import type { Message, Notification } from "./message.ts";
import { readPages } from "./pagination.ts";
import {
  type Codec,
  type Outcome,
  type RequestOptions,
  type Rpc,
  SUBSCRIPTION,
  type TestRequestOptions,
} from "./rpc.ts";
import { delay, startTimer } from "./delay.ts";
import { RpcError } from "./rpc_error.ts";
import type { ClientIdentity, Protocol, ProtocolOptions, ServerFacts } from "./protocol.ts";
import { type SubscriptionFilter, toSubscription, type Watch } from "./subscription.ts";

const META = "io.modelcontextprotocol/";
/** The parameter that the `Mcp-Name` header repeats, by method. */
const NAMED: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
  "tasks/cancel": "taskId",
};
const MAX_ROUNDS = 64;
const RETRY_MS = 1000;
const MAX_RETRY_MS = 30_000;

/** Adds the description of the client to messages. Learns from tool lists which arguments headers must repeat. */
export class ModernCodec implements Codec {
  readonly hasSession = false;
  /** The protocol revision of requests. */
  version: string;
  /** The least severe log level that requests ask for. */
  logLevel?: LogLevel;
  readonly #identity: ClientIdentity;
  readonly #subjects: Readonly<Record<string, string>>;
  readonly #mirrored = new Map<unknown, readonly HeaderParam[]>();

  /** The codec of a client. */
  constructor(version: string, identity: ClientIdentity) {
    this.version = version;
    this.logLevel = identity.logLevel;
    this.#identity = identity;
    this.#subjects = Object.assign({}, ...identity.extensions?.map(({ subjects }) => subjects) ?? []);
  }

  toParams(params: Params): Params {
    const _meta = {
      [META + "protocolVersion"]: this.version,
      [META + "clientInfo"]: this.#identity.info,
      [META + "clientCapabilities"]: this.#identity.capabilities,
      [META + "logLevel"]: this.logLevel,
      ...isObject(params._meta) ? params._meta : {},
    };
    return { ...params, _meta };
  }

  toHeaders({ method = "", params = {} }: Message): Readonly<Record<string, string>> {
    const headers: Record<string, string> = { "mcp-protocol-version": this.version, "mcp-method": method };
    const name = params[this.#subjects[method] ?? NAMED[method]];
    if (typeof name === "string") headers["mcp-name"] = encodeHeaderValue(name);
    for (const { header, path } of method === "tools/call" ? this.#mirrored.get(name) ?? [] : []) {
      const value = path.reduce<unknown>(
        (at, key) => isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined,
        params.arguments,
      );
      if (value !== undefined && value !== null) headers[`mcp-param-${header}`] = encodeHeaderValue(String(value));
    }
    return headers;
  }

  /** Learns which arguments of a tool headers must repeat. @throws {TypeError} if they cannot be repeated. */
  learn({ name, inputSchema }: Params): void {
    this.#mirrored.delete(name);
    if (isObject(inputSchema)) this.#mirrored.set(name, findHeaderParams(inputSchema));
  }
}

/** The options of {@linkcode modernProtocol}. */
export interface ModernOptions extends ProtocolOptions {
  readonly server: ServerFacts;
  /** The protocol revisions of the client, best first. */
  readonly versions: readonly string[];
}

/** Returns the protocol of a connection. */
export function modernProtocol(rpc: Rpc, codec: ModernCodec, options: ModernOptions): Protocol {
  const { answer, onWarning, recovers, versions, extensions = [] } = options;
  const hasHeaders = rpc.channel.openStream !== undefined;
  const watches = new Set<() => Promise<void>>();

  async function request(method: string, params: Params, given: TestRequestOptions = {}): Promise<Outcome> {
    let outcome = await send(method, params, given);
    for (let round = 0; outcome.result.resultType === "input_required" && given.rounds !== false; round++) {
      if (round >= MAX_ROUNDS) throw new Error(`Cannot finish ${method}: the server asked ${MAX_ROUNDS} times`);
      const { inputRequests, requestState } = outcome.result;
      // Without questions, the server wants a retry later.
      if (!isObject(inputRequests)) await delay(Math.min(100 * 2 ** round, 5000), given.signal);
      const next = {
        ...params,
        ...isObject(inputRequests) && { inputResponses: await toResponses(inputRequests, given.signal) },
        ...requestState !== undefined && { requestState },
      };
      outcome = await send(method, next, { ...given, id: undefined });
    }
    const { resultType = "complete" } = outcome.result;
    if (resultType !== "complete" && resultType !== "input_required") {
      const own = extensions.find(({ results }) => results.has(String(resultType)));
      if (!own && !isDeclared(resultType, options)) {
        throw new Error(`Cannot use the result of ${method}: no extension was declared for a ${resultType}`);
      }
      const finish = given.finish === false || given.rounds === false ? undefined : own?.results;
      const call = { method, params, signal: given.signal ?? new AbortController().signal };
      const result = await finish?.get(String(resultType))?.(outcome.result, toUnfinished(call));
      return result ? { ...outcome, result } : outcome;
    }
    return method === "tools/list" && hasHeaders ? { ...outcome, result: withoutUnusable(outcome.result) } : outcome;
  }

  function toUnfinished(call: Pick<UnfinishedCall, "method" | "params" | "signal">): UnfinishedCall {
    return {
      ...call,
      request: async (method, params = {}, options) => (await request(method, params, options)).result,
      answer: ({ method, params }) => answerOne(method, params, call.signal),
      subscribe: (filter) => toSubscription((onChange) => watch(filter, onChange)),
    };
  }

  async function toResponses(requests: Params, signal = new AbortController().signal): Promise<Params> {
    const responses: Record<string, unknown> = {};
    // One after the other, because there is one user.
    for (const [key, asked] of Object.entries(requests)) {
      if (!isObject(asked) || typeof asked.method !== "string") throw new Error(`Cannot read the question ${key}`);
      signal.throwIfAborted();
      responses[key] = await answerOne(asked.method, isObject(asked.params) ? asked.params : {}, signal);
    }
    return responses;
  }

  // Not an RpcError, because that would look as if the server had refused the call.
  async function answerOne(method: string, params: Params, signal: AbortSignal): Promise<unknown> {
    try {
      return await answer({ method, params }, signal);
    } catch (cause) {
      if (signal.aborted || !(cause instanceof RpcError)) throw cause;
      throw new Error(`Cannot finish the request: ${cause.message}`, { cause });
    }
  }

  async function send(method: string, params: Params, options: TestRequestOptions): Promise<Outcome> {
    try {
      return await rpc.request(method, params, options);
    } catch (error) {
      if (!recovers || !(error instanceof RpcError) || !await recover(method, error)) throw error;
      return await rpc.request(method, params, options);
    }
  }

  // Returns whether a refused request may be sent again.
  async function recover(method: string, error: RpcError): Promise<boolean> {
    if (error.code === UNSUPPORTED_VERSION) {
      const version = versions.find((each) => readSupported(error).includes(each));
      if (version) codec.version = version;
      return version !== undefined;
    }
    if (error.code !== HEADER_MISMATCH || method !== "tools/call" || !hasHeaders) return false;
    // The tool may have changed, or was never listed. Its schema says which headers it needs.
    const pages = readPages({
      what: "tools",
      timeoutMs: rpc.timeoutMs,
      request: async (params, timeoutMs) => (await request("tools/list", { ...params }, { timeoutMs })).result,
    });
    // `request` learns from each page.
    for await (const _ of pages);
    return true;
  }

  // Leaves out tools that cannot be called as the protocol requires.
  function withoutUnusable(result: Result): Result {
    if (!Array.isArray(result.tools)) return result;
    const tools = result.tools.filter((tool) => {
      try {
        if (isObject(tool)) codec.learn(tool);
        return true;
      } catch (error) {
        if (!recovers) throw error;
        onWarning(`Cannot offer the tool ${tool.name}: ${error instanceof Error ? error.message : error}`);
        return false;
      }
    });
    return { ...result, tools };
  }

  async function watch(filter: SubscriptionFilter, onChange: (notification: Notification) => void): Promise<Watch> {
    const stop = new AbortController();
    const { promise: acknowledged, resolve, reject } = Promise.withResolvers<SubscriptionFilter>();
    const late = new DOMException(`Cannot subscribe: no response in ${rpc.timeoutMs} ms`, "TimeoutError");
    const stopTimer = startTimer(rpc.timeoutMs, () => stop.abort(late));
    const ended = keepListening();

    async function keepListening(): Promise<Result | undefined> {
      for (let retryMs = RETRY_MS;; retryMs = Math.min(retryMs * 2, MAX_RETRY_MS)) {
        let isOpen = false;
        try {
          const { result } = await listen(() => isOpen = true);
          reject(new Error("Cannot subscribe: the server ended the subscription at once"));
          return result;
        } catch (error) {
          reject(error);
          const isLost = hasHeaders && recovers && !(error instanceof RpcError && error.code);
          if (!isLost || stop.signal.aborted || await isRefused()) return;
        }
        if (isOpen) retryMs = RETRY_MS;
        await delay(retryMs, stop.signal).catch(() => {});
      }
    }

    // Returns whether the server refused the subscription.
    function isRefused(): Promise<boolean> {
      return acknowledged.then(() => false, () => true);
    }

    async function listen(onOpen: () => void): Promise<Outcome> {
      const options: RequestOptions = {
        signal: stop.signal,
        timeoutMs: Infinity,
        onNotification({ method, params }) {
          if (!isObject(params._meta) || !(SUBSCRIPTION in params._meta)) return;
          if (method !== "notifications/subscriptions/acknowledged") return onChange({ method, params });
          onOpen();
          resolve(toGranted(isObject(params.notifications) ? params.notifications : {}));
        },
      };
      const { extensions, ...own } = filter;
      return await send("subscriptions/listen", { notifications: { ...extensions, ...own } }, options);
    }

    async function close(): Promise<void> {
      stop.abort(new DOMException("The subscription was closed", "AbortError"));
      await ended;
    }

    watches.add(close);
    ended.then(() => watches.delete(close));
    try {
      return { granted: await acknowledged, ended, close };
    } finally {
      stopTimer();
    }
  }

  return {
    get server() {
      return { ...options.server, version: codec.version };
    },
    request,
    watch,
    async setLogLevel(level) {
      codec.logLevel = level;
      await undefined;
    },
    // A server on stdio cannot tell otherwise which revision a notification of an extension belongs to.
    notify: (method, params) =>
      rpc.notify(method, !extensions.length || PROTOCOL.test(method) ? params : codec.toParams(params ?? {})),
    async close() {
      await Promise.all([...watches].map((close) => close()));
    },
  };
}

/** The result types of known extensions, with the id of the extension. */
const EXTENSION_RESULTS: Readonly<Record<string, string>> = { task: "io.modelcontextprotocol/tasks" };

/** Notifications of the protocol itself, of any revision. */
const PROTOCOL = /^notifications\/(cancelled|initialized|progress|roots\/.*)$/;

/** Whether a declared extension without functions of its own adds a result type. Any extension may add any type. */
function isDeclared(resultType: unknown, { capabilities, extensions: own = [] }: ProtocolOptions): boolean {
  const { extensions = {} } = capabilities;
  if (typeof resultType !== "string") return false;
  if (Object.hasOwn(EXTENSION_RESULTS, resultType)) return Object.hasOwn(extensions, EXTENSION_RESULTS[resultType]);
  const known = own.map(({ id }) => id);
  return Object.keys(extensions).some((id) => !id.startsWith(META) && !known.includes(id));
}

/** Moves the keys of extensions to a place of their own. */
function toGranted(
  { toolsListChanged, promptsListChanged, resourcesListChanged, resourceSubscriptions, ...extensions }: Params,
): SubscriptionFilter {
  const own = { toolsListChanged, promptsListChanged, resourcesListChanged, resourceSubscriptions };
  const given = Object.entries(own).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(given), ...Object.keys(extensions).length ? { extensions } : {} };
}

/** The protocol revisions that a server names when it refuses one. */
export function readSupported({ data }: RpcError): readonly unknown[] {
  return isObject(data) && Array.isArray(data.supported) ? data.supported : [];
}
