/**
 * The script that `webMcp()` serves. A page imports the script, and registers the server's tools in its model context.
 */
import { toPrintable, toPrintableJson } from "../../core/kit/printable.ts";
import type { WebMcpRegisterOptions, WebMcpRegistration, WebMcpRequest } from "../page.ts";
import { type CallOptions, type CallResult, Endpoint, type ListedTool, UnauthorizedError } from "./endpoint.ts";
import { findModelContext, type ModelContext, type RegisteredTool } from "./model_context.ts";

/** The names of the tools to register. The route adds the value to the script. `undefined` for all tools. */
declare const TOOLS: readonly string[] | undefined;
/** The URL of the MCP endpoint, relative to the script. The route adds the value to the script. */
declare const ENDPOINT: string | undefined;

/** Number of characters of the arguments that `window.confirm` shows, because browsers shorten long texts. */
const MAX_SHOWN = 1000;
/** Number of arguments that `window.confirm` shows. */
const MAX_ARGUMENTS = 20;

const TYPES: Readonly<Record<string, string | null>> = {
  __proto__: null, // so that a name such as toString is not known
  token: "function",
  cookies: "boolean",
  confirm: "function",
  url: "string",
  onWarning: "function",
};

/**
 * Registers the server's tools in the page.
 *
 * @throws {TypeError} if an option is unknown or invalid.
 * @throws {Error} if the page is not a secure context, or if the tools cannot be listed.
 */
export async function register(options: WebMcpRegisterOptions = {}): Promise<WebMcpRegistration> {
  if (!isSecureContext) throw new Error("Cannot register tools: the page is not a secure context; serve it over https");
  for (const [name, value] of Object.entries(options)) {
    const type = TYPES[name];
    if (value === undefined || typeof value === type) continue;
    throw new TypeError(`Cannot register tools: ${name} is not a ${type ?? "known option"}`);
  }
  const url = options.url ?? ENDPOINT;
  if (url === undefined) throw new TypeError("Cannot register tools: there are several endpoints; pass url");
  const registered = new Registered(new Endpoint(new URL(url, import.meta.url).href, options), options);
  await registered.update();
  return registered;
}

interface Held {
  /** The tool as JSON, to find changes. */
  readonly text: string;
  readonly end: AbortController;
}

class Registered implements WebMcpRegistration {
  readonly isStandIn: boolean;
  readonly #context: ModelContext;
  readonly #endpoint: Endpoint;
  readonly #options: WebMcpRegisterOptions;
  readonly #held = new Map<string, Held>();
  #isClosed = false;
  /** Settles when the last update has ended. Updates run one after another. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(endpoint: Endpoint, options: WebMcpRegisterOptions) {
    [this.#context, this.isStandIn] = findModelContext();
    this.#endpoint = endpoint;
    this.#options = options;
  }

  get tools(): readonly string[] {
    return [...this.#held.keys()];
  }

  readonly update = (): Promise<void> => {
    const turn = this.#turn.then(() => this.#update());
    this.#turn = turn.catch(() => {});
    return turn;
  };

  readonly close = (): void => {
    this.#isClosed = true;
    this.#removeAll();
  };

  async #update(): Promise<void> {
    const listed = await this.#list();
    if (this.#isClosed) return;
    const wanted = new Map(listed.filter(({ name }) => TOOLS?.includes(name) ?? true).map((tool) => [tool.name, tool]));
    for (const [name, { text }] of this.#held) {
      const tool = wanted.get(name);
      if (tool && JSON.stringify(tool) === text) wanted.delete(name);
      else this.#remove(name);
    }
    await Promise.all([...wanted.values()].map((tool) => this.#add(tool)));
  }

  /** Lists the tools. If there is no valid token, removes all tools, because they belong to an earlier user. */
  async #list(): Promise<readonly ListedTool[]> {
    try {
      return await this.#endpoint.list();
    } catch (error) {
      if (error instanceof UnauthorizedError) this.#removeAll();
      throw error;
    }
  }

  #removeAll(): void {
    for (const name of this.tools) this.#remove(name);
  }

  #remove(name: string): void {
    this.#held.get(name)?.end.abort();
    this.#held.delete(name);
  }

  async #add(tool: ListedTool): Promise<void> {
    const end = new AbortController();
    this.#held.set(tool.name, { text: JSON.stringify(tool), end });
    try {
      await this.#context.registerTool(this.#toRegistered(tool, end.signal), { signal: end.signal });
    } catch (error) {
      if (end.signal.aborted) return;
      this.#held.delete(tool.name);
      const { onWarning = console.warn } = this.#options;
      onWarning(
        `Cannot register the tool ${JSON.stringify(tool.name)}: ${error instanceof Error ? error.message : error}`,
      );
    }
  }

  #toRegistered(tool: ListedTool, ended: AbortSignal): RegisteredTool {
    const { name, title = tool.annotations?.title ?? name, description, inputSchema, annotations = {} } = tool;
    const isReading = annotations.readOnlyHint === true;
    return {
      name,
      title,
      description: description || title,
      inputSchema,
      annotations: { readOnlyHint: isReading, untrustedContentHint: annotations.openWorldHint !== false },
      execute: async (input, { signal } = {}) => {
        // Copy the arguments, because the caller could change them after the user has seen them.
        const args = structuredClone({ ...input });
        const ask = (question?: string) => this.#confirm({ name, title, arguments: args, question });
        if (!isReading && !await ask()) return toDeclined(name);
        const options: CallOptions = { ask, signal: signal ? AbortSignal.any([signal, ended]) : ended };
        options.signal.throwIfAborted();
        return await this.#endpoint.call(tool, args, options);
      },
    };
  }

  async #confirm(request: WebMcpRequest): Promise<boolean> {
    const { confirm } = this.#options;
    if (confirm) return await confirm(request) === true;
    const { question } = request;
    return globalThis.confirm(question === undefined ? describe(request) : toPrintable(question));
  }
}

/**
 * Describes a call to the user, with a line for each argument. Each argument has an equal share of the text, and
 * invisible characters are escaped, because an agent could otherwise hide an argument behind another.
 *
 * @throws {Error} if there are too many arguments.
 */
function describe({ name, title, arguments: args }: WebMcpRequest): string {
  const entries = Object.entries(args);
  if (entries.length > MAX_ARGUMENTS) {
    const state = `users can review at most ${MAX_ARGUMENTS} arguments`;
    throw new Error(`Cannot call ${name}: ${state}; pass confirm to register()`);
  }
  const share = Math.floor(MAX_SHOWN / entries.length);
  const lines = entries.map(([key, value]) => {
    const line = toPrintableJson(`${JSON.stringify(key)}: ${JSON.stringify(value)}`);
    return line.length > share ? `${line.slice(0, share)}… (${line.length} characters)` : line;
  });
  const what = `An agent wants to use ${toPrintableJson(JSON.stringify(title))}`;
  return lines.length ? `${what}:\n${lines.join("\n")}` : `${what} without arguments`;
}

/** Returns the result that tells the agent that the user has declined, as the layer `confirm` of the server does. */
function toDeclined(name: string): CallResult {
  const text = `${name} did not run: the user declined. Do not call ${name} again unless the user asks.`;
  return { content: [{ type: "text", text }], isError: true };
}
