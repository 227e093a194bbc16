/**
 * The types of the script that {@linkcode webMcp} serves, which a page imports by its URL.
 */

/** The exports of the script. */
export interface WebMcpModule {
  /** Registers the server's tools in the page. */
  readonly register: (options?: WebMcpRegisterOptions) => Promise<WebMcpRegistration>;
}

/** Options of `register`. */
export interface WebMcpRegisterOptions {
  /**
   * Returns the access token of the user of the page, or `undefined` for calls without a token. Called for each
   * request. The script sends the token only in the header `Authorization`, and only to the MCP endpoint. By default,
   * requests have no token.
   */
  readonly token?: () => string | undefined | Promise<string | undefined>;
  /** Whether to send cookies. The server must allow the page's origin with `credentials: true`. Defaults to `false`. */
  readonly cookies?: boolean;
  /**
   * Asks the user before a call of a tool without `readOnlyHint`, and when a tool asks for consent. The tool runs only
   * if the function returns `true`. Defaults to `window.confirm`, which shows at most 20 arguments; calls with more
   * arguments fail.
   */
  readonly confirm?: (request: WebMcpRequest) => boolean | Promise<boolean>;
  /** The URL of the MCP endpoint. Required if the server's path has parameters, or if the script belongs to a `mount`. */
  readonly url?: string;
  /** Gets the problem with each tool that the browser does not accept. Defaults to `console.warn`. */
  readonly onWarning?: (message: string) => void;
}

/** A call or a question that the user can allow. */
export interface WebMcpRequest {
  /** The name of the tool. */
  readonly name: string;
  /** The title of the tool, or its name. */
  readonly title: string;
  /** The arguments of the call. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The question that the tool asks. `undefined` before the call. */
  readonly question?: string;
}

/** The tools that `register` has registered. */
export interface WebMcpRegistration {
  /** Whether the browser has no `document.modelContext`, so that the script has set a stand-in. */
  readonly isStandIn: boolean;
  /** The names of the registered tools. */
  readonly tools: readonly string[];
  /**
   * Lists the server's tools again, and registers and removes the tools that have changed. Call it after the user has
   * signed in or out. If the server requires a valid token, rejects and removes all tools.
   */
  readonly update: () => Promise<void>;
  /** Removes the tools from the page, and cancels running calls. */
  readonly close: () => void;
}
