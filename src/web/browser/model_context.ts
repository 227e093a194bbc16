/**
 * The model context of the page: `document.modelContext` of the browser, or a stand-in with the same methods.
 *
 * @see the draft of WebMCP by the Web Machine Learning Community Group
 */

export interface RegisteredTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: object;
  readonly annotations: { readonly readOnlyHint: boolean; readonly untrustedContentHint: boolean };
  readonly execute: (input: object, options?: ExecuteOptions) => Promise<unknown>;
}

interface ExecuteOptions {
  /** Aborts when the agent cancels the call. */
  readonly signal?: AbortSignal;
}

/** The part of the browser's model context that the script uses. */
export interface ModelContext {
  registerTool(tool: RegisteredTool, options: { readonly signal: AbortSignal }): Promise<void>;
}

/**
 * Returns the model context, and whether it is a stand-in. Sets the stand-in as `document.modelContext`, so that tests
 * and browser extensions find the tools in the same place.
 */
export function findModelContext(): readonly [ModelContext, boolean] {
  const found: unknown = Reflect.get(document, "modelContext");
  // Another copy of the script may have set the stand-in.
  if (isModelContext(found)) return [found, "isStandIn" in found];
  const standIn = new StandIn();
  Object.defineProperty(document, "modelContext", { value: standIn, configurable: true });
  return [standIn, true];
}

function isModelContext(value: unknown): value is ModelContext {
  return typeof Object(value).registerTool === "function";
}

class StandIn extends EventTarget implements ModelContext {
  readonly isStandIn = true;
  readonly #tools = new Map<string, RegisteredTool>();

  registerTool(tool: RegisteredTool, { signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    const { name, description } = tool;
    const state = this.#tools.has(name)
      ? "Duplicate tool name"
      : !/^[\w.-]{1,128}$/.test(name)
      ? "Invalid tool name"
      : description
      ? undefined
      : "Description is required";
    if (state) return Promise.reject(new DOMException(state, "InvalidStateError"));
    if (signal?.aborted) return Promise.reject(signal.reason);
    this.#tools.set(name, tool);
    signal?.addEventListener("abort", () => {
      this.#tools.delete(name);
      this.#notify();
    }, { once: true });
    this.#notify();
    return Promise.resolve();
  }

  getTools(): Promise<readonly object[]> {
    return Promise.resolve(
      [...this.#tools.values()].map(({ execute: _, ...tool }) => ({ ...tool, origin: location.origin, window })),
    );
  }

  /** Runs a tool of `getTools`. Resolves with its result as JSON. */
  async executeTool({ name }: { readonly name: string }, input: object, options: ExecuteOptions = {}): Promise<string> {
    const tool = this.#tools.get(name);
    if (!tool) throw new DOMException("Tool not found", "NotFoundError");
    return JSON.stringify(await tool.execute(input, options));
  }

  #notify(): void {
    this.dispatchEvent(new Event("toolchange"));
  }
}
