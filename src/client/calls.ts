/**
 * What a program does with a client: methods in place of messages.
 *
 * @see specification/2026-07-28/schema
 * @module
 */
import { METHOD_NOT_FOUND } from "../protocol/errors.ts";
import { isObject, type Params, type Result } from "../protocol/jsonrpc.ts";
import type { LogLevel, PromptMessage, ResourceContents, ToolResult } from "../protocol/types.ts";
import type { ListedPrompt, ListedResource, ListedTemplate, ListedTool } from "./listed.ts";
import { MOST_ITEMS, readPages } from "./pagination.ts";
import type { RequestOptions, Rpc } from "./rpc.ts";
import { RpcError } from "./rpc_error.ts";
import type { Protocol, ServerFacts } from "./protocol.ts";
import { type Filter, type Subscription, toSubscription } from "./subscription.ts";

/** What a completion is for: a prompt, or a resource template. */
export type CompletionRef =
  | { readonly type: "ref/prompt"; readonly name: string }
  | { readonly type: "ref/resource"; readonly uri: string };

/** What goes along with a completion. */
export interface CompleteOptions extends RequestOptions {
  /** What was chosen for the other arguments. */
  readonly arguments?: Readonly<Record<string, string>>;
}

/** What the server suggests. */
export interface Completion {
  /** The best first. */
  readonly values: readonly string[];
  /** How many there are. */
  readonly total?: number;
  /** Whether there are more. */
  readonly hasMore?: boolean;
}

/**
 * A client that is connected to a server. Its methods throw an {@linkcode RpcError} if the server answers with an error
 * or with no answer at all, and what `signal` was aborted with, or a `TimeoutError`, if that comes first.
 */
export interface Client<Options extends RequestOptions = RequestOptions> extends AsyncDisposable {
  /** Who the server is, and what is spoken with it. */
  readonly server: ServerFacts;
  /**
   * The tools of all pages; none if the server has no tools. This and the other lists throw beyond 1000 pages, a million
   * items, 64 Mi characters, or ten times the timeout of one request.
   */
  listTools(options?: Options): Promise<readonly ListedTool[]>;
  /** The resources of all pages; none if the server has no resources. */
  listResources(options?: Options): Promise<readonly ListedResource[]>;
  /** The resource templates of all pages; none if the server has none. */
  listResourceTemplates(options?: Options): Promise<readonly ListedTemplate[]>;
  /** The prompts of all pages; none if the server has no prompts. */
  listPrompts(options?: Options): Promise<readonly ListedPrompt[]>;
  /** Calls a tool. That the tool failed is no error but a result with `isError`. */
  callTool(name: string, args?: Params, options?: Options): Promise<ToolResult & Result>;
  /** Reads a resource. */
  readResource(uri: string, options?: Options): Promise<{ readonly contents: readonly ResourceContents[] } & Result>;
  /** Has a prompt filled in. */
  getPrompt(
    name: string,
    args?: Readonly<Record<string, string>>,
    options?: Options,
  ): Promise<{ readonly description?: string; readonly messages: readonly PromptMessage[] } & Result>;
  /** Completes an argument of a prompt, or a variable of a resource template. */
  complete(
    ref: CompletionRef,
    argument: { readonly name: string; readonly value: string },
    options?: Options & CompleteOptions,
  ): Promise<Completion>;
  /** Sends any request. Questions of the server are answered before there is a result. */
  request(method: string, params?: Params, options?: Options): Promise<Result>;
  /** Sends a notification. */
  notify(method: string, params?: Params): Promise<void>;
  /** Hears of changes from now on. */
  subscribe(filter: Filter): Promise<Subscription>;
  /** Asks for log messages from this severity on; they go to `onNotification`. */
  setLogLevel(level: LogLevel): Promise<void>;
  /** Ends what runs, the session, the connection, the process; a server in this process stays as it is. */
  close(): Promise<void>;
}

/** A client over a protocol. */
export function toClient(rpc: Rpc, protocol: Protocol): Client {
  let closing: Promise<void> | undefined;

  async function request(method: string, params: Params = {}, options?: RequestOptions): Promise<Result> {
    if (closing) throw new DOMException(`Cannot request ${method}: the client was closed`, "InvalidStateError");
    return (await protocol.request(method, params, options)).result;
  }

  async function list(method: string, key: string, options?: RequestOptions): Promise<readonly Params[]> {
    const items: Params[] = [];
    const pages = readPages({
      what: key,
      timeoutMs: options?.timeoutMs ?? rpc.timeoutMs,
      request: (params, timeoutMs) => ask(method, params, { ...options, timeoutMs }),
    });
    for await (const page of pages) {
      // Not spread: as many arguments as a page may have items overflow the stack.
      for (const item of readObjects(page, key)) items.push(item);
      if (items.length > MOST_ITEMS) throw new RangeError(`Cannot list ${key}: there are more than ${MOST_ITEMS}`);
    }
    return items;
  }

  // Nothing if the server has no such feature, and has not said that it had.
  async function ask(method: string, params: Params, options?: RequestOptions): Promise<Result | undefined> {
    try {
      return await request(method, params, options);
    } catch (error) {
      const [feature] = method.split("/");
      const isMissing = error instanceof RpcError && error.code === METHOD_NOT_FOUND;
      if (!isMissing || (feature in protocol.server.capabilities && method !== "resources/templates/list")) throw error;
    }
  }

  async function complete(
    ref: CompletionRef,
    argument: { readonly name: string; readonly value: string },
    { arguments: chosen, ...options }: CompleteOptions = {},
  ): Promise<Completion> {
    const params = { ref, argument, ...chosen && { context: { arguments: chosen } } };
    const { completion } = await request("completion/complete", params, options);
    if (!isObject(completion) || !Array.isArray(completion.values)) throw toMisfit("completion/complete", "values");
    const { values, total, hasMore } = completion;
    return {
      values: values.map(String),
      ...typeof total === "number" && { total },
      ...typeof hasMore === "boolean" && { hasMore },
    };
  }

  async function end(): Promise<void> {
    // A message that is still on its way when the program ends does not arrive.
    await rpc.settle();
    await protocol.close();
    rpc.abort();
    await rpc.channel.close();
  }

  const close = () => closing ??= end();
  return {
    get server() {
      return protocol.server;
    },
    // Of what follows only that it is there is checked: the rest is the server's word.
    listTools: (options) => list("tools/list", "tools", options) as ReturnType<Client["listTools"]>, // As above.
    listResources: (options) => list("resources/list", "resources", options) as ReturnType<Client["listResources"]>, // As above.
    listResourceTemplates: (options) =>
      list("resources/templates/list", "resourceTemplates", options) as ReturnType<Client["listResourceTemplates"]>, // As above.
    listPrompts: (options) => list("prompts/list", "prompts", options) as ReturnType<Client["listPrompts"]>, // As above.
    async callTool(name, args = {}, options) {
      const result = await request("tools/call", { name, arguments: args }, options);
      // A result that is no final one has no content.
      if (result.resultType === undefined || result.resultType === "complete") readObjects(result, "content");
      return result as Awaited<ReturnType<Client["callTool"]>>; // As above.
    },
    async readResource(uri, options) {
      const result = await request("resources/read", { uri }, options);
      readObjects(result, "contents");
      return result as Awaited<ReturnType<Client["readResource"]>>; // As above.
    },
    async getPrompt(name, args = {}, options) {
      const result = await request("prompts/get", { name, arguments: args }, options);
      readObjects(result, "messages");
      return result as Awaited<ReturnType<Client["getPrompt"]>>; // As above.
    },
    complete,
    request,
    notify: rpc.notify,
    subscribe: (filter) => toSubscription((onChange) => protocol.watch(filter, onChange)),
    setLogLevel: (level) => protocol.setLogLevel(level),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function readObjects(result: Result, key: string): readonly Params[] {
  const items = result[key];
  if (!Array.isArray(items) || !items.every(isObject)) throw toMisfit("the request", key);
  return items;
}

function toMisfit(method: string, key: string): RpcError {
  return new RpcError(0, `Cannot use the result of ${method}: ${key} is not what it should be`);
}
