/**
 * Communicates with an app in a frame. Responds to the app's requests, and passes the app's tool calls to the server.
 *
 * @see modelcontextprotocol/ext-apps, specification/2026-01-26/apps
 */
import { isObject } from "../../../core/kit/json.ts";
import { isOriginSource } from "../../../core/kit/origin_source.ts";
import { sandbox, version } from "./config.ts";
import { h } from "./dom.ts";
import type { Outcome } from "./exchange.ts";
import { type Json, toCompact, toObject, toObjects, toText } from "./json.ts";
import { send } from "./rpc_client.ts";
import { toParamHeaders } from "./schema_reader.ts";

/** The tool call whose result an app shows. */
export interface ShownCall {
  readonly tool: Json;
  readonly given: Json;
  readonly result: Json;
}

export interface AppEvents {
  /** Called for each message in either direction. */
  onMessage(way: "sent" | "received", message: Json, text: string): void;
  onLink(url: string): void;
  /** Called when the app is removed because it floods the page with messages. */
  onFlood(): void;
}

const RESERVED = "ui/notifications/sandbox-";
const MAX_HEIGHT = 640;
/** Maximum number of an app's requests that may wait for the server at the same time. */
const MAX_CALLS = 8;
/** Maximum number of messages from an app within a second, because more messages would keep the page busy. */
const MAX_MESSAGES = 200;
/** Milliseconds that an app may take to save its state before it is removed. */
const TEARDOWN_MS = 500;
/** Maximum length of a message from an app, in characters. */
const MAX_CHARACTERS = 4_000_000;
const ORIGINS = ["connectDomains", "resourceDomains", "frameDomains", "baseUriDomains"];

const REFUSED = -32000;
const INVALID_PARAMS = -32602;
const METHOD_NOT_FOUND = -32601;

class Refusal extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** Returns the URI of a tool's app, or `undefined` if the tool has no app. */
export function findAppUri({ _meta }: Json): string | undefined {
  const meta = toObject(_meta);
  const uri = toText(toObject(meta.ui).resourceUri) ?? toText(meta["ui/resourceUri"]);
  return uri?.startsWith("ui://") ? uri : undefined;
}

/** Returns the valid origins that an app's contents declare, by directive. */
export function readCsp(contents: Json): Json {
  const csp = toObject(toObject(toObject(contents._meta).ui).csp);
  const lists = ORIGINS.map((name) =>
    [name, Array.isArray(csp[name]) ? csp[name].filter(isOriginSource) : []] as const
  );
  return Object.fromEntries(lists.filter(([, origins]) => origins.length));
}

const hosts = new WeakMap<Element, AppHost>();

// Identify the app by the window that sent the message, because an app could imitate the name and the content of
// another app's messages.
addEventListener("message", ({ source, origin, data }: MessageEvent<unknown>) => {
  if (!source || origin !== sandbox) return;
  for (const frame of document.querySelectorAll<HTMLIFrameElement>("iframe.app")) {
    if (frame.contentWindow === source) hosts.get(frame)?.receive(data);
  }
});

export class AppHost {
  readonly frame: HTMLIFrameElement;
  readonly #html: string;
  readonly #csp: Json;
  readonly #call: ShownCall;
  readonly #events: AppEvents;
  readonly #end = new AbortController();
  readonly #tornDown = Promise.withResolvers<void>();
  #calls = 0;
  #second = 0;
  #messages = 0;
  #isReady = false;

  /** Creates the frame. The app loads when the frame is added to the document. */
  constructor(html: string, csp: Json, call: ShownCall, events: AppEvents) {
    this.#html = html;
    this.#csp = csp;
    this.#call = call;
    this.#events = events;
    this.frame = h("iframe.app", {
      // The permissions of the outer frame. The app runs in an inner frame with fewer permissions. With `allow-forms`,
      // scripts can use forms, although the content security policy prevents sending forms.
      sandbox: "allow-scripts allow-same-origin allow-forms",
      src: `${sandbox}/?csp=${encodeURIComponent(JSON.stringify(csp))}`,
      title: "App",
      height: 150,
    });
    hosts.set(this.frame, this);
  }

  /** Notifies the app that it will be removed, waits for the app to save its state, and removes the app. */
  async close(): Promise<void> {
    if (this.#isReady && this.frame.isConnected && !this.#end.signal.aborted) {
      this.#post({ id: "teardown", method: "ui/resource-teardown", params: { reason: "The call has ended" } });
      const late = new Promise((resolve) => setTimeout(resolve, TEARDOWN_MS));
      await Promise.race([this.#tornDown.promise, late]);
    }
    this.#end.abort();
    this.frame.remove();
  }

  #post(message: Json): void {
    const full = { jsonrpc: "2.0", ...message };
    if (!String(message.method).startsWith(RESERVED)) this.#events.onMessage("sent", full, toCompact(full));
    // Set the target origin, so that only a page of the sandbox receives the message, even if the frame shows another
    // page.
    this.frame.contentWindow?.postMessage(full, sandbox ?? location.origin);
  }

  receive(data: unknown): void {
    if (this.#end.signal.aborted || !isObject(data) || data.jsonrpc !== "2.0") return;
    const second = Math.floor(performance.now() / 1000);
    this.#messages = second === this.#second ? this.#messages + 1 : 1;
    this.#second = second;
    const text = toCompact(data);
    if (this.#messages > MAX_MESSAGES || text.length > MAX_CHARACTERS) {
      this.#end.abort();
      this.frame.remove();
      return this.#events.onFlood();
    }
    const { id, method } = data;
    if (method === `${RESERVED}proxy-ready`) {
      // Send the app again, because the browser reloads the frame each time its panel is shown.
      this.#isReady = false;
      return this.#post({ method: `${RESERVED}resource-ready`, params: { html: this.#html, csp: this.#csp } });
    }
    this.#events.onMessage("received", data, text);
    if (typeof method !== "string") {
      if (id === "teardown") this.#tornDown.resolve();
    } else if (typeof id === "string" || typeof id === "number") {
      void this.#respond(id, method, toObject(data.params));
    } else this.#notice(method, toObject(data.params));
  }

  #notice(method: string, params: Json): void {
    if (method === "ui/notifications/initialized" && !this.#isReady) {
      this.#isReady = true;
      const { given, result: { resultType: _type, ...result } } = this.#call;
      this.#post({ method: "ui/notifications/tool-input", params: { arguments: given } });
      this.#post({ method: "ui/notifications/tool-result", params: result });
    }
    if (method === "ui/notifications/size-changed" && typeof params.height === "number") {
      this.frame.height = String(Math.max(0, Math.min(params.height, MAX_HEIGHT)) || 0);
    }
  }

  async #respond(id: string | number, method: string, params: Json): Promise<void> {
    try {
      const result = await this.#run(method, params);
      if (!this.#end.signal.aborted) this.#post({ id, result });
    } catch (error) {
      const { code = REFUSED, message, data = undefined } = error instanceof Refusal ? error : { message: `${error}` };
      const body = data === undefined ? { code, message } : { code, message, data };
      if (!this.#end.signal.aborted) this.#post({ id, error: body });
    }
  }

  async #run(method: string, params: Json): Promise<Json> {
    switch (method) {
      case "ui/initialize":
        return this.#introduce();
      case "ping":
      case "ui/message":
      case "ui/update-model-context":
        return {};
      case "ui/request-display-mode":
        return { mode: "inline" };
      case "ui/open-link":
        return this.#openLink(params);
      case "tools/call":
        return await this.#pass(() => this.#callTool(params));
      case "resources/read":
        if (typeof params.uri !== "string") throw new Refusal(INVALID_PARAMS, "The parameter uri is missing");
        return await this.#pass(() => send(method, { uri: params.uri }, { signal: this.#end.signal }));
    }
    throw new Refusal(METHOD_NOT_FOUND, `The inspector has no method ${method.slice(0, 100)}`);
  }

  #introduce(): Json {
    return {
      protocolVersion: "2026-01-26",
      hostInfo: { name: "inspector", version },
      hostCapabilities: {
        openLinks: {},
        serverTools: {},
        serverResources: {},
        logging: {},
        sandbox: { permissions: {}, csp: this.#csp },
      },
      hostContext: {
        toolInfo: { tool: this.#call.tool },
        theme: matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light",
        displayMode: "inline",
        availableDisplayModes: ["inline"],
        containerDimensions: { width: this.frame.clientWidth, maxHeight: MAX_HEIGHT },
        locale: navigator.language,
        timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
        userAgent: `inspector/${version}`,
        platform: "web",
      },
    };
  }

  #openLink({ url }: Json): Json {
    if (typeof url !== "string" || !/^https?:\/\//i.test(url) || !URL.canParse(url)) {
      throw new Refusal(REFUSED, "Only links to web pages can be opened");
    }
    this.#events.onLink(url);
    return {};
  }

  async #pass(request: () => Promise<Outcome>): Promise<Json> {
    if (this.#calls >= MAX_CALLS) {
      throw new Refusal(REFUSED, `${MAX_CALLS} requests are waiting; wait for a response before the next request`);
    }
    this.#calls++;
    try {
      const outcome = await request();
      if (outcome.kind === "stopped") throw new Refusal(REFUSED, "The app was closed");
      if (outcome.kind === "error") throw new Refusal(outcome.code ?? REFUSED, outcome.message, outcome.data);
      if (outcome.result.resultType === "input_required") {
        throw new Refusal(REFUSED, "The server asks the user a question; call the tool in the inspector instead");
      }
      return outcome.result;
    } finally {
      this.#calls--;
    }
  }

  async #callTool({ name, arguments: given }: Json): Promise<Outcome> {
    if (typeof name !== "string") throw new Refusal(INVALID_PARAMS, "The name of the tool is missing");
    const { _meta, inputSchema } = await this.#findTool(name);
    const visibility = toObject(toObject(_meta).ui).visibility ?? ["model", "app"];
    if (!Array.isArray(visibility) || !visibility.includes("app")) {
      throw new Refusal(REFUSED, "Apps cannot call this tool: the visibility of the tool does not include app");
    }
    const args = toObject(given);
    const paramHeaders = toParamHeaders(toObject(inputSchema), args);
    return await send("tools/call", { name, arguments: args }, { signal: this.#end.signal, paramHeaders });
  }

  /** Finds a tool of the server. Throws if the server has no tool with this name. */
  async #findTool(name: string): Promise<Json> {
    let cursor: unknown;
    for (let page = 0; page < 100; page++) {
      const outcome = await send("tools/list", cursor === undefined ? {} : { cursor }, { signal: this.#end.signal });
      if (outcome.kind !== "result") break;
      const found = toObjects(outcome.result.tools).find((tool) => tool.name === name);
      if (found) return found;
      cursor = outcome.result.nextCursor;
      if (cursor === undefined) break;
    }
    throw new Refusal(INVALID_PARAMS, `The server has no tool ${name.slice(0, 100)}`);
  }
}
