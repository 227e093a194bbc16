/**
 * Starts the extensions of a server when it receives its first request, and stops the extensions when the server
 * closes.
 *
 * @module
 */
import { quote } from "../protocol/errors.ts";
import type { Result } from "../protocol/jsonrpc.ts";
import { CancelError } from "../core/call/cancel_error.ts";
import type { HandlerCall, Published, WantedTopics } from "../core/call/lives.ts";
import type { Call } from "../core/call/call.ts";
import type { Context } from "../core/call/context.ts";
import { CALL } from "../core/call/internals.ts";
import type { Engine } from "../core/era.ts";
import type { Life, LivesSet, WrittenStores } from "../core/extension.ts";
import type { InternalRequest, ServerHandle, ServerStores } from "../core/server_handle.ts";
import type { StorePart, StoreView } from "../core/store.ts";
import type { ExtensionNews } from "../core/visibility/changes.ts";
import { CheckedDelivery } from "./checked_delivery.ts";
import type { KeepBytes } from "./extension_bytes.ts";
import { type Deliver, Topics } from "./topics.ts";

/** Functions that are loaded when an extension first uses them. */
export interface LazyCalls {
  /** Runs a handler for an extension, without a request from a client. */
  callInternally(engine: Engine, request: InternalRequest): Promise<Result>;
  /** Checks whether the caller of a request could call a handler now. */
  checkHandler(call: Call, handler: HandlerCall, engine: Engine): Promise<void>;
  /** Loads the function that charges clients for stored bytes. Loaded when an extension starts. */
  loadKeepBytes(): Promise<KeepBytes>;
}

/** Milliseconds that an extension may take to stop. */
const STOP_MS = 5000;

/** The extensions of one server. */
export class ServerLives implements LivesSet {
  readonly #engine: Engine;
  readonly #calls: LazyCalls;
  readonly #extensions = new Map<string, LivingExtension>();
  /** Whether the extensions will be notified that handlers have changed. */
  #isChanging = false;
  #isStarted = false;
  #isKept = false;
  #isStopping = false;

  constructor(engine: Engine, calls: LazyCalls) {
    this.#engine = engine;
    this.#calls = calls;
    engine.changes.onNews = (news) => this.#extensions.get(news.extension)?.receive(news);
  }

  set(lives: readonly Life[]): void {
    for (const [id, extension] of this.#extensions) {
      if (lives.includes(extension.life)) continue;
      this.#extensions.delete(id);
      void extension.stop();
    }
    for (const life of lives) {
      if (this.#extensions.has(life.id)) continue;
      this.#extensions.set(life.id, new LivingExtension(this.#engine, life, this.#calls));
      if (this.#isStarted) this.#start(life.id);
    }
    this.#tellChange();
  }

  // Wait for a microtask, because a handler that is replaced is first removed, and then added.
  #tellChange(): void {
    if (this.#isChanging) return;
    this.#isChanging = true;
    queueMicrotask(() => {
      this.#isChanging = false;
      for (const extension of this.#extensions.values()) extension.tellChange();
    });
  }

  start(isKept = true): void {
    this.#isKept ||= isKept;
    if (this.#isStarted) return;
    this.#isStarted = true;
    for (const id of this.#extensions.keys()) this.#start(id);
  }

  async ready(): Promise<void> {
    await Promise.all([...this.#extensions.keys()].map((id) => this.until(id)));
  }

  until(id: string): Promise<void> | undefined {
    return this.#extensions.get(id)?.start();
  }

  find(id: string): ServerHandle | undefined {
    return this.#extensions.get(id)?.server;
  }

  subscribe(id: string, wanted: WantedTopics, deliver: Deliver): () => void {
    return this.#extensions.get(id)?.subscribe(wanted, deliver) ?? (() => {});
  }

  async rest(): Promise<void> {
    if (this.#isKept) return;
    this.#isStarted = false;
    await this.#stopAll();
  }

  stop(): void {
    this.#isStopping = true;
    for (const extension of this.#extensions.values()) extension.abort();
  }

  async close(): Promise<void> {
    this.stop();
    await this.#stopAll();
  }

  async #stopAll(): Promise<void> {
    await Promise.all([...this.#extensions.values()].map((extension) => extension.stop()));
  }

  // Report a failed start here, because there may be no call that waits for the extension and fails with its error.
  #start(id: string): void {
    if (this.#isStopping) return;
    this.until(id)?.catch((error) => this.#engine.core.report(error, { subject: `extension ${quote(id)}` }));
  }
}

/** One extension of a server. */
class LivingExtension {
  readonly life: Life;
  /** The server object that `start` received. */
  server?: ServerHandle;
  readonly #engine: Engine;
  readonly #calls: LazyCalls;
  readonly #topics: Topics;
  /** Functions that the extension calls after handlers have changed. */
  readonly #watchers = new Set<() => void>();
  #controller = new AbortController();
  #starting?: Promise<void>;
  #end?: () => unknown;
  readonly #publish = (key: string, published: Published, written: WrittenStores): void => {
    const { id: extension, origin } = this.life;
    const { changes, core: { sealer: { realm }, shared } } = this.#engine;
    this.#topics.publish(key, published);
    if (!changes.publish) return;
    const store = shared?.store;
    const realms = written.get(store) ?? new Set();
    if (realms.has(realm)) return;
    written.set(store, realms.add(realm));
    changes.publish({ kind: "extension", extension, key, published, origin });
  };

  constructor(engine: Engine, life: Life, calls: LazyCalls) {
    this.life = life;
    this.#engine = engine;
    this.#calls = calls;
    const watched = [...life.keys].map(([key, watch]) =>
      [key, watch && ((topic: string, ctx: Context) => watch(topic, ctx, this.server))] as const
    );
    this.#topics = new Topics({ core: engine.core, server: engine.host.server }, new Map(watched));
    this.#listen();
  }

  /**
   * Notifies the subscribers on this server of a notification from another instance. Ignores a notification that
   * another server of this process has written, because `publish` has already notified the subscribers.
   */
  receive({ key, published, origin }: ExtensionNews): void {
    if (origin !== this.life.origin) this.#topics.publish(key, published);
  }

  /** Notifies the extension that handlers were added or removed. */
  tellChange(): void {
    for (const onChange of [...this.#watchers]) {
      try {
        onChange();
      } catch (error) {
        this.#engine.core.report(error, { subject: `extension ${quote(this.life.id)}` });
      }
    }
  }

  subscribe(wanted: WantedTopics, deliver: Deliver): () => void {
    const delivery = new CheckedDelivery(deliver, (handler) => this.#mayCall(wanted.ctx, handler));
    const stop = this.#topics.subscribe(wanted, (published) => delivery.deliver(published));
    this.#listen();
    return () => {
      delivery.stop();
      stop();
      this.#listen();
    };
  }

  async #mayCall(ctx: Context, handler: HandlerCall): Promise<boolean> {
    const call = toCall(ctx, "check the subscriber");
    try {
      await this.#calls.checkHandler(call, handler, this.#engine);
      return true;
    } catch (error) {
      // Report the error, unless it is the error for a caller that may not call the handler.
      this.#engine.scheduler.toError(error, call);
      return false;
    }
  }

  /**
   * Starts the extension, unless it has already started. After a failed start, the next call starts the extension
   * again. Returns `undefined` if the extension has no `start`.
   */
  start(): Promise<void> | undefined {
    if (!this.life.start || this.#end) return;
    return this.#starting ??= this.#start().catch((error) => {
      this.#starting = undefined;
      throw error;
    });
  }

  abort(): void {
    this.#controller.abort(
      new CancelError("closing", `Cannot continue extension ${quote(this.life.id)}: the extension is stopping`),
    );
  }

  /** Stops the extension. `start` can start it again. */
  async stop(): Promise<void> {
    this.abort();
    const { ticker, report } = this.#engine.core;
    const late = Promise.withResolvers<void>();
    const timeout = ticker.startTimeout(STOP_MS, late.resolve);
    try {
      await Promise.race([this.#stop(), late.promise]);
    } catch (error) {
      report(error, { subject: `extension ${quote(this.life.id)}` });
    } finally {
      ticker.cancel(timeout);
      this.life.servers.delete(this.#publish);
    }
  }

  async #start(): Promise<void> {
    const { id, start } = this.life;
    const { core: { sealer, ticker, shared }, host, registry } = this.#engine;
    const { resourceUpdated, listChanged } = host.server;
    const purpose = `extension ${id}`;
    if (this.#controller.signal.aborted) this.#controller = new AbortController();
    const keepBytes = await this.#calls.loadKeepBytes();
    const server: ServerHandle = this.server = {
      store: shared && toStores(await shared.openPart(id)),
      seal: (value) => sealer.seal(purpose, value),
      open: (text) => sealer.open(purpose, text),
      check: async (ctx, call) => await this.#calls.checkHandler(toCall(ctx, "check the caller"), call, this.#engine),
      keep: (ctx, bytes) => {
        const { account } = toCall(ctx, "count stored bytes").link;
        return keepBytes({ account, core: this.#engine.core }, bytes);
      },
      report: (error) => void this.#engine.core.report(error, { subject: `extension ${quote(id)}` }),
      handlers: {
        has: (kind, key) => registry.find(kind, key) !== undefined,
        watch: (onChange) => {
          // Use a function of its own, because the same function may be passed twice.
          const watcher = () => onChange();
          this.#watchers.add(watcher);
          return () => void this.#watchers.delete(watcher);
        },
      },
      signal: this.#controller.signal,
      clock: ticker.clock,
      resourceUpdated,
      listChanged,
      call: (request) => this.#calls.callInternally(this.#engine, request),
    };
    const stop: unknown = await start?.(server);
    if (stop !== undefined && typeof stop !== "function") {
      throw new TypeError(
        `Cannot start extension ${
          quote(id)
        }: start did not return a function; return a function that stops the extension, or nothing`,
      );
    }
    this.#end = () => stop?.();
  }

  async #stop(): Promise<void> {
    await this.#starting?.catch(() => {});
    const end = this.#end;
    this.#starting = this.#end = undefined;
    await end?.();
    this.#watchers.clear();
  }

  // Add the server to `servers` only while the server has subscribers or can publish to other instances. Otherwise the
  // extension would keep every server that ever used it in memory.
  #listen(): void {
    const { servers } = this.life;
    if (this.#topics.isUsed || this.#engine.changes.publish) servers.add(this.#publish);
    else servers.delete(this.#publish);
  }
}

// Returns the same view for each use of a call, because a view refuses only its first operation.
function toStores(part: StorePart): ServerStores {
  const views = new WeakMap<Call, StoreView>();
  return {
    own: part.own,
    by(ctx) {
      const call = toCall(ctx, "use the store");
      const view = views.get(call) ?? part.by(call.link.account);
      views.set(call, view);
      return view;
    },
  };
}

/** Returns the call to which a context belongs. `purpose` is what fails if there is none. */
function toCall(ctx: Context<unknown>, purpose: string): Call {
  // The cast is safe: a context without services is the call, and the check below finds any other object.
  const call: Call = Reflect.get(ctx, CALL) ?? ctx as Context as Call;
  if (call.link?.account) return call;
  throw new TypeError(`Cannot ${purpose}: ctx does not belong to a call; pass the context of a request`);
}
