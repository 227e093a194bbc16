/**
 * The script that `webMcp()` serves. A page imports the script, and registers the server's tools in its model context.
 */
import type { WebMcpRegisterOptions, WebMcpRegistration } from "../page.ts";
import { type CallOptions, type CallResult, Endpoint, type ListedTool } from "./endpoint.ts";
import { findModelContext, type ModelContext, type RegisteredTool } from "./model_context.ts";

/** The names of the tools to register. The route adds the value to the script. `undefined` for all tools. */
declare const TOOLS: readonly string[] | undefined;
/** The URL of the MCP endpoint, relative to the script. The route adds the value to the script. */
declare const ENDPOINT: string | undefined;

/** Maximum number of characters of the arguments that `window.confirm` shows. */
const MAX_SHOWN = 1000;

/**
 * Registers the server's tools in the page.
 *
 * @throws {Error} if the page is not a secure context, or if the tools cannot be listed.
 */
export async function register(options: WebMcpRegisterOptions = {}): Promise<WebMcpRegistration> {
  if (!isSecureContext) throw new Error("Cannot register tools: the page is not a secure context; serve it over https");
  const url = options.url ?? ENDPOINT;
  if (url === undefined) throw new TypeError("Cannot register tools: there are several endpoints; pass the option url");
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
    for (const name of this.tools) this.#remove(name);
  };

  async #update(): Promise<void> {
    const listed = await this.#endpoint.list();
    if (this.#isClosed) return;
    const wanted = new Map(listed.filter(({ name }) => TOOLS?.includes(name) ?? true).map((tool) => [tool.name, tool]));
    for (const [name, { text }] of this.#held) {
      const tool = wanted.get(name);
      if (tool && JSON.stringify(tool) === text) wanted.delete(name);
      else this.#remove(name);
    }
    await Promise.all([...wanted.values()].map((tool) => this.#add(tool)));
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
        const args = { ...input };
        const ask = (question?: string) => this.#confirm({ name, title, arguments: args, question });
        if (!isReading && !await ask()) return toDeclined(name);
        const options: CallOptions = { ask, signal: signal ? AbortSignal.any([signal, ended]) : ended };
        options.signal.throwIfAborted();
        return await this.#endpoint.call(tool, args, options);
      },
    };
  }

  async #confirm(request: Parameters<NonNullable<WebMcpRegisterOptions["confirm"]>>[0]): Promise<boolean> {
    const { confirm } = this.#options;
    if (confirm) return await confirm(request) === true;
    const { title, question } = request;
    const text = JSON.stringify(request.arguments, undefined, 1);
    const shown = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
    return globalThis.confirm(question ?? `An agent wants to use "${title}":\n${shown}`);
  }
}

/** Returns the result that tells the agent that the user has declined, as the layer `confirm` of the server does. */
function toDeclined(name: string): CallResult {
  const text = `${name} did not run: the user declined. Do not call ${name} again unless the user asks you to.`;
  return { content: [{ type: "text", text }], isError: true };
}
