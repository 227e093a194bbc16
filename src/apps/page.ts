/**
 * The page of an app: how its scripts communicate with the host.
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
 * Scripts that are not bundled use the global `mcpApp`, which is the same object.
 *
 * @module
 */

/** How a host shows an app. */
export type AppDisplayMode = "inline" | "fullscreen" | "pip";

/** Facts that a host gives to an app. All of them are optional, and a host may send further facts. */
export interface AppHostContext {
  /** Color theme. It is set as `color-scheme` of the page, and as `data-theme` of its `html` element. */
  readonly theme?: "light" | "dark";
  /** Styles. Variables and fonts are added to the page. */
  readonly styles?: {
    /** CSS variables, such as `--color-text-primary`. */
    readonly variables?: Readonly<Record<string, string | undefined>>;
    /** Blocks of CSS. */
    readonly css?: { readonly fonts?: string };
  };
  /** How the app is currently shown. */
  readonly displayMode?: AppDisplayMode;
  /** How the host can show the app. */
  readonly availableDisplayModes?: readonly string[];
  /** Size of the frame in pixels. */
  readonly containerDimensions?: Readonly<Record<string, number | undefined>>;
  /** Language of the user, such as `en-US`. */
  readonly locale?: string;
  /** Time zone of the user, such as `Europe/Berlin`. */
  readonly timeZone?: string;
  /** Other facts, such as `toolInfo` and `platform`. */
  readonly [name: string]: unknown;
}

/** The host's description of itself. */
export interface AppHost {
  /** Version of the protocol between app and host. */
  readonly protocolVersion: string;
  /** Name and version of the host. */
  readonly hostInfo?: { readonly name: string; readonly version: string };
  /** Capabilities of the host, such as `openLinks` and `serverTools`. */
  readonly hostCapabilities?: Readonly<Record<string, unknown>>;
  /** Facts about the display and the user. */
  readonly hostContext?: AppHostContext;
}

/** The result of a tool, as a page gets it. */
export interface AppToolResult {
  /** Content for the model. */
  readonly content?: readonly { readonly type: string; readonly text?: string; readonly [name: string]: unknown }[];
  /** Data for the page. */
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  /** Whether the tool failed. */
  readonly isError?: boolean;
  /** Metadata, which the model does not see. */
  readonly _meta?: Readonly<Record<string, unknown>>;
}

/** The events that a page can listen to, with the value that each listener gets. */
export interface AppEvents {
  /** The arguments of the call for which the app is shown. */
  readonly input: Readonly<Record<string, unknown>>;
  /** Incomplete arguments, while the model is still writing the arguments. */
  readonly partial: Readonly<Record<string, unknown>>;
  /** The result of the call for which the app is shown. */
  readonly result: AppToolResult;
  /** The reason why the call was cancelled. */
  readonly cancelled: string | undefined;
  /** All facts about the display and the user, after a change. */
  readonly context: AppHostContext;
  /** The reason why the app will be removed. The host waits for the promise that the listener returns. */
  readonly teardown: string | undefined;
}

/**
 * The connection of a page to its host. If the host responds with an error, the promise rejects with its `code` and
 * `data`.
 */
export interface AppPage {
  /** Resolves when the host has answered. Rejects if the page is not shown by a host. */
  readonly ready: Promise<AppHost>;
  /** The latest facts that the host has sent. Empty before `ready`. */
  readonly context: AppHostContext;
  /**
   * The display modes that the page supports. Set them in a script of the page, because scripts run before the page
   * connects.
   */
  displayModes: readonly AppDisplayMode[];
  /**
   * Adds a listener. If the event has occurred before, the listener is called with its latest value, so that it may be
   * added late. Returns a function that removes the listener.
   */
  on<K extends keyof AppEvents>(event: K, listener: (value: AppEvents[K]) => unknown): () => void;
  /** Calls a tool of the server. */
  callTool(name: string, args?: Readonly<Record<string, unknown>>): Promise<AppToolResult>;
  /** Reads a resource of the server. */
  readResource(uri: string): Promise<{
    readonly contents: readonly { readonly uri: string; readonly text?: string; readonly blob?: string }[];
  }>;
  /** Asks the host to open a link, because the page cannot. */
  openLink(url: string): Promise<void>;
  /** Sends a message to the conversation, on behalf of the user. */
  sendMessage(text: string): Promise<void>;
  /** Replaces the information about the page that the model gets. */
  updateContext(
    context: {
      readonly content?: AppToolResult["content"];
      readonly structuredContent?: Readonly<Record<string, unknown>>;
    },
  ): Promise<void>;
  /** Requests another display mode. Resolves with the mode that the host has set. */
  setDisplayMode(mode: AppDisplayMode): Promise<AppDisplayMode>;
  /** Sends a log message to the host. */
  log(level: string, data: unknown, logger?: string): void;
  /** Sends any request to the host. Waits for `ready`. */
  request(method: string, params?: Readonly<Record<string, unknown>>): Promise<unknown>;
}

/** Name of the global that the script of `app()` sets. */
const GLOBAL = "mcpApp";

/**
 * Returns the connection to the host. The script that `app()` adds to the page creates it.
 *
 * @throws {Error} if the page does not have the script.
 */
export function getPage(): AppPage {
  const page: AppPage | undefined = Reflect.get(globalThis, GLOBAL);
  if (page) return page;
  throw new Error("Cannot reach the host: the page has no bridge; serve it with app() of @x/mcp/apps");
}
