/**
 * The script that `app()` adds to each document. The script connects the page to the host, and sets the global
 * `mcpApp`.
 */
import type { AppDisplayMode, AppEvents, AppHost, AppHostContext, AppPage, AppToolResult } from "../page.ts";

interface Message {
  readonly jsonrpc?: unknown;
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: unknown;
  readonly error?: { readonly message?: string };
}

type Listener = (value: unknown) => unknown;

const host = parent;
const root = document.documentElement;
const waiting = new Map<unknown, PromiseWithResolvers<unknown>>();
const listeners = new Map<string, Set<Listener>>();
const past = new Map<string, unknown>();
let count = 0;
let context: AppHostContext = {};
let size = "";
const fonts = document.createElement("style");

// The target origin is "*", because the host's origin is unknown. Only the host's window receives the messages.
const post = (message: object) => host.postMessage({ jsonrpc: "2.0", ...message }, "*");
const notify = (method: string, params: object = {}) => post({ method, params });

function send(method: string, params: object = {}): Promise<unknown> {
  const answer = Promise.withResolvers<unknown>();
  const id = ++count;
  waiting.set(id, answer);
  post({ id, method, params });
  return answer.promise;
}

const request = async (method: string, params?: object) => {
  await ready;
  return await send(method, params);
};

const emit = (event: string, value: unknown) =>
  [...listeners.get(event) ?? []].map(async (listener) => await listener(value));

function deliver(event: keyof AppEvents, value: unknown): void {
  past.set(event, value);
  if (event === "input") past.delete("partial");
  for (const delivered of emit(event, value)) delivered.catch(reportError);
}

function merge(changed: AppHostContext = {}): void {
  context = { ...context, ...changed };
  const { theme, styles } = changed;
  if (theme) root.dataset.theme = root.style.colorScheme = theme;
  for (const [name, value] of Object.entries(styles?.variables ?? {})) root.style.setProperty(name, value ?? null);
  const css = styles?.css?.fonts;
  if (css) {
    fonts.textContent = css;
    document.head.append(fonts);
  }
  deliver("context", context);
}

function measure(): void {
  const width = root.scrollWidth;
  const height = Math.ceil(root.getBoundingClientRect().height);
  if (size === (size = `${width} ${height}`)) return;
  notify("ui/notifications/size-changed", { width, height });
}

async function respond(id: unknown, method: unknown, reason: unknown): Promise<void> {
  try {
    if (method === "ui/resource-teardown") await Promise.all(emit("teardown", reason));
    else if (method !== "ping") return post({ id, error: { code: -32601, message: `No method ${method}` } });
    post({ id, result: {} });
  } catch (error) {
    post({ id, error: { code: -32000, message: `${error}` } });
  }
}

addEventListener("message", ({ source, data }: MessageEvent<Message | null>) => {
  // Accept only messages from the host, because other windows, and frames in the page, can also send messages.
  if (source !== host || data?.jsonrpc !== "2.0") return;
  const { id, method, params = {}, result, error } = data;
  if (method === undefined) {
    const answer = waiting.get(id);
    waiting.delete(id);
    if (error) answer?.reject(Object.assign(new Error(error.message), error));
    else answer?.resolve(result);
  } else if (id !== undefined) void respond(id, method, params.reason);
  else if (method === "ui/notifications/tool-input") deliver("input", params.arguments ?? {});
  else if (method === "ui/notifications/tool-input-partial") deliver("partial", params.arguments ?? {});
  else if (method === "ui/notifications/tool-result") deliver("result", params);
  else if (method === "ui/notifications/tool-cancelled") deliver("cancelled", params.reason);
  else if (method === "ui/notifications/host-context-changed") merge(params);
});

async function start(): Promise<AppHost> {
  if (document.readyState === "loading") {
    await new Promise((resolve) => addEventListener("DOMContentLoaded", resolve));
  } else {
    await Promise.resolve(); // Wait, because the module initializes `page` after this call.
  }
  if (host === window) throw new Error("Cannot connect the app: the page is not in a frame of a host");
  // The cast is safe if the host follows the protocol.
  const introduced = await send("ui/initialize", {
    protocolVersion: "2026-01-26",
    appInfo: { name: document.title || "app", version: "1.0.0" },
    appCapabilities: { availableDisplayModes: page.displayModes },
  }) as AppHost;
  merge(introduced.hostContext);
  notify("ui/notifications/initialized");
  new ResizeObserver(() => requestAnimationFrame(measure)).observe(root);
  return introduced;
}

const page: AppPage = {
  get ready() {
    return ready;
  },
  get context() {
    return context;
  },
  displayModes: ["inline"],
  on(event, listener) {
    // The cast is safe, because the listener is called only with values of `event`.
    const each = listener as Listener;
    const own = listeners.get(event) ?? new Set();
    listeners.set(event, own.add(each));
    if (past.has(event)) queueMicrotask(() => own.has(each) && each(past.get(event)));
    return () => own.delete(each);
  },
  // The cast is safe if the host follows the protocol.
  callTool: (name, args = {}) => request("tools/call", { name, arguments: args }) as Promise<AppToolResult>,
  // The cast is safe if the host follows the protocol.
  readResource: (uri) => request("resources/read", { uri }) as ReturnType<AppPage["readResource"]>,
  async openLink(url) {
    await request("ui/open-link", { url });
  },
  async sendMessage(text) {
    await request("ui/message", { role: "user", content: [{ type: "text", text }] });
  },
  async updateContext(context) {
    await request("ui/update-model-context", context);
  },
  // The cast is safe if the host follows the protocol.
  setDisplayMode: async (mode) => (await request("ui/request-display-mode", { mode }) as { mode: AppDisplayMode }).mode,
  log: (level, data, logger) => notify("notifications/message", { level, data, logger }),
  request,
};

const ready = start();
ready.catch(() => {});
Object.defineProperty(window, "mcpApp", { value: page });
