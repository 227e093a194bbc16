/**
 * Starts the extensions of a server with its first request, and stops the extensions when the server closes.
 */
import { quote } from "../../core/protocol/errors.ts";
import { CancelError } from "../call/cancel_error.ts";
import { toCall } from "../call/find_call.ts";
import type { Published, WantedTopics } from "../call/lives.ts";
import type { Context } from "../call/context.ts";
import type { Engine } from "../engine/era.ts";
import type { Life, LivesSet, WrittenStores } from "../engine/extension.ts";
import type { ServerHandle } from "../engine/server_handle.ts";
import type { ServerPart } from "../engine/server_part.ts";
import type { ExtensionNews } from "../visibility/changes.ts";
import { CheckedDelivery } from "./checked_delivery.ts";
import { Topics } from "./topics.ts";
import type { Deliver } from "./watched_topic.ts";

/** Loads the code with which extensions start. Extensions without `start` do not need it. */
const loadParts = () => import("../engine/server_part.ts");

/** The extensions of one server. */
// Bound: one per extension.
export class ServerLives implements LivesSet {
  readonly #engine: Engine;
  readonly #extensions = new Map<string, LivingExtension>();
  /** The ends of removed extensions that have not stopped yet. */
  readonly #ending = new Set<Promise<void>>();
  #isStarted = false;
  #isKept = false;
  #isStopping = false;

  constructor(engine: Engine) {
    this.#engine = engine;
    engine.changes.onNews = (news) => this.#extensions.get(news.extension)?.receive(news);
    engine.changes.onMissed = () => {
      for (const extension of this.#extensions.values()) extension.reload();
    };
  }

  set(lives: readonly Life[]): void {
    for (const [id, extension] of this.#extensions) {
      if (lives.includes(extension.life)) continue;
      this.#extensions.delete(id);
      extension.close();
      const ending = extension.stop().finally(() => this.#ending.delete(ending));
      this.#ending.add(ending);
    }
    for (const life of lives) {
      if (this.#extensions.has(life.id)) continue;
      const extension = new LivingExtension(this.#engine, life);
      this.#extensions.set(life.id, extension);
      if (this.#isStarted) this.#start(extension);
    }
  }

  start(isKept = true): void {
    this.#isKept ||= isKept;
    if (this.#isStarted) return;
    this.#isStarted = true;
    for (const extension of this.#extensions.values()) this.#start(extension);
  }

  async ready(): Promise<void> {
    await Promise.all([...this.#extensions.keys()].map((id) => this.until(id)));
  }

  until(id: string): Promise<void> | undefined {
    const extension = this.#extensions.get(id);
    return extension?.start()?.then(() => {
      // Without its server, the extension could not check its callers.
      if (this.#extensions.get(id) !== extension) throw toRemoved(extension.life);
    });
  }

  find(id: string): ServerHandle | undefined {
    return this.#extensions.get(id)?.part?.handle;
  }

  subscribe(id: string, wanted: WantedTopics, deliver: Deliver): () => void {
    return this.#extensions.get(id)?.subscribe(wanted, deliver) ?? (() => {});
  }

  async stopUnlessStarted(): Promise<void> {
    if (this.#isKept) return;
    this.#isStarted = false;
    await this.#stopAll();
  }

  stop(): void {
    this.#isStopping = true;
    for (const extension of this.#extensions.values()) extension.close();
  }

  async close(): Promise<void> {
    this.stop();
    await this.#stopAll();
  }

  async #stopAll(): Promise<void> {
    await Promise.all([...[...this.#extensions.values()].map((extension) => extension.stop()), ...this.#ending]);
  }

  // Report a failed start here, because there may be no call that waits for the extension and fails with its error.
  #start(extension: LivingExtension): void {
    if (this.#isStopping) return;
    const { life } = extension;
    this.until(life.id)?.catch((error) => {
      // An extension that was removed meanwhile need not start, even if it was added again.
      if (this.#extensions.get(life.id) === extension) this.#engine.core.report(error, { subject: toName(life) });
    });
  }
}

class LivingExtension {
  readonly life: Life;
  /** `undefined` until the extension first starts. */
  part?: ServerPart;
  #opening?: Promise<ServerPart>;
  #isClosed = false;
  readonly #engine: Engine;
  readonly #topics: Topics;
  readonly #publish = (key: string, published: Published, written: WrittenStores): void => {
    const { id: extension, origin } = this.life;
    const { changes, core: { sealer: { realm }, shared } } = this.#engine;
    this.#topics.publish(key, published);
    if (!changes.publish) return;
    const store = shared?.store;
    const realms = written.get(store) ?? new Set();
    if (realms.has(realm)) return;
    written.set(store, realms.add(realm));
    const { topic, method } = published;
    const isLoaded = this.life.keys.get(key)?.load !== undefined;
    const sent = isLoaded ? { topic, method, params: {} } : published;
    changes.publish({ kind: "extension", extension, key, published: sent, origin });
  };

  constructor(engine: Engine, life: Life) {
    this.life = life;
    this.#engine = engine;
    const parts = [...life.keys].map(([key, { watch, load }]) =>
      [key, {
        watch: watch && ((topic: string, ctx: Context) => watch(topic, ctx, this.part?.handle)),
        load: load && ((topic: string, ctx: Context) => load(topic, ctx, this.part?.handle)),
      }] as const
    );
    this.#topics = new Topics({ core: engine.core, server: engine.host.server }, new Map(parts));
    this.#listen();
  }

  /**
   * Notifies the subscribers on this server of a notification from another instance. Ignores a notification that
   * another server of this process has written, because `publish` has already notified the subscribers.
   */
  receive({ key, published, origin }: ExtensionNews): void {
    if (origin === this.life.origin) return;
    if (this.life.keys.get(key)?.load) this.#topics.load(key, published.topic);
    else this.#topics.publish(key, published);
  }

  /** Loads the notifications of all topics with `load`, because this instance has missed notifications of others. */
  reload(): void {
    this.#topics.loadAll();
  }

  subscribe(wanted: WantedTopics, deliver: Deliver): () => void {
    const delivery = new CheckedDelivery(
      deliver,
      async (handler) => await (await loadParts()).mayCall(wanted.ctx, handler, this.#engine),
      () => {
        // Handlers may have changed since the subscription began.
        const isShown = this.#engine.registry.compiled("extensions")?.listen?.get(wanted.key)?.isShown;
        return isShown && (async () => {
          const { decideInTime } = await loadParts();
          return await decideInTime(isShown(toCall(wanted.ctx, "check the subscriber")), this.#engine);
        });
      },
    );
    const stop = this.#topics.subscribe(wanted, (published) => delivery.deliver(published));
    this.#listen();
    return () => {
      delivery.stop();
      stop();
      this.#listen();
    };
  }

  /** Starts the extension. Returns `undefined` if it has started, or has no `start`. */
  start(): Promise<void> | undefined {
    if (this.life.start) return this.part ? this.part.start() : this.#startFirst();
  }

  async #startFirst(): Promise<void> {
    await (await (this.#opening ??= this.#open())).start();
  }

  async #open(): Promise<ServerPart> {
    try {
      const { ServerPart } = await loadParts();
      const { id, part = `extension ${id}`, start, owner } = this.life;
      this.part = new ServerPart(this.#engine, { name: toName(this.life), id: part, start, owner });
      if (this.#isClosed) this.part.close();
      return this.part;
    } catch (error) {
      this.#opening = undefined;
      throw error;
    }
  }

  /** Announces that the extension will be stopped for good. */
  close(): void {
    this.#isClosed = true;
    this.part?.close();
  }

  async stop(): Promise<void> {
    await this.#opening?.catch(() => {});
    await this.part?.stop();
    this.life.servers.delete(this.#publish);
  }

  // Add the server to `servers` only while the server has subscribers or can publish to other instances. Otherwise the
  // extension would keep every server that ever used it in memory.
  #listen(): void {
    const { servers } = this.life;
    if (this.#topics.isUsed || this.#engine.changes.publish) servers.add(this.#publish);
    else servers.delete(this.#publish);
  }
}

function toRemoved(life: Life): CancelError {
  return new CancelError("extension", `Cannot run the call: ${toName(life)} was removed; send the request again`);
}

function toName({ id, name = `extension ${quote(id)}` }: Life): string {
  return name;
}
