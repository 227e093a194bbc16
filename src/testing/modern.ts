/**
 * A client that says in every request who it is.
 *
 * @see specification/2026-07-28/basic
 * @module
 */
import { encodeHeaderValue } from "../protocol/header_value.ts";
import { isObject, type Params, type Result } from "../protocol/jsonrpc.ts";
import type { ClientFacts } from "../core/context.ts";
import { findHeaderParams, type HeaderParam } from "../schema/header_params.ts";
import type { Message } from "./message.ts";
import {
  type AnswerServer,
  type Client,
  type Outcome,
  type Peer,
  type RequestOptions,
  type Speech,
  SUBSCRIPTION,
} from "./peer.ts";
import { createFeed, type Filter, type Subscription } from "./subscription.ts";

const META = "io.modelcontextprotocol/";
const NAMED: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
};
const MOST_ROUNDS = 64;

/** What a modern client adds to messages; it learns from tool lists which arguments must be repeated in headers. */
export class ModernSpeech implements Speech {
  readonly saysCancelled = false;
  readonly #facts: ClientFacts;
  readonly #mirrored = new Map<unknown, readonly HeaderParam[]>();

  /** The speech of a client. */
  constructor(facts: ClientFacts) {
    this.#facts = facts;
  }

  toParams(params: Params): Params {
    const { version, info, capabilities, logLevel } = this.#facts;
    const _meta = {
      [META + "protocolVersion"]: version,
      [META + "clientInfo"]: info,
      [META + "clientCapabilities"]: capabilities,
      [META + "logLevel"]: logLevel,
      ...isObject(params._meta) ? params._meta : {},
    };
    return { ...params, _meta };
  }

  toHeaders({ method = "", params = {} }: Message): Readonly<Record<string, string>> {
    const headers: Record<string, string> = { "mcp-protocol-version": this.#facts.version, "mcp-method": method };
    const name = params[NAMED[method]];
    if (typeof name === "string") headers["mcp-name"] = encodeHeaderValue(name);
    for (const { header, path } of method === "tools/call" ? this.#mirrored.get(name) ?? [] : []) {
      const value = path.reduce<unknown>((at, key) => isObject(at) ? at[key] : undefined, params.arguments);
      if (value !== undefined && value !== null) headers[`mcp-param-${header}`] = encodeHeaderValue(String(value));
    }
    return headers;
  }

  /** Looks through a list of tools for arguments that must be repeated in headers. */
  learn({ tools }: Result): void {
    for (const tool of Array.isArray(tools) ? tools : []) {
      if (isObject(tool) && isObject(tool.inputSchema)) {
        this.#mirrored.set(tool.name, findHeaderParams(tool.inputSchema));
      }
    }
  }
}

/** A modern client at the end of a connection. */
export function modernClient(peer: Peer, speech: ModernSpeech, answer: AnswerServer | undefined): Client {
  async function request(method: string, params: Params, options: RequestOptions = {}): Promise<Outcome> {
    let outcome = await peer.request(method, params, options);
    for (let round = 0; outcome.result.resultType === "input_required" && options.rounds !== false; round++) {
      if (round >= MOST_ROUNDS) throw new Error(`Cannot finish ${method}: the server asked ${MOST_ROUNDS} times`);
      const { inputRequests = {}, requestState } = outcome.result;
      const inputResponses = await toResponses(inputRequests);
      const next = { ...params, inputResponses, ...requestState === undefined ? {} : { requestState } };
      outcome = await peer.request(method, next, { ...options, id: undefined });
    }
    if (method === "tools/list") speech.learn(outcome.result);
    return outcome;
  }

  async function toResponses(requests: unknown): Promise<Params> {
    const responses: Record<string, unknown> = {};
    for (const [key, asked] of isObject(requests) ? Object.entries(requests) : []) {
      if (!isObject(asked) || typeof asked.method !== "string") throw new Error(`Cannot read the question ${key}`);
      if (!answer) throw new Error(`Cannot answer ${asked.method}: connect was given no \`answer\``);
      responses[key] = await answer({ method: asked.method, params: isObject(asked.params) ? asked.params : {} });
    }
    return responses;
  }

  async function subscribe(filter: Filter): Promise<Subscription> {
    const stop = new AbortController();
    const feed = createFeed();
    const { promise: acknowledged, resolve, reject } = Promise.withResolvers<Filter>();
    const listening = peer.request("subscriptions/listen", { notifications: filter }, {
      signal: stop.signal,
      timeoutMs: Infinity,
      onNotification({ method, params }) {
        if (!isObject(params._meta) || !(SUBSCRIPTION in params._meta)) return;
        if (method !== "notifications/subscriptions/acknowledged") return feed.push({ method, params });
        resolve(isObject(params.notifications) ? params.notifications : {});
      },
    });
    listening.then(({ result }) => feed.end(result), (error) => {
      reject(error);
      feed.end();
    });
    return feed.toSubscription(await acknowledged, async () => {
      stop.abort(new DOMException("The subscription was closed", "AbortError"));
      await listening.catch(() => {});
    });
  }

  return { request, subscribe, close: async () => {} };
}
