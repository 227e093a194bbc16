/**
 * Apps: HTML documents that a client shows with the results of tools.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { app, supportsApp, ui } from "@x/mcp/apps";
 *
 * const clock = app({
 *   uri: "ui://clock",
 *   html: `<!doctype html><title>Clock</title><h1></h1>
 *     <script>mcpApp.on("result", ({ structuredContent }) => document.querySelector("h1").append(structuredContent.now));</script>`,
 * });
 *
 * const time = tool({
 *   name: "time",
 *   use: [ui(clock)],
 *   run(_input, ctx) {
 *     const now = new Date().toISOString();
 *     return supportsApp(ctx, clock) ? { now } : `It is ${now}.`;
 *   },
 * });
 *
 * export default createServer({ name: "clock", version: "1.0.0", handlers: [clock, time] });
 * ```
 *
 * @see modelcontextprotocol/ext-apps, the specification of the extension `io.modelcontextprotocol/ui`
 * @module
 */
import { checkOptions, type KnownOptions, toPlace } from "../../core/known_options.ts";
import type { Layer } from "../../layers/layers.ts";
import { isObject } from "../../core/kit/json.ts";
import { type Context, extension, type FixedResource, type Handler, resource } from "../../library.ts";
import { findProcess } from "../../core/runtime.ts";
import type { NoServices } from "../../server/call/service.ts";
import type { ResourceFixedOptions } from "../../server/handlers/resource.ts";
import { script } from "./bridge_script.ts";
import { addScript, findLoaded } from "./document.ts";
import { type AppMetadata, findOriginProblem, toMetadata } from "./metadata.ts";

export type { AppMetadata } from "./metadata.ts";

/** Options of {@linkcode app}. Requires `uri`, and either `html` or `file`. */
export interface AppOptions extends AppMetadata {
  /** The app's URI, which must begin with `ui://`, such as `ui://chart`. */
  readonly uri: `ui://${string}`;
  /** The HTML document, with inline scripts and styles, because the host receives only the document. */
  readonly html?: string;
  /**
   * The file that contains the HTML document in UTF-8, such as `new URL("./chart.html", import.meta.url)`. `app()`
   * reads the file once.
   */
  readonly file?: URL | string;
  /** Name of the resource. Defaults to the URI without `ui://`. */
  readonly name?: string;
  /** Title that clients show to users. */
  readonly title?: string;
  /** What the app shows. */
  readonly description?: string;
  /** Icons of the app. */
  readonly icons?: ResourceFixedOptions["icons"];
  /**
   * Labels by which operators select handlers, such as `admin` for `server.handlers.disable({ tag: "admin" })`. Clients
   * do not see the labels.
   */
  readonly tags?: readonly string[];
  /** Returns whether a caller may read the app. */
  readonly allow?: ResourceFixedOptions["allow"];
  /** Scopes that the caller must have to read the app. */
  readonly scopes?: readonly string[];
  /** Milliseconds for which clients may cache the app. Defaults to the server's `ttlMs`. */
  readonly ttlMs?: number;
  /** Whether caches may share the app among callers. Defaults to `"private"`. */
  readonly cacheScope?: "public" | "private";
}

/** A resource that contains an app. Pass it to `createServer` in `handlers`. */
export type App = FixedResource<NoServices>;

/** Options of {@linkcode ui}. */
export interface UiOptions {
  /**
   * Which callers can use the tool: the model, this server's apps, or both. Without `"model"`, the host hides the tool
   * from its model. Without `"app"`, the host rejects calls from apps. Defaults to both.
   */
  readonly visibility?: readonly ("model" | "app")[];
}

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
    domain: { findProblem: (value) => typeof value === "string" && value ? undefined : "must be a non-empty string" },
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
  hints: { path: "file", text: "html", content: "html", canAccess: "allow", authorize: "allow" },
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

/** The extension needs no settings, because the metadata of each tool names the tool's app. */
const apps = /* @__PURE__ */ extension({ id: ID });

/**
 * Creates an app: a resource that contains an HTML document. Use {@linkcode ui} to connect the app to tools. `app()`
 * adds a script to the document. The script sets the global `mcpApp`, through which the page communicates with the
 * host. Its type is `AppPage` of `@x/mcp/apps/page`.
 *
 * @throws {TypeError} if an option is unknown or invalid, if the file cannot be read, or if the document contains a
 * relative URL, which a host could not load.
 */
export function app(options: AppOptions): App {
  const place = toPlace("app", options, "uri");
  checkOptions(`make ${place}`, options, OPTIONS);
  const { uri, html, file, csp, permissions, domain, prefersBorder, ...others } = options;
  const refuse = (state: string) => new TypeError(`Cannot make ${place}: ${state}`);
  const problem = findUriProblem(uri);
  if (problem !== undefined) throw refuse(`its uri ${problem}`);
  if ((html === undefined) === (file === undefined)) {
    throw refuse("it has both html and file, or neither; use one of the two options");
  }
  const source = file === undefined ? html : readFile(file, refuse);
  if (typeof source !== "string" || !source.trim()) {
    throw refuse("the document is not a string, or is empty; pass HTML as a string");
  }
  const loaded = findLoaded(source);
  if (loaded !== undefined) {
    throw refuse(
      `${loaded}; hosts receive only the document: include the content in the document, or use an absolute URL and list its origin in csp`,
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
    use: [apps.layer({ registers: true })],
    read: () => [{ uri, mimeType: HTML, text, ..._meta && { _meta } }],
  });
}

/**
 * Creates a layer that connects a tool to an app. Pass the layer in `use` of the tool. Hosts show the app with the
 * tool's results.
 *
 * @throws {TypeError} if `app` was not created by {@linkcode app}, or an option is unknown or invalid.
 */
export function ui(app: App, options: UiOptions = {}): Layer {
  const uri = toUri(app, "connect a tool to an app");
  checkOptions(`connect a tool to app ${JSON.stringify(uri)}`, options, UI);
  const { visibility } = options;
  return apps.layer({
    registers: true,
    // Set both keys, because older hosts support only `ui/resourceUri`.
    list: { ui: { resourceUri: uri, ...visibility && { visibility: [...visibility] } }, "ui/resourceUri": uri },
    verify: ({ has }) =>
      has("resource", uri) ? undefined : `no resource ${JSON.stringify(uri)}; add the app to handlers`,
  });
}

/**
 * Tests whether the client that made the call can show apps. If the client cannot show apps, return the app's
 * information as text. Clients report this capability themselves, so never use the result to authorize a call.
 *
 * @throws {TypeError} if `app` was not created by {@linkcode app}.
 */
export function supportsApp<S>(ctx: Context<S>, app: App): boolean {
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
  throw new TypeError(`Cannot ${action}: the value is not an app; create the app with app()`);
}

/** Reads a text file synchronously, so that a missing file is reported at startup. */
function readFile(file: URL | string, refuse: (state: string) => TypeError): string {
  if (!(file instanceof URL) && (typeof file !== "string" || !file)) {
    throw refuse('its file is not a path; write new URL("./app.html", import.meta.url)');
  }
  const shown = file instanceof URL ? file.href : file;
  try {
    const path = typeof file === "string" && file.startsWith("file:") ? new URL(file) : file;
    return new TextDecoder("utf-8", { fatal: true }).decode(findProcess().getBuiltinModule("fs").readFileSync(path));
  } catch (error) {
    throw refuse(`its file ${shown} could not be read: ${error instanceof Error ? error.message : error}`);
  }
}
