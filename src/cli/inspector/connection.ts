/**
 * Connects the page to another server. A client in this process sends the page's requests to the server.
 */
import {
  type AnswerContext,
  type AnswerOptions,
  type Client,
  type ClientAuth,
  type ClientExtension,
  clientExtension,
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
import { deadline } from "../../core/kit/deadline.ts";
import { isObject } from "../../core/kit/json.ts";
import { LOG_LEVELS } from "../client/log_messages.ts";
import { INTERNAL_ERROR, INVALID_REQUEST } from "../protocol.ts";
import type { SignInPage } from "../../client/oauth/oauth.ts";
import type { Args } from "../args.ts";
import { createAuth, findSignInInfo } from "../sign_in/sign_in_options.ts";
import type { EventStream } from "./event_stream.ts";

export interface ConnectionOptions {
  readonly target: Target;
  /** The headers of requests. The page never receives the headers from the command line. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The command-line arguments, which contain the sign-in options. */
  readonly args?: Args;
  /** The protocol revision to use. Defaults to the newest revision that the server supports. */
  readonly revision?: string;
  /** The client capabilities that the page declares. */
  readonly capabilities: Params;
  /** The stream of events for the page. The connection closes when the stream ends. */
  readonly events: EventStream;
}

/** The method with which this process asks the page to sign in. Requests from a server never use this method. */
const SIGN_IN = "inspector/signIn";
const NO_ARGS: Args = { operands: [], flags: {}, all: {} };
const META = "io.modelcontextprotocol/";
/** Milliseconds to wait for the connection to a server to close. */
const CLOSE_TIMEOUT_MS = 2500;

export class Connection {
  readonly #options: ConnectionOptions;
  readonly #questions = new Map<string, PromiseWithResolvers<unknown>>();
  #client: Client | undefined;
  #level: unknown;
  #count = 0;
  /** Whether the user was asked to sign in, and the page has not yet been notified of the result. */
  #hasAsked = false;

  /** Creates a connection. Call {@linkcode open} to connect. */
  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** Connects to the server, and notifies the page of success or failure. */
  async open(): Promise<void> {
    const { target, headers, revision, events } = this.#options;
    try {
      const client = await connect(target, {
        ...this.#toAnswers(),
        extensions: this.#toExtensions(),
        headers,
        auth: this.#createAuth(),
        revisions: revision === undefined ? undefined : [revision],
        signal: events.signal,
        timeoutMs: 30_000,
        onWarning: (text) => events.send({ kind: "warning", text: text.slice(0, 2000) }),
      });
      this.#client = client;
      if (events.signal.aborted) await this.close();
      else {
        events.send({ kind: "open" });
        await this.#notifySignIn();
      }
    } catch (error) {
      events.send({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
      events.close();
    }
  }

  /** Sends a request from the page. `stream` receives the notifications from the server, and then the response. */
  async send(request: Params, stream: EventStream): Promise<void> {
    const message = { jsonrpc: "2.0", id: request.id };
    const notify = ({ method, params }: Notification) => stream.send({ jsonrpc: "2.0", method, params });
    try {
      stream.send({ ...message, result: await this.#request(request, notify, stream.signal) });
    } catch (error) {
      stream.send({ ...message, error: this.#toError(error) });
    }
    stream.close();
    if (this.#hasAsked) await this.#notifySignIn().catch(() => {});
  }

  /** Passes the page's response to the server. If `result` is `undefined`, rejects the server's request. */
  answer(key: string, result: unknown): void {
    const question = this.#questions.get(key);
    if (result === undefined) question?.reject(new McpError(INTERNAL_ERROR, "The user dismissed the request"));
    else question?.resolve(result);
    this.#questions.delete(key);
  }

  /** Closes the connection. If the server is a command, ends its process. */
  async close(): Promise<void> {
    this.#options.events.close();
    for (const question of this.#questions.values()) {
      question.reject(new McpError(INTERNAL_ERROR, "The page was closed"));
    }
    await deadline(this.#client?.close().catch(() => {}), { ms: CLOSE_TIMEOUT_MS, onTimeout: () => {} });
  }

  async #request({ method, params: given }: Params, notify: (notification: Notification) => void, signal: AbortSignal) {
    const client = this.#client;
    if (!client || typeof method !== "string") throw new McpError(INVALID_REQUEST, "The message is not a request");
    const { _meta, ...params } = isObject(given) ? given : {};
    const meta = isObject(_meta) ? _meta : {};
    const isModern = client.server.era === "modern";
    if (method === "server/discover" && !isModern) return toDiscovery(client);
    if (method === "subscriptions/listen") return await listen(client, params.notifications, notify, signal);
    if (!isModern) await this.#setLevel(client, meta[`${META}logLevel`]);
    const kept = ["progressToken", ...isModern ? [`${META}clientCapabilities`, `${META}logLevel`] : []];
    const request = { ...params, _meta: Object.fromEntries(kept.map((name) => [name, meta[name]])) };
    return await client.request(method, request, { signal, timeoutMs: Infinity, onNotification: notify });
  }

  async #setLevel(client: Client, wanted: unknown): Promise<void> {
    const level = LOG_LEVELS.find((name) => name === wanted);
    if (level === undefined || level === this.#level || !("logging" in client.server.capabilities)) return;
    this.#level = level;
    await client.setLogLevel(level);
  }

  /** Returns the source of tokens for a URL. The tokens stay in this process. */
  #createAuth(): ClientAuth | undefined {
    const { target, headers = {}, args = NO_ARGS } = this.#options;
    if (typeof target !== "string") return;
    return createAuth(args, headers, { askPage: (page, signal) => this.#askToSignIn(page, signal) });
  }

  /** Notifies the page of the token's issuer, scopes and expiry. */
  async #notifySignIn(): Promise<void> {
    const { target, headers = {}, args = NO_ARGS, events } = this.#options;
    this.#hasAsked = false;
    if (typeof target !== "string" || !createAuth(args, headers)) return;
    const info = await findSignInInfo(args, target);
    if (!info) return;
    const { issuer, scopes, expiresAt, canRefresh } = info;
    const end = expiresAt === undefined ? "" : ` until ${new Date(expiresAt).toISOString()}`;
    const renewal = canRefresh ? ", and is renewed automatically" : "";
    const text = `Signed in at ${issuer} for ${scopes.join(", ") || "all scopes"}. The token is valid${end}${renewal}.`;
    events.send({ kind: "warning", text: text.slice(0, 2000) });
  }

  async #askToSignIn({ url, server, issuer, scopes }: SignInPage, signal: AbortSignal): Promise<boolean> {
    this.#hasAsked = true;
    const question = { server, issuer, scopes, url };
    return (await this.#ask<ElicitResult>(SIGN_IN, question, { signal })).action === "accept";
  }

  #toExtensions(): readonly ClientExtension[] {
    const { extensions } = this.#options.capabilities;
    return Object.entries(isObject(extensions) ? extensions : {}).map(([id, settings]) =>
      clientExtension({ id, settings: isObject(settings) ? settings : {} })
    );
  }

  #toAnswers(): AnswerOptions {
    const { elicitation, sampling, roots } = this.#options.capabilities;
    const { form, url } = isObject(elicitation) ? elicitation : {};
    const elicit = (request: Params, context: AnswerContext) =>
      this.#ask<ElicitResult>("elicitation/create", request, context);
    return {
      ...isObject(form) && { onElicit: elicit },
      ...isObject(url) && { onElicitUrl: elicit },
      ...isObject(sampling) && {
        onSample: (request, context) => this.#ask<SamplingResult>("sampling/createMessage", { ...request }, context),
      },
      ...isObject(roots) && {
        roots: async (context) => (await this.#ask<{ roots: readonly Root[] }>("roots/list", {}, context)).roots,
      },
    };
  }

  async #ask<Answer>(method: string, params: Params, { signal }: Pick<AnswerContext, "signal">): Promise<Answer> {
    const { events } = this.#options;
    const key = `${++this.#count}`;
    const question = Promise.withResolvers<unknown>();
    const withdraw = () => {
      this.#questions.delete(key);
      events.send({ kind: "withdrawn", key });
      question.reject(signal.reason);
    };
    this.#questions.set(key, question);
    signal.addEventListener("abort", withdraw, { once: true });
    events.send({ kind: "question", key, method, params });
    try {
      // The cast is safe, because the page creates a response for this method, and the client validates the response.
      return await question.promise as Answer;
    } finally {
      signal.removeEventListener("abort", withdraw);
    }
  }

  #toError(error: unknown): Params {
    // Close the stream. The client throws a NetworkError if the server's process has ended.
    if (error instanceof DOMException && error.name === "NetworkError") this.#options.events.close();
    const message = error instanceof Error ? error.message : String(error);
    // Omit code 0, which the client uses for an invalid response.
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
  notify: (notification: Notification) => void,
  signal: AbortSignal,
): Promise<Result> {
  // The cast is safe, because the page creates the filter, and the client validates the filter.
  const subscription = await client.subscribe(wanted as SubscriptionFilter);
  const close = () => void subscription.close().catch(() => {});
  signal.addEventListener("abort", close, { once: true });
  if (signal.aborted) close();
  notify({ method: "notifications/subscriptions/acknowledged", params: { notifications: subscription.granted } });
  for await (const notification of subscription) notify(notification);
  signal.throwIfAborted();
  throw new Error("The server closed the subscription");
}
