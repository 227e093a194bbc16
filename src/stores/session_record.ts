/**
 * The part of a session that all instances share: whether the session has ended, its state, and the logs of its
 * streams.
 */
import { BoundedMap } from "../core/kit/bounded_map.ts";
import { toBusy } from "../core/protocol/errors.ts";
import { isObject, type Notification, type Response } from "../core/protocol/jsonrpc.ts";
import type { Charge } from "../server/capacity/charges.ts";
import type { HandlerCall } from "../server/call/handler_call.ts";
import { isReads } from "../server/call/reads.ts";
import type { SharedValue } from "../server/call/shared_values.ts";
import { toMarkTtl } from "../server/engine/marking.ts";
import { CHANGED, update } from "../server/engine/update.ts";
import type { LocalSession, SessionState } from "../server/engine/store.ts";
import type { InformedSession, InstanceState, Relayed, SessionRecordInfo } from "./instance_state.ts";
import type { SealedStore } from "./sealed_store.ts";
import { StreamLog } from "./stream_log.ts";

/** A session's record in a store. */
export class SessionRecord implements InformedSession {
  readonly #instances: InstanceState;
  readonly #info: SessionRecordInfo;
  readonly #ends: number;
  readonly streams: StreamLog;
  #isEnded?: boolean;
  #state: SessionState = {};
  /**
   * The state that this process last read or wrote. Another instance may have changed the state in the store since
   * then.
   */
  #stored?: StoredState;
  #local?: LocalSession;
  /**
   * Whether another instance changed the session before `join` was called, so that the first read may not contain the
   * change.
   */
  #isOutdated = false;
  /** The charge for the state that was last written. */
  #stateCharge?: Charge;
  /** The charge for the mark of use that was last written. */
  #useCharge?: Charge;

  constructor(instances: InstanceState, info: SessionRecordInfo) {
    this.#instances = instances;
    this.#info = info;
    this.#ends = instances.clock.now() + info.ms;
    this.streams = new StreamLog(instances, info);
  }

  get isEnded(): boolean | undefined {
    return this.#isEnded;
  }

  get state(): SessionState {
    return this.#state;
  }

  join(local: LocalSession): void {
    this.#local = local;
    if (this.#isOutdated) this.#instances.refreshSession(this);
  }

  leave(): void {
    this.#local = undefined;
    this.#instances.removeSession(this.#info.key, this);
    this.streams.stop();
  }

  async touch(): Promise<void> {
    const { instance, limits: { connections } } = this.#instances;
    const options = { ttlMs: toTtl(connections.sessionIdleMs + TOUCH_MS) };
    const charge = this.#instances.mayWrite(this.#info.account, instance, options.ttlMs);
    if (!charge) return;
    this.#useCharge?.end();
    this.#useCharge = charge;
    await this.#attempt("set", () =>
      update("mark the session as used", async () => {
        const version = await this.#info.store.set(this.#info.usedKey, instance, {
          ...options,
          version: this.#usedVersion,
        });
        if (version !== undefined) return void (this.#usedVersion = version);
        // The version did not match, because another instance has used or retired the session since the last read.
        const used = await this.#readUse();
        return used === RETIRED ? this.#endLocal() : CHANGED;
      }));
  }

  reserveEnd(): boolean {
    return this.#instances.reserveEnd(this.#info.key, this.#info.account, () => this.#writeEnd());
  }

  async end(): Promise<boolean> {
    return await this.#instances.ends.write(this.#info.key);
  }

  async retire(): Promise<void> {
    await this.#attempt("get", async () => {
      const used = await this.#readUse();
      if (used !== undefined && used !== this.#instances.instance) return;
      const options = { ttlMs: RETIRED_MS, version: this.#usedVersion };
      // After this write, other instances find the session retired. The write fails if another instance has just used
      // the session, and this other instance then retires the session later.
      if (await this.#info.store.set(this.#info.usedKey, RETIRED, options) === undefined) return;
      await this.#storeEnd();
    });
  }

  async update(change: (state: SessionState) => SessionState): Promise<void> {
    const before = this.#state;
    try {
      await this.#update(change);
    } catch (error) {
      // Undo the change in this process too, because it was rejected.
      this.#state = this.#stored?.state ?? before;
      this.#local?.apply(this.#state);
      throw error;
    }
  }

  async #update(change: (state: SessionState) => SessionState): Promise<void> {
    const ttlMs = this.#ttlMs;
    const expected = change(this.#state);
    // Charge the bytes of the new state before the charge for the old state ends, because the old state stays stored if
    // the limit is exceeded.
    const charge = this.#instances.mayWrite(this.#info.account, expected, ttlMs);
    if (!charge) throw toBusy("change the session: too much data is stored for the client", "replay.bytes");
    this.#stateCharge?.end();
    this.#stateCharge = charge;
    this.#state = expected;
    const store = this.#instances.by(this.#info.account);
    await this.#attempt("set", () =>
      update("change the session", async () => {
        const known = this.#stored;
        const { state, version } = known ?? await this.#readState(store);
        this.#stored = undefined;
        if (!state) return;
        let next: SessionState;
        try {
          next = change(state);
        } catch (error) {
          // The known state may be outdated. Read the stored state and try again before rejecting the change.
          if (known) return CHANGED;
          this.#stored = { state, version };
          throw error;
        }
        const written = await store.set(this.#info.key, next, { ttlMs, version });
        if (!written) return CHANGED;
        this.#state = next;
        this.#stored = { state: next, version: written };
        // If the state was read from the store, it may contain changes by other instances. Apply these changes in this
        // process too.
        if (!known) this.#apply(expected);
        await this.#instances.publish(store, { session: this.#info.key });
      }));
  }

  async refresh(): Promise<void> {
    const read = await this.#instances.attempt("get", () => this.#read());
    if (!read) return;
    // Treat a session with an unreadable record as ended, because its end may have been recorded. Never set `#isEnded` back to
    // `false`, because a notification of the end may have arrived during a read that started before the end.
    this.#isEnded ||= read.isRetired || !read.state || this.#instances.ends.find(this.#info.key) !== undefined;
    this.#state = read.state ?? {};
  }

  async refreshLocal(): Promise<void> {
    if (!this.#local) return void (this.#isOutdated = true);
    // Read only after this process has written its pending changes. Otherwise the older state from the store would undo
    // these changes in this process.
    const before = this.#state;
    await this.#instances.queue(this.#info.id, () => this.refresh());
    if (this.#isEnded) this.#endLocal();
    else this.#apply(before);
  }

  // Applies the state. Announces recent changes of newly subscribed resources again, because the session has missed
  // them.
  #apply({ uris: known = [] }: SessionState): void {
    this.#local?.apply(this.#state);
    this.#instances.repeatChanges(this.#state.uris?.filter((uri) => !known.includes(uri)) ?? []);
  }

  inform({ isEnded, relay, claim }: Readonly<Record<string, unknown>>): void {
    if (isEnded === true) this.#endLocal();
    else if (isRelayed(relay)) this.receiveLocal(relay);
    else if (claim === undefined) this.#instances.refreshSession(this);
    else this.#local?.disconnectStream(typeof claim === "string" ? claim : undefined);
  }

  #endLocal(): void {
    this.#isEnded = true;
    this.#local?.end();
    // Delete the mark of use, because this process may have written the mark after the session had ended.
    this.#attempt("delete", () => this.#info.store.delete(this.#info.usedKey));
  }

  async #read(): Promise<{ readonly state?: SessionState; readonly isRetired: boolean }> {
    const [record, used] = await this.#info.store.getAll([this.#info.key, this.#info.usedKey]);
    const { state } = this.#takeState(record);
    return { state, isRetired: this.#takeUse(used) === RETIRED };
  }

  async #readState(store: SealedStore): Promise<StoredState> {
    return this.#takeState(await store.get(this.#info.key));
  }

  #takeState(record: SharedValue | undefined): StoredState {
    return this.#stored = { state: record ? toState(record.value) : {}, version: record?.version ?? null };
  }

  /** Returns the id of the instance that last used the session, or {@linkcode RETIRED}. */
  async #readUse(): Promise<unknown> {
    return this.#takeUse(await this.#info.store.get(this.#info.usedKey));
  }

  #takeUse(used: SharedValue | undefined): unknown {
    this.#usedVersion = used?.version ?? null;
    return used?.value;
  }

  async makeQuestionId({ method, params = {}, reads = [] }: HandlerCall): Promise<string> {
    const seal = async (asked: unknown) => QUESTION + await this.#instances.seal(this.#info.key, asked);
    const id = await seal([this.#toAsker(), method, params, reads]);
    // Clients repeat the id in their responses. Without room for the call, only this instance can take the response.
    return id.length <= this.#instances.limits.request.idCharacters ? id : await seal([this.#toAsker()]);
  }

  async relay(
    message: Response | Notification,
    mayAnswer?: (call: HandlerCall) => Promise<boolean>,
  ): Promise<boolean> {
    if (message.kind === "response") {
      const asked = await this.#findAsked(message);
      if (!asked) return true;
      if (!asked.call) {
        throw toBusy(
          "forward the response: its id has no room for the handler's name, so only the asking instance takes it",
        );
      }
      if (!await mayAnswer?.(asked.call) || !this.#remember(String(message.id))) return true;
    }
    const mayRelay = this.#instances.mayRelay(this.#info.account);
    // The log of a period expires at the latest after the period and the time to live of its last entry.
    if (!mayRelay || !this.#instances.mayWrite(this.#info.account, message, PERIOD_MS + RELAY.ttlMs)) {
      return this.#keep(message);
    }
    const store = this.#instances.by(this.#info.account);
    const period = this.#period;
    const forward = async () => {
      const id = await store.append(await this.#toRelayLog(period), message, RELAY);
      await this.#instances.publishOrThrow(store, { session: this.#info.key, relay: { period, id } });
    };
    // `succeeds` rejects if the client has used up its share of the store.
    const isDone = await this.#instances.succeeds("append", forward).catch(() => false);
    return isDone || this.#keep(message);
  }

  // No instance has received the message, so allow the client to send the message again.
  #keep(message: Response | Notification): false {
    if (message.kind === "response") this.#relayed.delete(String(message.id));
    return false;
  }

  // Finds the request to which a client responds, if another instance has sent the request. Its call is `undefined` if
  // the id has no room for the call.
  async #findAsked({ id }: Response): Promise<{ readonly call?: HandlerCall } | undefined> {
    if (typeof id !== "string" || !id.startsWith(QUESTION) || this.#relayed.has(id)) return;
    const opened = await this.#instances.open(this.#info.key, id.slice(QUESTION.length));
    if (!Array.isArray(opened)) return;
    const [asker, method, params, reads = []] = opened;
    if (asker === this.#toAsker()) return;
    const isCall = typeof method === "string" && isObject(params) && isReads(reads);
    return isCall ? { call: { method, params, reads } } : {};
  }

  // Returns `true` only once per id, so that each response is forwarded only once.
  #remember(id: string): boolean {
    if (this.#relayed.has(id)) return false;
    this.#relayed.set(id);
    return true;
  }

  readonly #relayed = new BoundedMap<string, void>({ full: "evict", max: RELAY.max });

  // Use only the start of the instance's id, to keep the sealed ids of requests short. Clients repeat these ids in
  // their responses.
  #toAsker(): string {
    return this.#instances.instance.slice(0, 8);
  }

  async receiveLocal(relayed?: Relayed): Promise<void> {
    if (!this.#local) return;
    // Read the entries one after another, so that none is received twice.
    const receive = () => this.#instances.attempt("read", () => this.#receive(relayed));
    await this.#instances.queue(`relayed ${this.#info.id}`, receive);
  }

  async #receive(relayed: Relayed | undefined): Promise<void> {
    if (relayed) return await this.#receiveFrom(relayed.period, relayed.id);
    for (const period of [this.#period - 1, this.#period]) await this.#receiveFrom(period);
  }

  async #receiveFrom(period: number, id?: number): Promise<void> {
    const range = id === undefined ? { limit: RELAY.max } : { after: id - 1, limit: 1 };
    const { entries, epoch } = await this.#info.store.read(await this.#toRelayLog(period), range);
    for (const entry of entries) {
      // The ids of each log begin again.
      const key = `${epoch} ${entry.id}`;
      if (this.#received.has(key) || id !== undefined && entry.id !== id) continue;
      this.#received.set(key);
      this.#local?.receive(entry.value);
    }
  }

  /**
   * The forwarded messages that this process has received. Notifications of messages can arrive in another order than
   * the messages. The map holds more messages than two logs, so that no message in the logs is forgotten.
   */
  readonly #received = new BoundedMap<string, void>({ full: "evict", max: 4 * RELAY.max });

  claim(stream?: string): void {
    const store = this.#instances.by(this.#info.account);
    // If the client has used up its share of the store, its earlier connection stays open, which harms only the client.
    this.#instances.publish(store, { session: this.#info.key, claim: stream ?? null }).catch(() => {});
  }

  async #writeEnd(): Promise<boolean> {
    return await this.#attempt("set", async () => {
      await this.#storeEnd();
      await this.#info.store.delete(this.#info.usedKey);
    });
  }

  // Replaces the session's state by its end. If the client has used up its bytes in the store, only the running instances
  // learn of the end.
  async #storeEnd(): Promise<void> {
    const ttlMs = toMarkTtl(Math.max(0, this.#ends - this.#instances.clock.now()));
    this.#stateCharge?.end();
    this.#stateCharge = this.#instances.mayWrite(this.#info.account, ENDED, ttlMs);
    if (this.#stateCharge) await this.#info.store.set(this.#info.key, ENDED, { ttlMs });
    await this.#instances.publish(this.#info.store, { session: this.#info.key, isEnded: true });
  }

  // Queue the operation, so that a request that opens the session waits for this operation.
  async #attempt(operation: string, run: () => Promise<unknown>): Promise<boolean> {
    return await this.#instances.queue(this.#info.id, () => this.#instances.succeeds(operation, run));
  }

  get #ttlMs(): number {
    return toTtl(this.#ends - this.#instances.clock.now());
  }

  get #period(): number {
    return Math.floor(this.#instances.clock.date() / PERIOD_MS);
  }

  // Each period has its own log. Each message would otherwise renew the time to live of all earlier messages, although
  // they are no longer charged, and although another instance has forwarded them.
  #toRelayLog(period: number): Promise<string> {
    return this.#instances.hash("relay", `${this.#info.id} ${period}`);
  }

  /** The version of the mark of use that this process last read or wrote. `null` if there was no mark. */
  #usedVersion: string | null = null;
}

/**
 * A state, and the version of its record. `version` is `null` if there is no record. `state` is `undefined` if the
 * session has ended, or if the record is unreadable.
 */
interface StoredState {
  readonly state?: SessionState;
  readonly version: string | null;
}

/**
 * Milliseconds that are added to the time to live of a mark of use, because the server renews the mark only once a
 * minute, when it checks its sessions.
 */
const TOUCH_MS = 120_000;

/** The record of a session that has ended, in place of the session's state. */
const ENDED = "ended";

/** The mark of use of a session that its last instance has retired, because the session was idle. */
const RETIRED = false;
/** Time to live of the mark {@linkcode RETIRED}, in milliseconds. */
const RETIRED_MS = 600_000;

/** Maximum number of forwarded messages in a log, and the time to live of the log after its last message. */
const RELAY = { max: 32, ttlMs: 60_000 };

/** Milliseconds for which forwarded messages are written to the same log. */
const PERIOD_MS = 60_000;

// Milliseconds for which a record outlives its session, because the clocks of instances differ.
const SKEW_MS = 60_000;

function toTtl(ms: number): number {
  return Math.min(Math.max(ms, 0) + SKEW_MS, 31_536_000_000);
}

function isRelayed(value: unknown): value is Relayed {
  return isObject(value) && typeof value.period === "number" && typeof value.id === "number";
}

/** Reads the state from a stored value. Returns `undefined` if the value is invalid. */
function toState(value: unknown): SessionState | undefined {
  if (!isObject(value)) return;
  const { level, uris } = value;
  if (level !== undefined && typeof level !== "string") return;
  if (uris === undefined) return { level };
  if (Array.isArray(uris) && uris.every((uri) => typeof uri === "string")) return { level, uris };
}

/** Prefix of the ids of requests to the client. */
const QUESTION = "ask-";
