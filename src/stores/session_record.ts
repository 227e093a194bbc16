/**
 * A session as all instances know it: whether it has ended, its state, and the logs of its streams.
 *
 * @module
 */
import { isObject } from "../protocol/jsonrpc.ts";
import type { FoundStream, LocalSession, SessionState, SharedSession, WrittenStream } from "../core/store.ts";
import type { InstanceState } from "./instance_state.ts";
import { StreamLog } from "./stream_log.ts";

/** The facts of a session that its record needs. */
export interface SessionFacts {
  /** Hashed id. */
  readonly key: string;
  readonly id: string;
  /** Milliseconds until the session ends in any case. */
  readonly ms: number;
}

/** The record of one session in a store. */
export class SessionRecord implements SharedSession {
  readonly key: string;
  readonly #id: string;
  readonly #instances: InstanceState;
  readonly #ends: number;
  readonly #streams: StreamLog;
  #isEnded = false;
  #state: SessionState = {};
  #local?: LocalSession;

  constructor(instances: InstanceState, { key, id, ms }: SessionFacts) {
    this.key = key;
    this.#id = id;
    this.#instances = instances;
    this.#ends = performance.now() + ms;
    this.#streams = new StreamLog(instances, key);
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  get state(): SessionState {
    return this.#state;
  }

  join(local: LocalSession): void {
    this.#local = local;
    this.#instances.addSession(this);
  }

  leave(): void {
    this.#local = undefined;
    this.#instances.removeSession(this);
    this.#streams.stop();
  }

  async touch(): Promise<void> {
    const { idleMs } = this.#instances.limits.sessions;
    await this.#attempt("set", async () => {
      const options = { ttlMs: toTtl(idleMs + TOUCH_MS) };
      await this.#instances.set(await this.#toUsedKey(), this.#instances.instance, options);
    });
  }

  async end(): Promise<void> {
    await this.#attempt("set", () => this.#writeEnd());
  }

  async retire(): Promise<void> {
    await this.#attempt("get", async () => {
      const used = await this.#instances.get(await this.#toUsedKey());
      if (!used || used.value === this.#instances.instance) await this.#writeEnd();
    });
  }

  async update(change: (state: SessionState) => SessionState): Promise<void> {
    this.#state = change(this.#state);
    await this.#attempt("set", async () => {
      for (let left = ATTEMPTS; left; left--) {
        const found = await this.#instances.get(this.key);
        const { isEnded, ...state } = toState(found?.value);
        if (isEnded) return;
        const next = change(state);
        const options = { ttlMs: this.#ttlMs, version: found?.version ?? null };
        if (!await this.#instances.set(this.key, next, options)) continue;
        this.#state = next;
        return await this.#instances.publish({ session: this.key });
      }
      throw new Error(`Cannot change the session: ${ATTEMPTS} other changes came first`);
    });
  }

  /** Reads the record. Without an answer, the session is not known to have ended. */
  async refresh(): Promise<void> {
    const found = await this.#instances.attempt("get", async () => ({ value: await this.#instances.get(this.key) }));
    if (!found) return;
    const { isEnded, ...state } = toState(found.value?.value);
    this.#isEnded = isEnded;
    this.#state = state;
  }

  /** Reads the record, and changes the session of this process accordingly. */
  async refreshLocal(): Promise<void> {
    await this.refresh();
    if (this.#isEnded) this.#local?.end();
    else this.#local?.apply(this.#state);
  }

  /** Closes the connection of a stream that another instance has taken over. */
  yieldLocal(stream: string | undefined): void {
    this.#local?.yield(stream);
  }

  async relay(message: object): Promise<void> {
    await this.#instances.attempt("append", async () => {
      const relay = await this.#instances.append(await this.#toRelayLog(), message, RELAY);
      await this.#instances.publish({ session: this.key, relay });
    });
  }

  /** Handles a message that another instance has received, by its id. */
  async receiveLocal(id: number): Promise<void> {
    await this.#instances.attempt("read", async () => {
      const { entries } = await this.#instances.read(await this.#toRelayLog(), { after: id - 1, limit: 1 });
      if (entries[0]?.id === id) this.#local?.receive(entries[0].value);
    });
  }

  write(stream: WrittenStream): void {
    this.#streams.write(stream);
  }

  renew(stream: WrittenStream): void {
    this.#streams.renew(stream);
  }

  async findStream(name: string, after: number): Promise<FoundStream | undefined> {
    return await this.#streams.find(name, after);
  }

  claim(stream?: string): void {
    this.#instances.publish({ session: this.key, claim: stream ?? null });
  }

  async #writeEnd(): Promise<void> {
    await this.#instances.set(this.key, { isEnded: true }, { ttlMs: this.#ttlMs });
    await this.#instances.publish({ session: this.key });
  }

  // A request that opens the session waits for what was begun before.
  async #attempt(operation: string, run: () => Promise<void>): Promise<void> {
    await this.#instances.queue(this.#id, () => this.#instances.attempt(operation, run));
  }

  get #ttlMs(): number {
    return toTtl(this.#ends - performance.now());
  }

  #toRelayLog(): Promise<string> {
    return this.#instances.hash("relay", this.#id);
  }

  #usedKey?: Promise<string>;

  #toUsedKey(): Promise<string> {
    return this.#usedKey ??= this.#instances.hash("used", this.#id);
  }
}

/** Number of attempts to change a record that other instances change at the same time. */
const ATTEMPTS = 20;

/** Milliseconds between two marks of use. Sessions are checked each minute. */
const TOUCH_MS = 120_000;

/** Messages of a client that other instances have not read yet. */
const RELAY = { max: 32, ttlMs: 60_000 };

// Clocks of instances differ, and an end must not be forgotten before the id itself has expired.
const SKEW_MS = 60_000;

function toTtl(ms: number): number {
  return Math.min(Math.max(ms, 0) + SKEW_MS, 31_536_000_000);
}

function toState(value: unknown): SessionState & { readonly isEnded: boolean } {
  if (!isObject(value)) return { isEnded: false };
  const { isEnded, level, uris } = value;
  return {
    isEnded: isEnded === true,
    level: typeof level === "string" ? level : undefined,
    uris: Array.isArray(uris) && uris.every((uri) => typeof uri === "string") ? uris : undefined,
  };
}
