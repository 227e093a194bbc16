/**
 * The client: a method for each kind of request.
 *
 * @see specification/2026-07-28/schema
 * @module
 */
import { isRemoteError, McpError, METHOD_NOT_FOUND } from "../protocol/errors.ts";
import { isObject, type Params, type Result } from "../protocol/jsonrpc.ts";
import { checkOptions, type KnownOptions } from "../core/call/known_options.ts";
import type { ClientCapabilities, LogLevel, PromptMessage, ResourceContents, ToolResult } from "../protocol/types.ts";
import type { TemplateVariables } from "../protocol/uri_template.ts";
import type { ListedPrompt, ListedResource, ListedTemplate, ListedTool } from "../protocol/listed.ts";
import { OutputChecks } from "./output_check.ts";
import { MAX_ITEMS, readPages } from "./pagination.ts";
import { ANSWER, type AnswerOptions, toCapabilities } from "./answer_options.ts";
import { withDeadline } from "./deadline.ts";
import { REQUEST, type RequestOptions, type Rpc, type SentRequestOptions } from "./rpc.ts";
import { createRequestHandler, type RequestHandlerOptions } from "./server_requests.ts";
import type { Protocol, ServerFacts } from "./protocol.ts";
import { type Subscription, type SubscriptionFilter, toSubscription } from "./subscription.ts";

/** The options of a completion. */
export interface CompleteOptions extends RequestOptions {
  /** The values of the other arguments. */
  readonly arguments?: Readonly<Record<string, string>>;
}

/** The suggestions of a server. */
export interface Completion {
  /** The suggested values, best first. */
  readonly values: readonly string[];
  /** Total number of suggestions. */
  readonly total?: number;
  /** Whether the server has more suggestions than `values` contains. */
  readonly hasMore?: boolean;
}

/**
 * A client that is connected to a server.
 *
 * Its methods throw an {@linkcode McpError} with `remote: true` if the server responds with an error, or if its
 * response is not valid. They throw the reason of `signal` if it aborts first, and a `TimeoutError` after `timeoutMs`.
 */
export interface Client<Options extends RequestOptions = RequestOptions> extends AsyncDisposable {
  /** The server, and the protocol revision in use. */
  readonly server: ServerFacts;
  /**
   * Lists all tools, by requesting all pages. Returns an empty array if the server has no tools.
   *
   * All listing methods throw if a list exceeds 1000 pages, a million items, 64 Mi characters, or ten times the timeout
   * of one request.
   */
  listTools(options?: Options): Promise<readonly ListedTool[]>;
  /** Lists all resources, by requesting all pages. Returns an empty array if the server has no resources. */
  listResources(options?: Options): Promise<readonly ListedResource[]>;
  /** Lists all resource templates, by requesting all pages. Returns an empty array if the server has no templates. */
  listResourceTemplates(options?: Options): Promise<readonly ListedTemplate[]>;
  /** Lists all prompts, by requesting all pages. Returns an empty array if the server has no prompts. */
  listPrompts(options?: Options): Promise<readonly ListedPrompt[]>;
  /**
   * Calls a tool. If the tool fails, the method does not throw: the result has `isError: true`.
   *
   * After `listTools`, the structured content of a result must match the output schema of its tool. Patterns in the
   * schema are not checked, because a pattern that backtracks could block the program.
   */
  callTool(name: string, args?: Params, options?: Options): Promise<ToolResult & Result>;
  /** Reads a resource. */
  readResource(uri: string, options?: Options): Promise<{ readonly contents: readonly ResourceContents[] } & Result>;
  /**
   * Reads a resource of a URI template, such as `readTemplate("notes://{id}", { id: "1" })`. The method percent-encodes
   * the values as needed.
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
  /** Sends any request. Answers elicitation and other questions from the server before it returns the result. */
  request(method: string, params?: Params, options?: Options): Promise<Result>;
  /** Sends a notification. */
  notify(method: string, params?: Params): Promise<void>;
  /** Subscribes to changes. */
  subscribe(filter: SubscriptionFilter): Promise<Subscription>;
  /** Requests log messages of this level and above. The client passes the messages to `onNotification`. */
  setLogLevel(level: LogLevel): Promise<void>;
  /**
   * Ends running requests, the session, the connection and the child process. A server in this process keeps running.
   */
  close(): Promise<void>;
}

/** Options of {@linkcode toClient}. */
export interface ToClientOptions {
  /** The names of the options of a request. Defaults to the options of every client. */
  readonly known?: KnownOptions;
  /** The functions that answer the server, unless a request has functions of its own. */
  readonly answers: RequestHandlerOptions;
}

/** Creates a client from a protocol. */
export function toClient(rpc: Rpc, protocol: Protocol, options: ToClientOptions): Client {
  const requests = new Requests(rpc, protocol, options);
  const outputs = new OutputChecks();
  rpc.listeners.add(({ method }) => {
    if (method === "notifications/tools/list_changed") outputs.forget();
  });
  const close = () => requests.close();
  return {
    get server() {
      return protocol.server;
    },
    ...toLists(requests, outputs),
    async callTool(name, args = {}, options) {
      const result = await requests.send("tools/call", { name, arguments: args }, options);
      // Check the content only of a final result, because other results have no content.
      if (result.resultType === undefined || result.resultType === "complete") {
        readObjects(result, "content");
        await outputs.check(name, result);
      }
      return result as Awaited<ReturnType<Client["callTool"]>>; // `content` is checked; its items are as the server sent them.
    },
    readResource: (uri, options) => read(requests, uri, options),
    async readTemplate(template, variables, options) {
      const { parseTemplate } = await import("../protocol/uri_template.ts");
      return await read(requests, parseTemplate(template).build({ ...variables }, template), options);
    },
    async getPrompt(name, args = {}, options) {
      const result = await requests.send("prompts/get", { name, arguments: args }, options);
      readObjects(result, "messages");
      return result as Awaited<ReturnType<Client["getPrompt"]>>; // See callTool.
    },
    complete: (ref, argument, options) => complete(requests, { ref, argument }, options),
    request: (method, params, options) => requests.send(method, params, options),
    notify: (method, params) => protocol.notify(method, params),
    subscribe: (filter) => toSubscription((onChange) => protocol.watch(filter, onChange), rpc.held),
    setLogLevel: (level) => protocol.setLogLevel(level),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function read(requests: Requests, uri: string, options?: RequestOptions): ReturnType<Client["readResource"]> {
  const result = await requests.send("resources/read", { uri }, options);
  readObjects(result, "contents");
  return result as Awaited<ReturnType<Client["readResource"]>>; // See callTool.
}

/** The methods that list the tools, resources, templates and prompts of a server. */
type Lists = Pick<Client, "listTools" | "listResources" | "listResourceTemplates" | "listPrompts">;

// Checks only that a result contains a list. The items are passed on as received, so the casts below state an
// assumption.
function toLists(requests: Requests, outputs: OutputChecks): Lists {
  return {
    async listTools(options) {
      const tools = await requests.list("tools/list", "tools", options);
      outputs.learn(tools);
      return tools as Awaited<ReturnType<Client["listTools"]>>; // See above.
    },
    listResources: (options) =>
      requests.list("resources/list", "resources", options) as ReturnType<Client["listResources"]>, // See above.
    listResourceTemplates(options) {
      const listed = requests.list("resources/templates/list", "resourceTemplates", options);
      return listed as ReturnType<Client["listResourceTemplates"]>; // See above.
    },
    listPrompts: (options) => requests.list("prompts/list", "prompts", options) as ReturnType<Client["listPrompts"]>, // As above.
  };
}

/** Sends requests for a client. */
class Requests {
  readonly #rpc: Rpc;
  readonly #protocol: Protocol;
  readonly #known: KnownOptions;
  readonly #answers: RequestHandlerOptions;
  #closing?: Promise<void>;

  constructor(rpc: Rpc, protocol: Protocol, { known = REQUEST, answers }: ToClientOptions) {
    this.#answers = answers;
    this.#rpc = rpc;
    this.#known = known;
    this.#protocol = protocol;
  }

  /** Sends a request. Throws an `InvalidStateError` if the client was closed. */
  async send(method: string, params: Params = {}, options?: RequestOptions): Promise<Result> {
    if (options !== undefined) checkOptions(`request ${method}`, options, this.#known);
    if (this.#closing) throw new DOMException(`Cannot request ${method}: the client was closed`, "InvalidStateError");
    const { signal, timeoutMs = this.#rpc.timeoutMs } = options ?? {};
    return await withDeadline({ method, signal, timeoutMs, waitedMs: this.#rpc.waitedMs }, async (signal) => {
      const sent = { ...options, ...this.#toAnswer(options), signal, timeoutMs: Infinity };
      return (await this.#protocol.request(method, params, sent)).result;
    });
  }

  /** Returns the functions that answer the questions of a request, if the request has functions of its own. */
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

  /** Lists all items, by requesting all pages. */
  async list(method: string, key: string, options?: RequestOptions): Promise<readonly Params[]> {
    const items: Params[] = [];
    const pages = readPages({
      what: key,
      timeoutMs: options?.timeoutMs ?? this.#rpc.timeoutMs,
      request: (params, timeoutMs) => this.#ask(method, params, { ...options, timeoutMs }),
    });
    for await (const page of pages) {
      // Do not spread the items, because a page may have more items than a call may have arguments.
      for (const item of readObjects(page, key)) items.push(item);
      if (items.length > MAX_ITEMS) throw new RangeError(`Cannot list ${key}: there are more than ${MAX_ITEMS} items`);
    }
    return items;
  }

  /** Closes the connection, once. */
  close(): Promise<void> {
    return this.#closing ??= this.#end();
  }

  // Returns `undefined` if the server lacks the feature and did not declare it.
  async #ask(method: string, params: Params, options?: RequestOptions): Promise<Result | undefined> {
    try {
      return await this.send(method, params, options);
    } catch (error) {
      const [feature] = method.split("/");
      const isMissing = isRemoteError(error) && error.code === METHOD_NOT_FOUND;
      const isDeclared = feature in this.#protocol.server.capabilities && method !== "resources/templates/list";
      if (!isMissing || isDeclared) throw error;
    }
  }

  async #end(): Promise<void> {
    // Wait for messages that are being sent, because they would be lost if the program ended now.
    await this.#rpc.settle();
    await this.#protocol.close();
    this.#rpc.abort();
    await this.#rpc.channel.close();
  }
}

/** An argument to complete, and the prompt or template that it belongs to. */
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
  const { completion } = await requests.send("completion/complete", params, options);
  if (!isObject(completion) || !Array.isArray(completion.values)) throw toMisfit("completion/complete", "values");
  const { values, total, hasMore } = completion;
  return {
    values: values.map(String),
    ...typeof total === "number" && { total },
    ...typeof hasMore === "boolean" && { hasMore },
  };
}

function readObjects(result: Result, key: string): readonly Params[] {
  const items = result[key];
  if (!Array.isArray(items) || !items.every(isObject)) throw toMisfit("the request", key);
  return items;
}

function toMisfit(method: string, key: string): McpError {
  return new McpError(0, `Cannot use the result of ${method}: ${key} is missing or has the wrong type`, undefined, {});
}
