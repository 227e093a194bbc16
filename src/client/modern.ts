/**
 * The protocol of revisions without a handshake, in which each request contains the client's name and capabilities.
 *
 * @see specification/2026-07-28/basic
 */
import {
  HEADER_MISMATCH,
  isMcpError,
  isRemoteError,
  type McpError,
  UNSUPPORTED_VERSION,
} from "../core/protocol/errors.ts";
import { encodeHeaderValue } from "../core/protocol/header_value.ts";
import { isObject, type Params, type Result } from "../core/protocol/jsonrpc.ts";
import type { LogLevel } from "../core/protocol/types.ts";
import { findHeaderParams, type HeaderParam } from "../core/schema/header_params.ts";
import type { Asked } from "./answer_budget.ts";
import type { OriginatingRequest, ServerRequest } from "./answer_options.ts";
import type { PendingRequest } from "./extension.ts";
import type { Message, Notification } from "./message.ts";
import { readPages } from "./pagination.ts";
import {
  type AnswerQuestionOptions,
  type Codec,
  type Outcome,
  type RequestOptions,
  type Rpc,
  type SentRequestOptions,
  SUBSCRIPTION,
} from "./rpc.ts";
import { deadline, delay } from "../core/kit/deadline.ts";
import { BoundedMap } from "../core/kit/bounded_map.ts";
import { readAt } from "../core/kit/json.ts";
import { startPatientTimer } from "./deadline.ts";
import type { ClientIdentity, Protocol, ProtocolOptions, ServerInfo } from "./protocol.ts";
import { type SubscriptionFilter, toSubscription, type Watch } from "./subscription.ts";
import { toShown } from "./shown.ts";

const META = "io.modelcontextprotocol/";
/** The name of the parameter that the `Mcp-Name` header must repeat, by method. */
const NAMED: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
  "tasks/cancel": "taskId",
};
/** Maximum number of results without a final result. Results with input requests also count as answers. */
const MAX_ROUNDS = 64;
/** Maximum number of tools whose headers the codec remembers. */
const MAX_TOOLS = 10_000;
const RETRY_MS = 1000;
/** Milliseconds for which closing a client waits until extensions have cancelled their work on the server. */
const SETTLE_MS = 1000;
const MAX_RETRY_MS = 30_000;

/** Remembers which arguments the calls to listed tools must repeat in headers. */
export class ModernCodec implements Codec {
  readonly hasSession = false;
  version: string;
  /** The least severe level that the server should send. */
  logLevel?: LogLevel;
  readonly #identity: ClientIdentity;
  readonly #subjects: Readonly<Record<string, string>>;
  readonly #mirrored = new BoundedMap<unknown, readonly HeaderParam[]>({ full: "evict", max: MAX_TOOLS });

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
      const value = readAt(params.arguments, path);
      if (value === undefined || value === null) continue;
      // A number whose digits are kept is an object.
      headers[`mcp-param-${header}`] = encodeHeaderValue(isObject(value) ? JSON.stringify(value) : String(value));
    }
    return headers;
  }

  /**
   * Remembers which arguments the calls to a tool must repeat in headers.
   *
   * @throws {TypeError} if the tool's schema requires a header that is invalid.
   */
  learn({ name, inputSchema }: Params): void {
    this.#mirrored.delete(name);
    const headers = isObject(inputSchema) ? findHeaderParams(inputSchema) : [];
    if (!headers.length) return;
    // Forgetting a tool is safe, because the client lists the tools again if the server rejects a call with missing
    // headers.
    this.#mirrored.set(name, headers);
  }
}

export interface ModernOptions extends ProtocolOptions {
  readonly server: ServerInfo;
  readonly versions: readonly string[];
}

export class ModernProtocol implements Protocol {
  readonly #rpc: Rpc;
  readonly #codec: ModernCodec;
  readonly #options: ModernOptions;
  /** Whether requests have HTTP headers, in which some parameters must be repeated. */
  readonly #hasHeaders: boolean;
  readonly #subscriptions = new Set<ModernSubscription>();
  /** Aborts when the client or the server has closed the connection. */
  readonly #closed = new AbortController();
  readonly #finishing = new Set<Finishing>();

  constructor(rpc: Rpc, codec: ModernCodec, options: ModernOptions) {
    const lost = new DOMException("Cannot continue the request: the server closed the connection", "NetworkError");
    rpc.channel.ended?.then(() => this.#closed.abort(lost));
    this.#rpc = rpc;
    this.#codec = codec;
    this.#options = options;
    this.#hasHeaders = rpc.channel.openStream !== undefined;
  }

  get server(): ServerInfo {
    return { ...this.#options.server, version: this.#codec.version };
  }

  async request(
    method: string,
    params: Params,
    { asked = { count: 0 }, ...given }: SentRequestOptions = {},
  ): Promise<Outcome> {
    const options = this.#withCapabilities({ ...given, asked });
    const outcome = options.resume ? { result: options.resume } : await this.#sendWithAnswers(method, params, options);
    const { resultType = "complete" } = outcome.result;
    if (resultType !== "complete" && resultType !== "input_required") {
      return await this.#finish(outcome, { method, params }, options);
    }
    if (method !== "tools/list" || !this.#hasHeaders) return outcome;
    return { ...outcome, result: this.#withoutUnusable(outcome.result) };
  }

  async watch(filter: SubscriptionFilter, onChange: (notification: Notification) => void): Promise<Watch> {
    const subscription = new ModernSubscription({
      timeoutMs: this.#rpc.timeoutMs,
      waitedMs: this.#rpc.waitedMs,
      recovers: this.#hasHeaders && this.#options.recovers,
      onChange,
      listen: (options) => {
        const { extensions, ...own } = filter;
        return this.#send("subscriptions/listen", { notifications: { ...extensions, ...own } }, options);
      },
    });
    this.#subscriptions.add(subscription);
    subscription.ended.then(() => this.#subscriptions.delete(subscription));
    return await subscription.open();
  }

  async setLogLevel(level: LogLevel): Promise<void> {
    this.#codec.logLevel = level;
    await undefined;
  }

  async notify(method: string, params?: Params): Promise<void> {
    // Add the revision to notifications of extensions, because a server on stdio cannot find out the revision in
    // another way.
    const isOfExtension = this.#options.extensions?.length && !PROTOCOL.test(method);
    await this.#rpc.notify(method, isOfExtension ? this.#codec.toParams(params ?? {}) : params);
  }

  async close(): Promise<void> {
    this.#closed.abort(new DOMException("Cannot continue the request: the client was closed", "AbortError"));
    await Promise.all([...this.#subscriptions].map((subscription) => subscription.close()));
    // Wait for extensions that are cancelling their work on the server.
    const cancelled = [...this.#finishing].filter(({ signal }) => signal.aborted).map(({ ended }) => ended);
    await deadline(Promise.all(cancelled), { ms: SETTLE_MS, onTimeout: () => {} });
  }

  /** Adds the capabilities for the callbacks that belong only to this request. */
  #withCapabilities(options: CountedRequest): CountedRequest {
    if (!options.capabilities) return options;
    const capabilities = { ...this.#options.capabilities, ...options.capabilities };
    return { ...options, meta: { [META + "clientCapabilities"]: capabilities, ...options.meta } };
  }

  /** While the result requires input, answers the input requests, and sends the request again. */
  async #sendWithAnswers(method: string, params: Params, given: CountedRequest): Promise<Outcome> {
    const options = {
      ...given,
      ...this.#options.extensions?.length && { onLate: this.#toLate(method, params, given) },
    };
    let outcome = await this.#send(method, params, options);
    for (let round = 0; outcome.result.resultType === "input_required" && options.rounds !== false; round++) {
      if (round >= MAX_ROUNDS) {
        throw new Error(
          `Cannot finish ${method}: the server still requires input after ${MAX_ROUNDS} rounds, which is the limit`,
        );
      }
      const { inputRequests, requestState } = outcome.result;
      // A result without input requests means that the client should retry the request after a delay.
      if (!isObject(inputRequests)) await delay(Math.min(100 * 2 ** round, 5000), { signal: options.signal });
      const next = {
        ...params,
        ...isObject(inputRequests) &&
          {
            inputResponses: await this.#answerAll(inputRequests, { method, params }, {
              ...options,
              ...toAnswer(outcome),
            }),
          },
        ...requestState !== undefined && { requestState },
      };
      outcome = { ...await this.#send(method, next, { ...options, id: undefined }), isRetried: true };
    }
    return outcome;
  }

  /**
   * Returns the function that passes the late result of a cancelled request to the extension that defines the result,
   * so that the extension can cancel the work on the server.
   */
  #toLate(method: string, params: Params, options: CountedRequest): SentRequestOptions["onLate"] {
    return (result) => {
      const { resultType = "complete" } = result;
      if (resultType === "complete" || resultType === "input_required") return;
      // Also finish a result that the program wanted unchanged, because the program no longer receives the result.
      const signal = AbortSignal.abort(options.signal?.reason);
      this.#finish({ result }, { method, params }, { ...options, signal, finish: true, rounds: true }).catch(() => {});
    };
  }

  async #answerAll(requests: Params, request: OriginatingRequest, options: CountedRequest): Promise<Params> {
    const { signal = new AbortController().signal, answer } = options;
    const responses: Record<string, unknown> = {};
    // Charge all input requests before answering the first, so that nobody answers in vain.
    this.#charge(options.asked, Object.keys(requests).length, request);
    // Answer one input request after another, because there is only one user.
    for (const [key, asked] of Object.entries(requests)) {
      if (!isObject(asked) || typeof asked.method !== "string") {
        throw new Error(`Cannot read the input request ${toShown(key)}: the method is missing`);
      }
      signal.throwIfAborted();
      const params = isObject(asked.params) ? asked.params : {};
      responses[key] = await this.#answer({ method: asked.method, params, key, request }, { signal, answer });
    }
    return responses;
  }

  #charge(asked: Asked, count: number, { method }: OriginatingRequest): void {
    const { budget } = this.#rpc;
    if (budget.charge(asked, count)) return;
    throw new Error(
      `Cannot finish ${method}: ${budget.explain()}; if the server needs more answers, increase maxAnswers of connect`,
    );
  }

  /** Never throws an `McpError`, because the caller would mistake the error for a response from the server. */
  async #answer(question: ServerRequest, options: AnswerQuestionOptions): Promise<unknown> {
    try {
      return await this.#rpc.answer(question, options);
    } catch (cause) {
      if (options.signal.aborted || !(isMcpError(cause) || isRemoteError(cause))) throw cause;
      throw new Error(cause.message, { cause });
    }
  }

  /** Converts a result that an extension defines to a final result, unless the caller wants the result unchanged. */
  async #finish(
    outcome: Outcome,
    { method, params }: Pick<PendingRequest, "method" | "params">,
    options: CountedRequest,
  ): Promise<Outcome> {
    const { resultType } = outcome.result;
    const own = this.#options.extensions?.find(({ results }) => results.has(String(resultType)));
    if (!own && !isDeclared(resultType, this.#options)) {
      throw new Error(
        `Cannot use the result of ${method}: the server sent the result type ${
          toShown(resultType)
        }, but the client has declared no extension for this type`,
      );
    }
    const finish = options.finish === false || options.rounds === false
      ? undefined
      : own?.results.get(String(resultType));
    if (!finish) return outcome;
    const call = this.#toUnfinished({ method, params }, options, toAnswer(outcome));
    const result = finish(outcome.result, call);
    const finishing = { signal: call.signal, ended: result.catch(() => {}) };
    this.#finishing.add(finishing);
    finishing.ended.then(() => this.#finishing.delete(finishing));
    return { ...outcome, result: await result };
  }

  #toUnfinished(
    request: OriginatingRequest,
    options: CountedRequest,
    hooked: Pick<Outcome, "answer">,
  ): PendingRequest {
    const { signal = new AbortController().signal, asked, answer, capabilities, headers, onProgress, resume } = options;
    return {
      ...request,
      signal,
      closed: this.#closed.signal,
      isResumed: resume !== undefined,
      onProgress,
      // Use the capabilities and the answer function of the original request, because the server sends only input
      // requests for which a request declares the capability.
      request: async (method, params = {}, options) =>
        (await this.request(method, params, { signal, answer, capabilities, headers, ...options, asked })).result,
      answer: async (question, options) => {
        this.#charge(asked, 1, request);
        return await this.#answer({ request, ...question }, { signal, answer, ...hooked, ...options });
      },
      subscribe: async (filter) => {
        const subscription = await toSubscription((onChange) => this.watch(filter, onChange), this.#rpc.held);
        const close = () => void subscription.close().catch(() => {});
        if (signal.aborted) close();
        else signal.addEventListener("abort", close, { once: true });
        return subscription;
      },
    };
  }

  async #send(method: string, params: Params, options: SentRequestOptions): Promise<Outcome> {
    try {
      return await this.#rpc.request(method, params, options);
    } catch (error) {
      const recovers = this.#options.recovers && isRemoteError(error) && await this.#recover(method, error);
      if (!recovers) throw error;
      return await this.#rpc.request(method, params, options);
    }
  }

  /** Tries to fix the cause of an error response. Returns whether the request can be sent again. */
  async #recover(method: string, error: McpError): Promise<boolean> {
    if (error.code === UNSUPPORTED_VERSION) {
      const supported = readSupported(error);
      const version = this.#options.versions.find((each) => supported.includes(each));
      if (version) this.#codec.version = version;
      return version !== undefined;
    }
    if (error.code !== HEADER_MISMATCH || method !== "tools/call" || !this.#hasHeaders) return false;
    // List the tools to learn which headers the call needs, because the tool may have changed, or may never have been
    // listed.
    const pages = readPages({
      what: "tools",
      timeoutMs: this.#rpc.timeoutMs,
      // Answer no input requests, because the list is not the request of the program.
      request: async (params, timeoutMs) =>
        (await this.request("tools/list", { ...params }, { timeoutMs, rounds: false })).result,
    });
    // `request` passes the tools on each page to the codec.
    for await (const _ of pages);
    return true;
  }

  /** Removes tools that cannot be called, because their schema requires invalid headers. */
  #withoutUnusable(result: Result): Result {
    if (!Array.isArray(result.tools)) return result;
    const tools = result.tools.filter((tool) => {
      try {
        if (isObject(tool)) this.#codec.learn(tool);
        return true;
      } catch (error) {
        if (!this.#options.recovers) throw error;
        const state = error instanceof Error ? error.message : error;
        this.#options.onWarning(`Cannot list the tool ${toShown(tool.name)}: ${toShown(state)}`);
        return false;
      }
    });
    return { ...result, tools };
  }
}

type CountedRequest = SentRequestOptions & { readonly asked: Asked };

interface Finishing {
  readonly signal: AbortSignal;
  readonly ended: Promise<unknown>;
}

interface ModernSubscriptionOptions {
  /** Milliseconds to wait for the server's acknowledgement. */
  readonly timeoutMs: number;
  /** Returns the milliseconds for which requests have waited for a user. The timeout does not include them. */
  readonly waitedMs: () => number;
  /** Whether to subscribe again if the connection is lost. */
  readonly recovers: boolean;
  readonly onChange: (notification: Notification) => void;
  /** Sends the request. The response arrives only when the subscription ends. */
  readonly listen: (options: RequestOptions) => Promise<Outcome>;
}

/** A subscription. It is a long-running request, which the client sends again if the connection is lost. */
class ModernSubscription {
  /**
   * Resolves when the subscription has ended and will not be opened again: with the server's result if the server has
   * ended the subscription, otherwise with `undefined`.
   */
  readonly ended: Promise<Result | undefined>;
  readonly #options: ModernSubscriptionOptions;
  readonly #stop = new AbortController();
  readonly #acknowledged = Promise.withResolvers<SubscriptionFilter>();
  readonly #stopTimer: () => void;

  constructor(options: ModernSubscriptionOptions) {
    this.#options = options;
    const late = new DOMException(`Cannot subscribe: no response within ${options.timeoutMs} ms`, "TimeoutError");
    this.#stopTimer = startPatientTimer(options.timeoutMs, options.waitedMs, () => this.#stop.abort(late));
    this.ended = this.#keepListening();
  }

  async open(): Promise<Watch> {
    try {
      const granted = await this.#acknowledged.promise;
      return { granted, ended: this.ended, close: () => this.close() };
    } finally {
      this.#stopTimer();
    }
  }

  async close(): Promise<void> {
    this.#stop.abort(new DOMException("The subscription was closed", "AbortError"));
    await this.ended;
  }

  async #keepListening(): Promise<Result | undefined> {
    for (let retryMs = RETRY_MS;; retryMs = Math.min(retryMs * 2, MAX_RETRY_MS)) {
      let openSince: number | undefined;
      try {
        const { result } = await this.#listen(() => openSince = performance.now());
        this.#acknowledged.reject(
          new Error("Cannot subscribe: the server ended the subscription without acknowledging it"),
        );
        return result;
      } catch (error) {
        this.#acknowledged.reject(error);
        const isLost = this.#options.recovers && !(isRemoteError(error) && error.code);
        if (!isLost || this.#stop.signal.aborted || await this.#isRefused()) return;
      }
      if (openSince !== undefined) {
        retryMs = RETRY_MS;
        // If the stream has worked for a while, subscribe again without a delay, because changes are lost until the new
        // subscription is open. The server may have ended the stream only because the credentials have expired.
        if (performance.now() - openSince > RETRY_MS) continue;
      }
      await delay(retryMs, { signal: this.#stop.signal }).catch(() => {});
    }
  }

  #listen(onOpen: () => void): Promise<Outcome> {
    return this.#options.listen({
      signal: this.#stop.signal,
      timeoutMs: Infinity,
      onNotification: ({ method, params }) => {
        if (!isObject(params._meta) || !(SUBSCRIPTION in params._meta)) return;
        if (method !== "notifications/subscriptions/acknowledged") return this.#options.onChange({ method, params });
        onOpen();
        this.#acknowledged.resolve(toGranted(isObject(params.notifications) ? params.notifications : {}));
      },
    });
  }

  #isRefused(): Promise<boolean> {
    return this.#acknowledged.promise.then(() => false, () => true);
  }
}

/** Returns the function that passes questions through the middleware of the request, if middleware wants to see them. */
function toAnswer({ answer }: Outcome): Pick<Outcome, "answer"> {
  return answer ? { answer } : {};
}

/** The ids of known extensions, by the result type that they define. */
const EXTENSION_RESULTS: Readonly<Record<string, string>> = { task: "io.modelcontextprotocol/tasks" };

/** Matches the notifications that clients send in any protocol revision, without extensions. */
const PROTOCOL = /^notifications\/(cancelled|initialized|progress|roots\/.*)$/;

/** Whether a declared extension may define a result type. An unknown extension may define any type. */
function isDeclared(resultType: unknown, { capabilities, extensions: own = [] }: ProtocolOptions): boolean {
  const { extensions = {} } = capabilities;
  if (typeof resultType !== "string") return false;
  if (Object.hasOwn(EXTENSION_RESULTS, resultType)) return Object.hasOwn(extensions, EXTENSION_RESULTS[resultType]);
  const known = own.map(({ id }) => id);
  return Object.keys(extensions).some((id) => !id.startsWith(META) && !known.includes(id));
}

/** Moves the keys that extensions define in a granted filter to the field `extensions`. */
function toGranted(
  { toolsListChanged, promptsListChanged, resourcesListChanged, resourceSubscriptions, ...extensions }: Params,
): SubscriptionFilter {
  const own = { toolsListChanged, promptsListChanged, resourcesListChanged, resourceSubscriptions };
  const given = Object.entries(own).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(given), ...Object.keys(extensions).length ? { extensions } : {} };
}

/** Returns the supported protocol revisions in the error of a server that has rejected a revision. */
export function readSupported({ data }: McpError): readonly unknown[] {
  return isObject(data) && Array.isArray(data.supported) ? data.supported : [];
}
