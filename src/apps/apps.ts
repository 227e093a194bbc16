/**
 * Apps: HTML documents that a client shows for the results of tools.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { app, canShow, ui } from "@x/mcp/apps";
 *
 * const clock = app({
 *   uri: "ui://clock",
 *   html: `<!doctype html><title>Clock</title><h1></h1>
 *     <script>mcpApp.on("result", ({ structuredContent }) => document.querySelector("h1").append(structuredContent.now));</script>`,
 * });
 *
 * const time = tool({
 *   name: "time",
 *   extensions: [ui(clock)],
 *   run(_input, ctx) {
 *     const now = new Date().toISOString();
 *     return canShow(ctx, clock) ? { now } : `It is ${now}.`;
 *   },
 * });
 *
 * export default createServer({ name: "clock", version: "1.0.0", handlers: [clock, time] });
 * ```
 *
 * @see modelcontextprotocol/ext-apps, the specification of the extension `io.modelcontextprotocol/ui`
 * @module
 */
import { checkOptions, type KnownOptions, toPlace } from "../core/call/known_options.ts";
import type { Attribute } from "../extension.ts";
import { isObject } from "../kit/json.ts";
import { type Context, extension, type FixedResource, type Handler, resource } from "../library.ts";
import { findProcess } from "../runtime.ts";
import type { NoServices, ResourceFixedOptions } from "../types.ts";
import { script } from "./bridge_script.ts";
import { addScript, findLoaded } from "./document.ts";
import { type AppMetadata, findOriginProblem, toMetadata } from "./metadata.ts";

export type { AppCsp, AppMetadata, AppPermissions } from "./metadata.ts";

/** Options of an app. Required are `uri` and either `html` or `file`. */
export interface AppOptions extends AppMetadata {
  /** URI of the app, which begins with `ui://`, such as `ui://chart`. */
  readonly uri: `ui://${string}`;
  /**
   * The HTML document with its scripts and styles. It cannot load files from the server, because hosts receive only the
   * document.
   */
  readonly html?: string;
  /** The file of the HTML document, in UTF-8, such as `new URL("./chart.html", import.meta.url)`. It is read once. */
  readonly file?: URL | string;
  /** Name for people. Defaults to the URI without `ui://`. */
  readonly name?: string;
  /** Title for people. */
  readonly title?: string;
  /** What the app shows. */
  readonly description?: string;
  /** Icons of the app. */
  readonly icons?: ResourceFixedOptions["icons"];
  /** Labels, such as `admin` for `server.handlers.disable({ tag: "admin" })`. Clients do not see them. */
  readonly tags?: readonly string[];
  /** Decides whether a caller may read the app. */
  readonly allow?: ResourceFixedOptions["allow"];
  /** Scopes that the caller must have to read the app. */
  readonly scopes?: readonly string[];
  /** Milliseconds for which clients may cache the app. Defaults to the server's `ttlMs`. */
  readonly ttlMs?: number;
  /** Whether callers may share a cached app. Defaults to `"private"`. */
  readonly cacheScope?: "public" | "private";
}

/** An app for `handlers`: a resource. */
export type App = FixedResource<NoServices>;

/** Options of {@linkcode ui}. */
export interface UiOptions {
  /**
   * The callers of the tool: the model, or apps of this server. A host hides a tool without `"model"` from its model,
   * and rejects calls from apps to a tool without `"app"`. Defaults to both.
   */
  readonly visibility?: readonly ("model" | "app")[];
}

/** Media type of apps. */
const HTML = "text/html;profile=mcp-app";
const ID = "io.modelcontextprotocol/ui";

const ORIGINS = { findProblem: findOriginProblem } as const;
const EMPTY = { names: {} } as const;

const OPTIONS: KnownOptions<keyof AppOptions> = {
  names: {
    uri: { findProblem: findUriProblem },
    html: true,
    file: true,
    csp: {
      names: { connectDomains: ORIGINS, resourceDomains: ORIGINS, frameDomains: ORIGINS, baseUriDomains: ORIGINS },
    },
    permissions: { names: { camera: EMPTY, microphone: EMPTY, geolocation: EMPTY, clipboardWrite: EMPTY } },
    domain: { findProblem: (value) => typeof value === "string" && value ? undefined : "is not the name of a host" },
    prefersBorder: "boolean",
    name: true,
    title: true,
    description: true,
    icons: true,
    tags: "texts",
    allow: "function",
    scopes: true,
    ttlMs: true,
    cacheScope: ["public", "private"],
  },
  hints: { path: "file", text: "html", content: "html", url: "uri", canAccess: "allow", authorize: "allow" },
  elsewhere: { mimeType: "remove it, because apps have a fixed media type", read: "use html or file" },
};

const UI: KnownOptions<keyof UiOptions> = {
  names: {
    visibility: {
      findProblem(value) {
        const isKnown = Array.isArray(value) && value.length > 0 &&
          value.every((each) => each === "model" || each === "app");
        return isKnown ? undefined : 'must list "model", "app" or both';
      },
    },
  },
};

/** The settings are empty, because the metadata of tools describes the apps of a server. */
const apps = /* @__PURE__ */ extension({ id: ID });

/**
 * Creates an app: a resource with an HTML document, which {@linkcode ui} connects to tools. A script is added to the
 * document, which connects it to the host as the global `mcpApp`. See `@x/mcp/apps/page` for its type.
 *
 * @throws {TypeError} if an option is unknown or invalid, if the file cannot be read, or if the document has a relative
 * URL, because hosts receive only the document.
 */
export function app(options: AppOptions): App {
  const place = toPlace("app", options, "uri");
  checkOptions(`make ${place}`, options, OPTIONS);
  const { uri, html, file, csp, permissions, domain, prefersBorder, ...others } = options;
  const refuse = (state: string) => new TypeError(`Cannot make ${place}: ${state}`);
  const problem = findUriProblem(uri);
  if (problem !== undefined) throw refuse(`its uri ${problem}`);
  if ((html === undefined) === (file === undefined)) throw refuse("use either html or file");
  const source = file === undefined ? html : readFile(file, refuse);
  if (typeof source !== "string" || !source.trim()) throw refuse("the document is empty; give HTML as text");
  const loaded = findLoaded(source);
  if (loaded !== undefined) {
    throw refuse(
      `${loaded}; an app is a single document: include the content in it, or use an absolute URL and list its origin in csp`,
    );
  }
  const text = addScript(source, script);
  const metadata = toMetadata({ csp, permissions, domain, prefersBorder });
  const _meta = metadata && { ui: metadata };
  return resource({
    name: uri.slice("ui://".length),
    ...others,
    uri,
    mimeType: HTML,
    _meta,
    extensions: [apps.attribute({ registers: true })],
    read: () => [{ uri, mimeType: HTML, text, ..._meta && { _meta } }],
  });
}

/**
 * Returns an attribute that connects a tool to an app, for `extensions` of the tool. Hosts show the app for the results
 * of the tool.
 *
 * @throws {TypeError} if the app was not made by {@linkcode app}, or an option is unknown or invalid.
 */
export function ui(app: App, options: UiOptions = {}): Attribute {
  const uri = toUri(app, "connect a tool to an app");
  checkOptions(`connect a tool to app ${JSON.stringify(uri)}`, options, UI);
  const { visibility } = options;
  return apps.attribute({
    registers: true,
    // Set both keys, because older hosts support only `ui/resourceUri`.
    list: { ui: { resourceUri: uri, ...visibility && { visibility: [...visibility] } }, "ui/resourceUri": uri },
    check: ({ has }) =>
      has("resource", uri) ? undefined : `no resource ${JSON.stringify(uri)}; add the app to handlers`,
  });
}

/**
 * Whether the client of a call can show an app. Return the same information as text to other clients. The client is not
 * verified, so never use the result to authorize a call.
 *
 * @throws {TypeError} if the app was not made by {@linkcode app}.
 */
export function canShow<S>(ctx: Context<S>, app: App): boolean {
  toUri(app, "test whether a client can show an app");
  const { extensions } = ctx.client.capabilities;
  const settings: unknown = isObject(extensions) && Object.hasOwn(extensions, ID) ? extensions[ID] : undefined;
  const types: unknown = isObject(settings) ? settings.mimeTypes : undefined;
  return Array.isArray(types) && types.includes(HTML);
}

function findUriProblem(uri: unknown): string | undefined {
  const isValid = typeof uri === "string" && /^ui:\/\/[^\s{}]+$/.test(uri) && URL.canParse(uri);
  return isValid ? undefined : "is not a URI such as ui://chart";
}

function toUri(app: Handler, action: string): string {
  const uri: unknown = isObject(app) && "uri" in app && typeof app.uri === "function" ? app.uri() : undefined;
  if (typeof uri === "string" && findUriProblem(uri) === undefined) return uri;
  throw new TypeError(`Cannot ${action}: it is not an app; make it with app()`);
}

/** Reads a text file synchronously, so that a program with a missing file fails at its start. */
function readFile(file: URL | string, refuse: (state: string) => TypeError): string {
  if (!(file instanceof URL) && (typeof file !== "string" || !file)) {
    throw refuse('its file is not a path; write new URL("./app.html", import.meta.url)');
  }
  const shown = file instanceof URL ? file.href : file;
  try {
    const path = typeof file === "string" && file.startsWith("file:") ? new URL(file) : file;
    return new TextDecoder("utf-8", { fatal: true }).decode(findProcess().getBuiltinModule("fs").readFileSync(path));
  } catch (error) {
    throw refuse(`cannot read ${shown}: ${error instanceof Error ? error.message : error}`);
  }
}
