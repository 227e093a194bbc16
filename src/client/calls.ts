/**
 * The methods of a client, such as `callTool` and `listTools`.
 *
 * @see specification/2026-07-28/schema
 */
import type { ClientExtension } from "./extension.ts";
import { INVALID_PARAMS, isRemoteError, METHOD_NOT_FOUND } from "../core/protocol/errors.ts";
import { isObject, type Params, type Result } from "../core/protocol/jsonrpc.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import type {
  ClientCapabilities,
  LogLevel,
  PromptMessage,
  ResourceContents,
  ToolResult,
} from "../core/protocol/types.ts";
import type { TemplateVariables } from "../core/protocol/uri_template.ts";
import type { ListedPrompt, ListedResource, ListedTemplate, ListedTool } from "../core/protocol/listed.ts";
import { toPrintableLine } from "../core/kit/printable.ts";
import { findExactContent } from "./message.ts";
import { OutputChecks } from "./output_check.ts";
import { MAX_ITEMS, readPages } from "./pagination.ts";
import { ANSWER, type AnswerOptions, toCapabilities } from "./answer_options.ts";
import { INTERNALS } from "../core/internals.ts";
import type { Asked } from "./answer_budget.ts";
import { withDeadline } from "./deadline.ts";
import type { ListCache } from "./list_cache.ts";
import {
  type CountedOptions,
  type Outcome,
  REQUEST,
  type RequestOptions,
  type Rpc,
  type SentRequestOptions,
} from "./rpc.ts";
import { createRequestHandler, type RequestHandlerOptions } from "./server_requests.ts";
import type { Protocol, ServerInfo } from "./protocol.ts";
import { type Subscription, type SubscriptionFilter, toSubscription } from "./subscription.ts";
import { type OnMisfit, readEntries, readResult, toMisfit } from "./wire_checks.ts";

/** Options of `complete`. */
export interface CompleteOptions extends RequestOptions {
  /** The values of arguments that the user has already filled in. */
  readonly arguments?: Readonly<Record<string, string>>;
}

/** The server's suggestions for an argument. */
export interface Completion {
  /** The suggested values, best first. */
  readonly values: readonly string[];
  /** Total number of suggestions. */
  readonly total?: number;
  /** Whether the server has more suggestions than `values` contains. */
  readonly hasMore?: boolean;
}

/**
 * A client that is connected to a server. If the server responds with an error, or its response is invalid, the methods
 * throw an {@linkcode McpError} with `remote: true`. Optional members of a wrong type, and entries of a list with a
 * required member of a wrong type, are left out and described to `onWarning`. If `signal` aborts before the response
 * arrives, the methods throw the signal's reason. After `timeoutMs`, the methods throw a `TimeoutError`.
 */
export interface Client<Options extends RequestOptions = RequestOptions> extends AsyncDisposable {
  /** Facts about the server, and the protocol revision in use. */
  readonly server: ServerInfo;
  /**
   * Lists all tools, by requesting all pages. Returns an empty array if the server has no tools.
   *
   * In revision 2026-07-28, a client of `connect` caches a list for the milliseconds that the server allows in `ttlMs`, at
   * most for a day, or until the server notifies the client that the list has changed. The client caches private lists
   * only if it has neither `use` nor `fetch`, which could send each request with other credentials, and returns them only
   * while it has the same token. To bypass the cache, pass `headers`, `meta` or a callback, or call `request` with the
   * method `tools/list`.
   *
   * All listing methods throw if a list exceeds 1000 pages, a million items or 64 Mi characters, or takes longer than ten
   * times `timeoutMs`.
   */
  listTools(options?: Options): Promise<readonly ListedTool[]>;
  /** Lists all resources, by requesting all pages. Returns an empty array if the server has no resources. */
  listResources(options?: Options): Promise<readonly ListedResource[]>;
  /** Lists all resource templates, by requesting all pages. Returns an empty array if the server has no templates. */
  listResourceTemplates(options?: Options): Promise<readonly ListedTemplate[]>;
  /** Lists all prompts, by requesting all pages. Returns an empty array if the server has no prompts. */
  listPrompts(options?: Options): Promise<readonly ListedPrompt[]>;
  /**
   * Calls a tool. If the tool fails, returns a result with `isError: true` instead of throwing. If the server sends no
   * `content`, the client uses an empty array and describes the omission to `onWarning`. After `listTools`, the
   * client validates the structured content of results against the tool's output schema, and throws if the content does
   * not match. The client ignores `pattern` in the schema, because evaluating a malicious regular expression could
   * block the program.
   */
  callTool(name: string, args?: Params, options?: Options): Promise<ToolResult & Result>;
  /** Reads a resource by its URI. */
  readResource(uri: string, options?: Options): Promise<{ readonly contents: readonly ResourceContents[] } & Result>;
  /**
   * Inserts values into a URI template and reads the resource with the resulting URI, such as
   * `readTemplate("notes://{id}", { id: "1" })`. The method percent-encodes the values where necessary.
   *
   * @throws {TypeError} if a variable is missing or unknown, or the template has an expression that is not supported.
   */
  readTemplate<const T extends string>(
    template: T,
    variables: TemplateVariables<T>,
    options?: Options,
  ): Promise<{ readonly contents: readonly ResourceContents[] } & Result>;
  /** Gets the messages of a prompt. */
  getPrompt(
    name: string,
    args?: Readonly<Record<string, string>>,
    options?: Options,
  ): Promise<{ readonly description?: string; readonly messages: readonly PromptMessage[] } & Result>;
  /** Completes an argument of a prompt, or a variable of a resource template. */
  complete(
    ref: { readonly type: "ref/prompt"; readonly name: string } | {
      readonly type: "ref/resource";
      readonly uri: string;
    },
    argument: { readonly name: string; readonly value: string },
    options?: Options & CompleteOptions,
  ): Promise<Completion>;
  /**
   * Sends a request with any method. If the server needs an elicitation, sampling or roots answer, the client answers
   * before it returns the result.
   */
  request(method: string, params?: Params, options?: Options): Promise<Result>;
  /** Sends a notification. */
  notify(method: string, params?: Params): Promise<void>;
  /** Subscribes to changes of lists and resources. */
  subscribe(filter: SubscriptionFilter): Promise<Subscription>;
  /**
   * Requests log messages of this level and of more severe levels. The client passes the messages to `onNotification`.
   *
   * @deprecated by the protocol. Read the server's standard error, or its telemetry, instead.
   */
  setLogLevel(level: LogLevel): Promise<void>;
  /**
   * Aborts running requests, and ends the session, the connection and the child process. Does not close a server in
   * this process.
   */
  close(): Promise<void>;
}

export interface ToClientOptions {
  /** The known options of each request. Defaults to {@linkcode REQUEST}. */
  readonly known?: KnownOptions;
  /** The callbacks that answer the server, for requests without callbacks of their own. */
  readonly answers: RequestHandlerOptions;
  /** Called with the description of each member of a wrong type that was left out. Can throw. */
  readonly onMisfit: OnMisfit;
  readonly extensions?: readonly ClientExtension[];
  /** Keeps lists while they are fresh. By default, each list is requested. */
  readonly lists?: ListCache;
  /** Returns the output schema of a tool that the client has not listed. Defaults to no schema. */
  readonly findOutput?: (name: string) => Params | undefined;
}

interface Connected {
  readonly rpc: Rpc;
  readonly extensions: ToClientOptions["extensions"];
}

const connections = new WeakMap<Client, Connected>();

/** Begins to treat the requests of a client as requests of different users. */
export function shareClient(client: Client): void {
  connections.get(client)?.rpc.share();
}

/** Whether a client has an extension. */
export function hasExtension(client: Client, id: string): boolean {
  return connections.get(client)?.extensions?.some((extension) => extension.id === id) ?? false;
}

export function toClient(rpc: Rpc, protocol: Protocol, options: ToClientOptions): Client {
  const requests = new Requests(rpc, protocol, options);
  const outputs = new OutputChecks(options.findOutput);
  const { onMisfit } = options;
  rpc.listeners.add(({ method }) => {
    if (method === "notifications/tools/list_changed") outputs.forget();
  });
  const close = () => requests.close();
  const client: Client = {
    get server() {
      return protocol.server;
    },
    ...toLists(requests, outputs),
    async callTool(name, args = {}, options) {
      const result = await requests.send("tools/call", { name, arguments: args }, options);
      // Check only final results, because other results have no content.
      if (result.resultType !== undefined && result.resultType !== "complete") return result as ToolResult & Result; // See below.
      const read = readResult("tools/call", result, { what: `the tool ${name}`, onMisfit });
      await outputs.check(name, read);
      const exact = findExactContent(read.structuredContent);
      if (exact === undefined) return read as ToolResult & Result; // The cast is safe, because the result was checked.
      const isTyped = outputs.has(name);
      onMisfit(toPrintableLine(
        `Cannot read a number of the tool ${name} exactly: structuredContent has whole numbers beyond 2^53, ` +
          (isTyped ? "which are rounded; the text of the result has all digits" : "which are texts instead"),
      ));
      return (isTyped ? read : { ...read, structuredContent: exact }) as ToolResult & Result; // See above.
    },
    readResource: (uri, options) => read(requests, uri, options),
    async readTemplate(template, variables, options) {
      const { parseTemplate } = await import("../core/protocol/uri_template.ts");
      return await read(requests, parseTemplate(template).build({ ...variables }, template), options);
    },
    async getPrompt(name, args = {}, options) {
      const result = await requests.send("prompts/get", { name, arguments: args }, options);
      const read = readResult("prompts/get", result, { what: `the prompt ${name}`, onMisfit });
      return read as Awaited<ReturnType<Client["getPrompt"]>>; // See callTool.
    },
    complete: (ref, argument, options) => complete(requests, { ref, argument }, options),
    request: (method, params, options) => requests.send(method, params, options),
    notify: (method, params) => protocol.notify(method, params),
    subscribe: (filter) => toSubscription((onChange) => protocol.watch(filter, onChange), rpc.held),
    setLogLevel: (level) => protocol.setLogLevel(level),
    close,
    [Symbol.asyncDispose]: close,
  };
  connections.set(client, { rpc, extensions: options.extensions });
  return client;
}

async function read(requests: Requests, uri: string, options?: RequestOptions): ReturnType<Client["readResource"]> {
  const result = await requests.send("resources/read", { uri }, options);
  const { onMisfit } = requests;
  const read = readResult("resources/read", result, { what: `the resource ${uri}`, onMisfit });
  return read as Awaited<ReturnType<Client["readResource"]>>; // See callTool.
}

type Lists = Pick<Client, "listTools" | "listResources" | "listResourceTemplates" | "listPrompts">;

// The casts are safe, because `list` checks the items.
function toLists(requests: Requests, outputs: OutputChecks): Lists {
  return {
    async listTools(options) {
      const { items: tools, isKept } = await requests.list("tools/list", "tools", options);
      // The schemas of a kept list are known.
      if (!isKept) outputs.learn(tools);
      return tools as Awaited<ReturnType<Client["listTools"]>>; // See above.
    },
    async listResources(options) {
      const { items } = await requests.list("resources/list", "resources", options);
      return items as Awaited<ReturnType<Client["listResources"]>>; // See above.
    },
    async listResourceTemplates(options) {
      const { items } = await requests.list("resources/templates/list", "resourceTemplates", options);
      return items as Awaited<ReturnType<Client["listResourceTemplates"]>>; // See above.
    },
    async listPrompts(options) {
      const { items } = await requests.list("prompts/list", "prompts", options);
      return items as Awaited<ReturnType<Client["listPrompts"]>>; // See above.
    },
  };
}

interface Listing {
  readonly items: readonly Params[];
  /** Whether the client has kept the items of an earlier request. */
  readonly isKept: boolean;
}

/** Codes of errors that mean that the server does not know the subject of a request, such as a tool. */
const UNKNOWN: readonly number[] = [METHOD_NOT_FOUND, INVALID_PARAMS];

/** Tests whether the options of a request cannot change its result. */
function isPlain(options: RequestOptions = {}): boolean {
  return Object.entries(options).every(([name, value]) =>
    value === undefined || name === "signal" || name === "timeoutMs"
  );
}

class Requests {
  readonly #rpc: Rpc;
  readonly #protocol: Protocol;
  readonly #known: KnownOptions;
  readonly #answers: RequestHandlerOptions;
  readonly onMisfit: OnMisfit;
  readonly #lists: ListCache | undefined;
  #closing?: Promise<void>;

  constructor(rpc: Rpc, protocol: Protocol, { known = REQUEST, answers, lists, onMisfit }: ToClientOptions) {
    // Older revisions have no `ttlMs`.
    this.#lists = protocol.server.era === "modern" ? lists : undefined;
    this.#answers = answers;
    this.onMisfit = onMisfit;
    this.#rpc = rpc;
    this.#known = known;
    this.#protocol = protocol;
  }

  /** Sends a request. Rejects with an `InvalidStateError` if the client was closed. */
  async send(method: string, params: Params = {}, options?: CountedOptions): Promise<Result> {
    return (await this.#exchange(method, params, options)).result;
  }

  async #exchange(method: string, params: Params, options?: CountedOptions): Promise<Outcome> {
    if (options !== undefined) checkOptions(`request ${method}`, options, this.#known);
    this.#checkOpen(method);
    const { signal, timeoutMs = this.#rpc.timeoutMs, [INTERNALS]: asked = { count: 0 } } = options ?? {};
    return await withDeadline({ method, signal, timeoutMs, waitedMs: this.#rpc.waitedMs }, async (signal) => {
      const sent = { ...options, ...this.#toAnswer(options), asked, signal, timeoutMs: Infinity };
      try {
        return await this.#protocol.request(method, params, sent);
      } catch (error) {
        // The list may have changed, if the server does not know the subject of a request.
        if (isRemoteError(error) && UNKNOWN.includes(error.code)) this.#lists?.forget(method.split("/")[0]);
        throw error;
      }
    });
  }

  #checkOpen(method: string): void {
    if (!this.#closing) return;
    throw new DOMException(`Cannot request ${method}: the client was closed; connect again`, "InvalidStateError");
  }

  /** Returns the answer function and the capabilities for a request that has callbacks of its own. */
  #toAnswer(options: RequestOptions = {}): Pick<SentRequestOptions, "answer" | "capabilities"> {
    const own: AnswerOptions = Object.fromEntries(
      Object.entries(options).filter(([name, value]) => Object.hasOwn(ANSWER, name) && value !== undefined),
    );
    if (!Object.keys(own).length) return {};
    const answers = { ...this.#answers, ...own };
    const names = Object.keys(toCapabilities(own));
    const added = Object.entries(toCapabilities(answers)).filter(([name]) => names.includes(name));
    const capabilities: ClientCapabilities = Object.fromEntries(added);
    const all = { ...this.#answers.capabilities, ...capabilities };
    return { answer: createRequestHandler({ ...answers, capabilities: all }), capabilities };
  }

  /** Returns all items of a list that may still be used, or requests all pages. */
  async list(method: string, key: string, options?: RequestOptions): Promise<Listing> {
    const lists = isPlain(options) ? this.#lists : undefined;
    this.#checkOpen(method);
    options?.signal?.throwIfAborted();
    const kept = await lists?.find(method);
    if (kept) return { items: kept, isKept: true };
    const collected = lists?.collect(method);
    const items: Params[] = [];
    const asked: Asked = { count: 0 };
    const pages = readPages({
      what: key,
      timeoutMs: options?.timeoutMs ?? this.#rpc.timeoutMs,
      request: async (params, timeoutMs) => {
        const outcome = await this.#ask(method, params, { ...options, timeoutMs, [INTERNALS]: asked });
        if (outcome && collected) lists?.add(collected, outcome);
        return outcome?.result;
      },
    });
    for await (const page of pages) {
      // Do not spread the items into `push`, because a page may have more items than a function call can have
      // arguments.
      for (const item of readEntries(method, readObjects(page, key), this.onMisfit)) items.push(item);
      if (items.length > MAX_ITEMS) {
        throw new RangeError(`Cannot list ${key}: the server lists more than ${MAX_ITEMS} items, which is the limit`);
      }
    }
    if (collected) lists?.keep(collected, items);
    return { items, isKept: false };
  }

  /** Further calls return the same promise. */
  close(): Promise<void> {
    return this.#closing ??= this.#end();
  }

  // Sends a list request. Returns `undefined` if the server does not implement the method, unless the server has
  // declared the feature. Resource templates have no capability of their own.
  async #ask(method: string, params: Params, options?: CountedOptions): Promise<Outcome | undefined> {
    try {
      return await this.#exchange(method, params, options);
    } catch (error) {
      const [feature] = method.split("/");
      const isMissing = isRemoteError(error) && error.code === METHOD_NOT_FOUND;
      const isDeclared = feature in this.#protocol.server.capabilities && method !== "resources/templates/list";
      if (!isMissing || isDeclared) throw error;
    }
  }

  async #end(): Promise<void> {
    // Wait until pending messages have been sent, because the program may exit as soon as the client is closed.
    await this.#rpc.flush();
    await this.#protocol.close();
    this.#rpc.abort();
    await this.#rpc.channel.close();
  }
}

interface Completed {
  readonly ref: Parameters<Client["complete"]>[0];
  readonly argument: { readonly name: string; readonly value: string };
}

async function complete(
  requests: Requests,
  { ref, argument }: Completed,
  { arguments: chosen, ...options }: CompleteOptions = {},
): Promise<Completion> {
  const params = { ref, argument, ...chosen && { context: { arguments: chosen } } };
  const result = await requests.send("completion/complete", params, options);
  const { onMisfit } = requests;
  const { completion } = readResult("completion/complete", result, { what: "completion/complete", onMisfit });
  const { values, total, hasMore } = completion as Completion; // The cast is safe, because the result was checked.
  return { values, ...total !== undefined && { total }, ...hasMore !== undefined && { hasMore } };
}

function readObjects(result: Result, key: string): readonly Params[] {
  const items = result[key];
  if (Array.isArray(items) && items.every(isObject)) return items;
  throw toMisfit("the request", `${key} is missing or has the wrong type`);
}
