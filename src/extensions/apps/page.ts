/**
 * Connects the scripts of an app's page to the host.
 *
 * ```ts
 * import { getPage } from "@x/mcp/apps/page";
 *
 * export async function refresh(): Promise<unknown> {
 *   const page = getPage();
 *   const { structuredContent } = await page.callTool("time");
 *   return structuredContent;
 * }
 * ```
 *
 * Scripts that are not bundled use the global `mcpApp`. {@linkcode getPage} returns the same object.
 *
 * @module
 */

/** How a host shows an app. */
export type AppDisplayMode = "inline" | "fullscreen" | "pip";

/** Facts about the display and the user that a host sends to an app. A host may send additional facts. */
export interface AppHostContext {
  /** Color theme. The bridge sets `color-scheme` and the attribute `data-theme` of the `html` element to this value. */
  readonly theme?: "light" | "dark";
  /** Styles of the host. The bridge adds the variables and fonts to the page. */
  readonly styles?: {
    /** CSS variables, such as `--color-text-primary`. */
    readonly variables?: Readonly<Record<string, string | undefined>>;
    /** CSS text, such as `@font-face` rules in `fonts`. */
    readonly css?: { readonly fonts?: string };
  };
  /** How the app is currently shown. */
  readonly displayMode?: AppDisplayMode;
  /** The display modes that the host supports. */
  readonly availableDisplayModes?: readonly string[];
  /** Size of the app's frame, in pixels. */
  readonly containerDimensions?: Readonly<Record<string, number | undefined>>;
  /** Language of the user, such as `en-US`. */
  readonly locale?: string;
  /** Time zone of the user, such as `Europe/Berlin`. */
  readonly timeZone?: string;
  /** Other facts, such as `toolInfo` and `platform`. */
  readonly [name: string]: unknown;
}

/** The host's response to `ui/initialize`. */
export interface AppHost {
  /** Version of the protocol between the app and the host. */
  readonly protocolVersion: string;
  /** Name and version of the host. */
  readonly hostInfo?: { readonly name: string; readonly version: string };
  /** Capabilities of the host, such as `openLinks` and `serverTools`. */
  readonly hostCapabilities?: Readonly<Record<string, unknown>>;
  /** Facts about the display and the user. */
  readonly hostContext?: AppHostContext;
}

/** The result of a tool call. */
export interface AppToolResult {
  /** Content for the model. */
  readonly content?: readonly { readonly type: string; readonly text?: string; readonly [name: string]: unknown }[];
  /** Data for the page. */
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  /** Whether the call failed. */
  readonly isError?: boolean;
  /** Metadata that the model does not see. */
  readonly _meta?: Readonly<Record<string, unknown>>;
}

/** The events that a page can listen to, with the type of the value that the listener receives. */
export interface AppEvents {
  /** The arguments of the tool call for which the app is shown. */
  readonly input: Readonly<Record<string, unknown>>;
  /** The incomplete arguments of the tool call, while the model is still writing them. */
  readonly partial: Readonly<Record<string, unknown>>;
  /** The result of the tool call for which the app is shown. */
  readonly result: AppToolResult;
  /** The reason why the tool call was cancelled. */
  readonly cancelled: string | undefined;
  /** All facts about the display and the user, after a change. */
  readonly context: AppHostContext;
  /** The reason why the host removes the app. The host waits for the promise that the listener returns. */
  readonly teardown: string | undefined;
}

/**
 * The connection between a page and the host. If the host responds with an error, the promise of the method rejects
 * with an error that has the same `code` and `data`.
 */
export interface AppPage {
  /** Resolves when the host has responded to `ui/initialize`. Rejects if no host shows the page. */
  readonly ready: Promise<AppHost>;
  /** The latest facts that the host has sent. Empty until `ready` resolves. */
  readonly context: AppHostContext;
  /**
   * The display modes that the page supports. Defaults to `["inline"]`. Set this property while the page loads, because
   * the page sends it to the host as soon as the document is loaded.
   */
  displayModes: readonly AppDisplayMode[];
  /** A listener for a past event is called with its latest value. Returns a function that removes the listener. */
  on<K extends keyof AppEvents>(event: K, listener: (value: AppEvents[K]) => unknown): () => void;
  /** Calls a tool of the server. */
  callTool(name: string, args?: Readonly<Record<string, unknown>>): Promise<AppToolResult>;
  /** Reads a resource of the server. */
  readResource(uri: string): Promise<{
    readonly contents: readonly { readonly uri: string; readonly text?: string; readonly blob?: string }[];
  }>;
  /** Asks the host to open a link, because the sandboxed page cannot open links. */
  openLink(url: string): Promise<void>;
  /** Adds a message to the conversation on behalf of the user. */
  sendMessage(text: string): Promise<void>;
  /** Replaces the information that the host gives to the model about the page. */
  updateContext(
    context: {
      readonly content?: AppToolResult["content"];
      readonly structuredContent?: Readonly<Record<string, unknown>>;
    },
  ): Promise<void>;
  /** Requests a display mode. Resolves with the mode that the host has set, which may differ from `mode`. */
  setDisplayMode(mode: AppDisplayMode): Promise<AppDisplayMode>;
  /** Sends a log message to the host. */
  log(level: string, data: unknown, logger?: string): void;
  /** Sends a request with any method to the host, after `ready` has resolved. */
  request(method: string, params?: Readonly<Record<string, unknown>>): Promise<unknown>;
}

/** Name of the global that the bridge script sets. */
const GLOBAL = "mcpApp";

/**
 * Returns the connection to the host. The script that `app()` adds to the page has created the connection.
 *
 * @throws {Error} if the page does not contain the script.
 */
export function getPage(): AppPage {
  const page: AppPage | undefined = Reflect.get(globalThis, GLOBAL);
  if (page) return page;
  throw new Error("Cannot reach the host: the page has no bridge; serve the page with app() of @x/mcp/apps");
}
