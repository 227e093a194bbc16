/**
 * A connection of the page to another server: a client whose requests come from the page.
 *
 * @module
 */
import {
  type AnswerContext,
  type AnswerOptions,
  type Client,
  connect,
  type ElicitResult,
  McpError,
  type Notification,
  type Params,
  type Result,
  type Root,
  type SamplingResult,
  type SubscriptionFilter,
  type Target,
} from "../../client/client.ts";
import { INTERNAL_ERROR, INVALID_REQUEST } from "../protocol.ts";
import { isObject } from "../../kit/json.ts";
import { LOG_LEVELS } from "../client/log_messages.ts";
import { EventQueue } from "./event_queue.ts";

/** Options of a connection. */
export interface ConnectionOptions {
  readonly target: Target;
  /** The headers of every HTTP request. */
  readonly headers: Readonly<Record<string, string>>;
  /** The only protocol revision to use. Defaults to the newest that the server supports. */
  readonly revision?: string;
  /** The capabilities of the page. */
  readonly capabilities: Params;
  /** Called with an event for the page. */
  readonly onEvent: (event: Params) => void;
  /** Called when the server has closed the connection. */
  readonly onGone: () => void;
  /** Cancels connecting. */
  readonly signal: AbortSignal;
}

const META = "io.modelcontextprotocol/";
/** How long to wait for a server to close the connection, in milliseconds. */
const CLOSE_TIMEOUT_MS = 2500;
/** The number of requests of the server that may wait for the user. */
const MAX_QUESTIONS = 20;

/** A client whose server requests are shown by the page. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #questions = new Map<string, PromiseWithResolvers<unknown>>();
  #client: Client | undefined;
  #level: unknown;
  #count = 0;

  /** Creates a connection. `open` opens it. */
  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /**
   * Connects.
   *
   * @throws if the server cannot be reached.
   */
  async open(): Promise<void> {
    const { target, headers, revision, signal } = this.#options;
    const client = await connect(target, {
      ...this.#toAnswers(),
      headers,
      revisions: revision === undefined ? undefined : [revision],
      signal,
      timeoutMs: 30_000,
      onWarning: (text) => this.#options.onEvent({ kind: "warning", text: text.slice(0, 2000) }),
    });
    if (signal.aborted) await client.close();
    else this.#client = client;
  }

  /** Sends a request of the page. Yields the messages of the server, of which the last one is the response. */
  async *send(request: Params, signal: AbortSignal): AsyncGenerator<Params> {
    const { id } = request;
    const events = new EventQueue();
    const tell = ({ method, params }: Notification) => events.add({ jsonrpc: "2.0", method, params });
    this.#ask(request, tell, signal)
      .then((result) => ({ jsonrpc: "2.0", id, result }))
      .catch((error) => ({ jsonrpc: "2.0", id, error: this.#toError(error) }))
      .then((response) => events.add(response))
      .finally(() => events.end());
    yield* events.read();
  }

  /** Responds to a request of the server. `undefined` rejects the request. */
  answer(key: string, result: unknown): boolean {
    const question = this.#questions.get(key);
    if (result === undefined) question?.reject(new McpError(INTERNAL_ERROR, "The user dismissed the request"));
    else question?.resolve(result);
    return this.#questions.delete(key);
  }

  /** Closes the connection, and ends the process of a command. */
  async close(): Promise<void> {
    for (const question of this.#questions.values()) {
      question.reject(new McpError(INTERNAL_ERROR, "The page was closed"));
    }
    const late = new Promise((resolve) => setTimeout(resolve, CLOSE_TIMEOUT_MS));
    await Promise.race([this.#client?.close().catch(() => {}), late]);
  }

  async #ask({ method, params: given }: Params, tell: (notification: Notification) => void, signal: AbortSignal) {
    const client = this.#client;
    if (!client || typeof method !== "string") throw new McpError(INVALID_REQUEST, "It is not a request");
    const { _meta, ...params } = isObject(given) ? given : {};
    const meta = isObject(_meta) ? _meta : {};
    if (method === "server/discover" && client.server.era === "legacy") return toDiscovery(client);
    if (method === "subscriptions/listen") return await listen(client, params.notifications, tell, signal);
    await this.#setLevel(client, meta[`${META}logLevel`]);
    const { progressToken } = meta;
    const kept = client.server.era === "modern"
      ? Object.fromEntries(["clientCapabilities", "logLevel"].map((name) => [META + name, meta[META + name]]))
      : {};
    const options = { signal, timeoutMs: Infinity, onNotification: tell };
    return await client.request(method, { ...params, _meta: { ...kept, progressToken } }, options);
  }

  async #setLevel(client: Client, wanted: unknown): Promise<void> {
    const level = LOG_LEVELS.find((name) => name === wanted);
    if (client.server.era === "modern" || level === undefined || level === this.#level) return;
    if (!("logging" in client.server.capabilities)) return;
    this.#level = level;
    await client.setLogLevel(level);
  }

  #toAnswers(): AnswerOptions {
    const { elicitation, sampling, roots } = this.#options.capabilities;
    const { form, url } = isObject(elicitation) ? elicitation : {};
    const elicit = (request: Params, context: AnswerContext) => this.#question("elicitation/create", request, context);
    return {
      ...isObject(form) && { onElicit: async (request, context) => toElicited(await elicit(request, context)) },
      ...isObject(url) && { onElicitUrl: async (request, context) => toElicited(await elicit(request, context)) },
      ...isObject(sampling) && {
        onSample: async (request, context) =>
          toSampled(await this.#question("sampling/createMessage", { ...request }, context)),
      },
      ...isObject(roots) && {
        roots: async (context) => toRoots(await this.#question("roots/list", {}, context)),
      },
    };
  }

  async #question(method: string, params: Params, { signal }: AnswerContext): Promise<unknown> {
    if (this.#questions.size >= MAX_QUESTIONS) {
      throw new McpError(INTERNAL_ERROR, "Too many requests are waiting for the user");
    }
    const key = `${++this.#count}`;
    const question = Promise.withResolvers<unknown>();
    const withdraw = () => {
      this.#questions.delete(key);
      this.#options.onEvent({ kind: "withdrawn", key });
      question.reject(signal.reason);
    };
    this.#questions.set(key, question);
    signal.addEventListener("abort", withdraw, { once: true });
    this.#options.onEvent({ kind: "question", key, method, params });
    try {
      return await question.promise;
    } finally {
      signal.removeEventListener("abort", withdraw);
    }
  }

  #toError(error: unknown): Params {
    if (error instanceof DOMException && error.name === "NetworkError") this.#options.onGone();
    const message = error instanceof Error ? error.message : String(error);
    // Code 0 stands for an invalid response.
    if (!(error instanceof McpError) || !error.code) return { message };
    return { code: error.code, message, ...error.data !== undefined && { data: error.data } };
  }
}

function toDiscovery({ server }: Client): Result {
  const { info, version, capabilities, instructions } = server;
  return {
    resultType: "complete",
    supportedVersions: [version],
    capabilities,
    instructions,
    _meta: { [`${META}serverInfo`]: info },
  };
}

async function listen(
  client: Client,
  wanted: unknown,
  tell: (notification: Notification) => void,
  signal: AbortSignal,
): Promise<Result> {
  const subscription = await client.subscribe(toFilter(wanted));
  const close = () => void subscription.close().catch(() => {});
  signal.addEventListener("abort", close, { once: true });
  if (signal.aborted) close();
  tell({ method: "notifications/subscriptions/acknowledged", params: { notifications: subscription.granted } });
  for await (const notification of subscription) tell(notification);
  signal.throwIfAborted();
  throw new Error("The server closed the subscription");
}

function toFilter(wanted: unknown): SubscriptionFilter {
  const { toolsListChanged, promptsListChanged, resourcesListChanged, resourceSubscriptions } = isObject(wanted)
    ? wanted
    : {};
  return {
    ...toolsListChanged === true && { toolsListChanged },
    ...promptsListChanged === true && { promptsListChanged },
    ...resourcesListChanged === true && { resourcesListChanged },
    ...Array.isArray(resourceSubscriptions) && { resourceSubscriptions: resourceSubscriptions.map(String) },
  };
}

function toElicited(answer: unknown): ElicitResult {
  const { action, content } = isObject(answer) ? answer : {};
  if (action !== "accept" && action !== "decline" && action !== "cancel") throw toInvalidResponse();
  return { action, ...isFormContent(content) && { content } };
}

function isFormContent(content: unknown): content is NonNullable<ElicitResult["content"]> {
  const isValue = (value: unknown) => ["string", "number", "boolean"].includes(typeof value);
  return isObject(content) &&
    Object.values(content).every((value) =>
      isValue(value) || (Array.isArray(value) && value.every((one) => typeof one === "string"))
    );
}

function toSampled(answer: unknown): SamplingResult {
  const { role, content, model, stopReason } = isObject(answer) ? answer : {};
  const text = isObject(content) ? content.text : undefined;
  if (role !== "assistant" || typeof text !== "string") throw toInvalidResponse();
  return { role, content: { type: "text", text }, model: String(model), stopReason: String(stopReason) };
}

function toRoots(answer: unknown): readonly Root[] {
  const { roots } = isObject(answer) ? answer : {};
  if (!Array.isArray(roots)) throw toInvalidResponse();
  return roots.filter(isObject).map(({ uri }) => ({ uri: String(uri) }));
}

function toInvalidResponse(): McpError {
  return new McpError(INTERNAL_ERROR, "The response of the page is invalid");
}
