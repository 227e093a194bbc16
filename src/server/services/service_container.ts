/**
 * Creates services on first use, shares the services among handlers, and disposes the services in reverse order.
 */
import { deadline } from "../../core/kit/deadline.ts";
import { noteFailedPart } from "../../core/kit/failed_part.ts";
import { McpError, quote, toBusy } from "../../core/protocol/errors.ts";
import { LazyModule } from "../../core/protocol/lazy_module.ts";
import { isPromiseLike } from "../../core/protocol/promises.ts";
import {
  type Container,
  type ContainerHost,
  type ContainerParts,
  type Definition,
  findInternals,
  type Injectable,
  type ServiceCall,
  toDefinition,
} from "../call/container.ts";
import type { Context } from "../call/context.ts";
import type { Lifetime, Service, ServiceEnd } from "../call/service.ts";
import type { Engine } from "../engine/era.ts";
import type { ServerHandle } from "../engine/server_handle.ts";
import { ServiceContext } from "./service_context.ts";
import { KeyedEntries } from "./keyed_entries.ts";
import { Entry, findDisposer, findPath, readKey } from "./service_entry.ts";
import type { ServiceHandles } from "./service_handles.ts";
import { Scope } from "./service_scope.ts";

/** Maximum duration of the disposal of one value, and of all values when the server closes, in milliseconds. */
const DISPOSE_MS = 10_000;

/** Milliseconds from a call's cancellation until its values are disposed, if the handler is still running. */
const CANCEL_MS = 1000;

const WORDS: Readonly<Record<Lifetime, string>> = {
  server: "lives as long as the server",
  key: "lives as long as its key is used",
  call: "lives for one call",
};

export interface Needs {
  readonly list: readonly (readonly [name: string, service: Service])[];
  readonly isLasting: boolean;
}

export interface Injection<C, A extends readonly unknown[], R> {
  readonly run: Injectable<C, A, R>;
  readonly needs: Needs;
  /** `true` for `allow` and `list`, which can use only services that outlive the call. */
  readonly isShared: boolean;
}

// Bound: one per service, `services.values`, and `calls.running` for scopes.
export class ServiceContainer implements Container {
  // These objects keep the hidden classes of scopes and contexts in memory, like `#model` in subclasses of `Call`. The
  // fields are not static, because a bundler cannot remove a class with such static fields. The casts are safe, because
  // the constructors do not read these arguments.
  readonly #scope: Scope = new Scope({} as ServiceCall, false); // See above.
  readonly #context: ServiceContext<object> = new ServiceContext({} as Context, {}, { // See above.
    container: this,
    scope: this.#scope,
  });
  readonly #parts: ContainerParts;
  /** Services that live as long as the server, and that handlers or other services use. */
  readonly #lasting = new Map<Definition, Service>();
  /** Definitions that `add` has visited, because services may list each other in `uses`. */
  readonly #added = new Set<Definition>();
  readonly #entries = new Map<Definition, Entry>();
  readonly #keyed: KeyedEntries;
  /** Values that live longer than a call, in the order of their creation. */
  readonly #made = new Set<Entry>();
  /** The `ctx.services` objects of handlers with only lasting services. Weak, because handlers may be evicted. */
  #values = new WeakMap<Needs, object>();
  readonly #scopes = new Set<Scope>();
  /** Loaded on demand, because few services use the handle of the server. */
  readonly #handles: LazyModule<ServiceHandles>;
  #isPinned = false;
  #isClosing = false;
  #closed?: Promise<void>;

  constructor(parts: ContainerParts, host: ContainerHost) {
    this.#parts = parts;
    this.#keyed = new KeyedEntries({
      ticker: parts.ticker,
      // The cast is safe, because only `buildServer` and `mount` set `engine`, and only their hosts create containers.
      accounts: () => (host.engine as Engine).accounts,
      make: (entry, entries, key) => this.#make(entry, entries, key),
      dispose: async (entry) => {
        this.#made.delete(entry);
        await this.#disposeReported(entry, "result");
      },
    });
    this.#handles = new LazyModule(async () => new (await import("./service_handles.ts")).ServiceHandles(host));
  }

  /** `ready` creates the services that live as long as the server. */
  add(services: readonly Service[]): void {
    for (const service of services) {
      const definition = toDefinition(service);
      if (this.#added.has(definition)) continue;
      this.#added.add(definition);
      this.add(definition.uses ?? []);
      if (definition.lifetime === "server") this.#lasting.set(definition, service);
    }
  }

  async ready(): Promise<void> {
    await Promise.all([...this.#lasting.values()].map((service) => this.#resolve(service)));
  }

  start(): void {
    if (this.#isPinned) return;
    this.#isPinned = true;
    for (const service of this.#lasting.values()) this.#startOne(service);
  }

  async #startOne(service: Service): Promise<void> {
    let entry: Entry | undefined;
    try {
      const value = this.#resolve(service);
      entry = this.#entries.get(toDefinition(service));
      await value;
    } catch (error) {
      // Do not report the error if a call waits for the service, because the call reports the error.
      if (!entry?.isAwaited && !this.#isClosing) {
        this.#parts.report(error, { subject: `service ${quote(service.name)}` });
      }
    }
  }

  /** Fast path: no promise is created if all values exist and the function is synchronous. */
  run<C extends ServiceCall, A extends readonly unknown[], R>(
    call: C,
    injection: Injection<C, A, R>,
    rest: A,
  ): R | Promise<Awaited<R>> {
    const { needs, isShared } = injection;
    const scope = new Scope(call, isShared);
    const known = needs.isLasting ? this.#values.get(needs) : undefined;
    if (known) return this.#runWith(known, scope, call, injection, rest);
    let values;
    try {
      values = this.#resolveAll(scope, needs);
    } catch (error) {
      return this.#fail(scope, error);
    }
    if (!(values instanceof Promise)) return this.#runWith(values, scope, call, injection, rest);
    // The cast is safe, because `then` unwraps a promise that the function returns.
    return values.then(
      (values) => this.#runWith(values, scope, call, injection, rest),
      (error) => this.#fail(scope, error),
    ) as Promise<Awaited<R>>; // See above.
  }

  /** Resolves to a service's value, for `ctx.get` in a handler that declares no services. */
  async getForCall(call: ServiceCall, service: Service): Promise<unknown> {
    const scope = new Scope(call, true);
    const value = await this.get(scope, service);
    // During lookup, end the scope immediately, because deferred functions do not run if the lookup refuses the call.
    if (call.asks && !scope.isEmpty) call.defer((end) => this.endScope(scope, end));
    else await this.endScope(scope, "result");
    return value;
  }

  /** Resolves to a service's value for one run of a handler. Rejects if the run has ended. */
  async get(scope: Scope, service: Service): Promise<unknown> {
    if (!findInternals(service)) {
      throw new TypeError("Cannot get a service: the value is not a service; create the service with service()");
    }
    if (scope.end) {
      throw new Error(
        `Cannot get service ${quote(service.name)}: the handler has ended; await get() before the handler returns`,
      );
    }
    const found = this.#resolve(service, scope);
    return found instanceof Promise ? await found : found.value;
  }

  async disposeUnlessStarted(): Promise<void> {
    if (!this.#isPinned) await this.#disposeAll();
  }

  close(): Promise<void> {
    this.#isClosing = true;
    return this.#closed ??= this.#disposeAll();
  }

  #runWith<C extends ServiceCall, A extends readonly unknown[], R>(
    values: object,
    scope: Scope,
    call: C,
    { run, isShared }: Injection<C, A, R>,
    rest: A,
  ): R | Promise<Awaited<R>> {
    // Check again, because the call may have been cancelled while a service was being created.
    if (call.ended && !isShared) return this.#fail(scope, call.reason);
    let result: R;
    try {
      // The cast is safe, because `values` has a value for each service that the handler declares.
      result = run(call, new ServiceContext(call, values as never, { container: this, scope }), ...rest);
    } catch (error) {
      return this.#fail(scope, error);
    }
    if (isPromiseLike(result)) return this.#finish(scope, Promise.resolve(result));
    if (scope.isEmpty) {
      this.#endEmpty(scope, "result");
      return result;
    }
    return this.#finish(scope, Promise.resolve(result));
  }

  async #finish<R>(scope: Scope, running: Promise<R>): Promise<Awaited<R>> {
    let result;
    try {
      result = await running;
    } catch (error) {
      return await this.#fail(scope, error);
    }
    await this.endScope(scope, Object(result).isError === true ? "error" : "result");
    return result;
  }

  #endEmpty(scope: Scope, end: ServiceEnd): void {
    scope.end = end;
    if (this.#scopes.delete(scope)) scope.closed.resolve();
  }

  /** Ends the scope of a function that threw an error, and throws the same error. */
  #fail(scope: Scope, error: unknown): Promise<never> {
    if (scope.isEmpty) {
      this.#endEmpty(scope, "error");
      throw error;
    }
    return this.endScope(scope, "error").then(() => {
      throw error;
    });
  }

  // Ends the scope `CANCEL_MS` after the call was cancelled, so that a handler that ignores its signal does not use its
  // values forever.
  #watch(scope: Scope): void {
    const { ticker } = this.#parts;
    const { call: { signal }, closed } = scope;
    this.#scopes.add(scope);
    const onAbort = () => {
      for (const entry of scope.entries.values()) if (entry.state === "making") entry.abort(signal.reason);
      const timeout = ticker.startTimeout(CANCEL_MS, () => this.#endReported(scope));
      closed.promise.then(() => ticker.cancel(timeout));
    };
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    closed.promise.then(() => signal.removeEventListener("abort", onAbort));
  }

  async #endReported(scope: Scope): Promise<void> {
    try {
      await this.endScope(scope, "cancelled");
    } catch (error) {
      this.#parts.report(error, { method: scope.call.method });
    }
  }

  /** Throws if disposal fails after a result, because the work is not complete, such as an uncommitted transaction. */
  async endScope(scope: Scope, planned: ServiceEnd): Promise<void> {
    if (scope.end) return scope.isEmpty ? undefined : await scope.closed.promise;
    const { call } = scope;
    if (scope.isEmpty) return this.#endEmpty(scope, planned);
    const end = call.isAsking ? "input_required" : call.ended && !scope.isShared ? "cancelled" : planned;
    scope.end = end;
    let failure: { readonly error: unknown } | undefined;
    try {
      // If a value is still being created, the handler has called `get` without awaiting the value.
      for (const entry of scope.entries.values()) {
        this.#abandon(entry, "the handler has ended; await get() before the handler returns");
      }
      for (const entry of scope.made.reverse()) {
        try {
          await this.#dispose(entry, failure ? "error" : end);
        } catch (error) {
          if (end === "result" && !failure) failure = { error };
          else this.#parts.report(error, { method: call.method, subject: entry.place });
        }
      }
    } finally {
      this.#keyed.release(scope.holds);
      this.#scopes.delete(scope);
      scope.closed.resolve();
    }
    if (failure) throw failure.error;
  }

  #resolveAll(scope: Scope, needs: Needs): object | Promise<object> {
    const values: Record<string, unknown> = {};
    const waits: Promise<unknown>[] = [];
    for (const [name, service] of needs.list) {
      const value = this.#resolve(service, scope);
      if (value instanceof Promise) {
        const wait = value.then((value) => values[name] = value);
        // Handle the rejection here, because nothing awaits the promise if the next service fails immediately.
        wait.catch(() => {});
        waits.push(wait);
      } else values[name] = value.value;
    }
    const finish = () => {
      if (needs.isLasting) this.#values.set(needs, values);
      return values;
    };
    if (!waits.length) return finish();
    // Wait for all services, so that no service is still being created after another service has failed.
    return Promise.allSettled(waits).then((outcomes) => {
      for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
      return finish();
    });
  }

  /** The value is wrapped in an object, because the value may be a thenable. */
  #resolve(service: Service, scope?: Scope): { readonly value: unknown } | Promise<unknown> {
    const entry = this.#find(service, scope);
    entry.start?.();
    if (entry.state === "made") return { value: entry.value };
    if (scope) entry.isAwaited = true;
    return entry.settled.promise;
  }

  #find(service: Service, scope?: Scope, from?: Entry): Entry {
    const definition = toDefinition(service);
    const { name } = service;
    const lifetime = this.#checkLifetime(service, scope, from);
    if (lifetime === "server") {
      const known = this.#entries.get(definition);
      return known ?? this.#make(new Entry(service, lifetime), this.#entries, definition);
    }
    if (lifetime === "key") {
      const key = from?.lifetime === "key" ? from : scope && readKey(name, definition, scope.call);
      if (key) return this.#keyed.find(service, key, (from?.lifetime === "key" ? from : scope)?.holds);
      if (scope?.isShared || !scope) {
        throw new TypeError(
          `Cannot get service ${
            quote(name)
          } here: its key is undefined, so its value would live for one call; return a key from per, ` +
            "or get the service in run or read",
        );
      }
    }
    const known = scope?.entries.get(definition);
    if (known) return known;
    if (!scope) throw new TypeError(`Cannot get service ${quote(name)}: it lives for one call`);
    if (!scope.entries.size) this.#watch(scope);
    return this.#make(new Entry(service, "call"), scope.entries, definition, scope);
  }

  #checkLifetime(service: Service, scope?: Scope, from?: Entry): Lifetime {
    const { lifetime, key } = toDefinition(service);
    const isSameKey = from?.lifetime === "key" && from.definition.key === key;
    if (from && from.lifetime !== "call" && lifetime !== "server" && !isSameKey) {
      throw new TypeError(
        `Cannot make ${from.place}: it ${WORDS[from.lifetime]}, but needs ${quote(service.name)}, which ` +
          `${WORDS[lifetime]}; give both services the same lifetime, or get ${quote(service.name)} in the handler`,
      );
    }
    if (lifetime === "call" && scope?.isShared) {
      throw new TypeError(
        `Cannot get service ${
          quote(service.name)
        } here: its value lives for one call; declare the service in services, and use the value in ` +
          "run or read",
      );
    }
    return lifetime;
  }

  /** `entry.start` runs the service's `make` function. */
  #make<K>(entry: Entry, entries: Map<K, Entry>, key: K, scope?: Scope): Entry {
    if (this.#isClosing) throw toBusy(`get ${entry.place}: the server is closing`);
    entries.set(key, entry);
    entry.start = () => {
      entry.start = undefined;
      this.#startMake(entry, () => entries.get(key) === entry && entries.delete(key), scope);
    };
    return entry;
  }

  #startMake(entry: Entry, remove: () => void, scope?: Scope): void {
    const { ticker: { clock }, observer } = this.#parts;
    const { name, definition, settled } = entry;
    const since = clock.now();
    const fail = (error: unknown) => {
      noteFailedPart(error, entry.place);
      remove();
      entry.holding?.end();
      entry.state = "gone";
      this.#keyed.release(entry.holds);
      entry.abort();
      observer?.service?.({ name, state: "failed", error, durationMs: clock.now() - since });
      settled.reject(error);
      entry.over.resolve();
    };
    const succeed = (value: unknown) => {
      entry.value = value;
      observer?.service?.({ name, state: "made", durationMs: clock.now() - since });
      if (entry.state === "gone") return void this.#disposeReported(entry, "cancelled").then(entry.over.resolve);
      entry.state = "made";
      if (scope) scope.made.push(entry);
      else this.#made.add(entry);
      settled.resolve(value);
      entry.over.resolve();
    };
    try {
      const made: unknown = definition.make(this.#toMakeScope(entry, scope));
      if (isPromiseLike(made)) Promise.resolve(made).then(succeed, fail);
      else succeed(made);
    } catch (error) {
      fail(error);
    }
  }

  #toMakeScope(entry: Entry, scope?: Scope): never {
    const { lifetime, key } = entry;
    const own = lifetime === "call" ? scope : undefined;
    const get = (service: Service) => this.#getFor(entry, service, own);
    const getServer = () => this.#getServer(entry);
    const made = {
      get,
      getServer,
      get signal() {
        return entry.signal;
      },
      key,
      ctx: own?.call,
    };
    return made as never; // The cast is safe, because the lifetime determines the type of `make`.
  }

  async #getServer(entry: Entry): Promise<ServerHandle> {
    const handles = await this.#handles.load();
    if (entry.state === "gone" || this.#isClosing) {
      throw new Error(
        `Cannot get the server in ${entry.place}: the lifetime of its value has ended; call getServer() in make`,
      );
    }
    return await handles.open(entry.name, entry.definition);
  }

  /** Resolves to another service's value that `make` of `entry` has requested. */
  async #getFor(entry: Entry, service: Service, scope?: Scope): Promise<unknown> {
    if (!findInternals(service)) {
      throw new TypeError(
        `Cannot make ${entry.place}: the argument of get() is not a service; create the other service with service()`,
      );
    }
    const needed = this.#find(service, scope, entry);
    if (needed.state === "made") return needed.value;
    if (entry.state === "making") {
      const path = findPath(needed, entry);
      if (path) {
        const names = [entry, ...path].map(({ name }) => name).join(" → ");
        throw new TypeError(
          `Cannot make ${entry.place}: its dependencies form a cycle (${names}); get one of these services in the handler instead`,
        );
      }
      entry.waitsFor.add(needed);
    }
    needed.start?.();
    try {
      return await needed.settled.promise;
    } finally {
      entry.waitsFor.delete(needed);
    }
  }

  /**
   * Rejects the promise for a value that is being created. If `make` returns the value later, the value is disposed.
   */
  #abandon(entry: Entry, state: string): void {
    if (entry.state !== "making") return;
    entry.state = "gone";
    entry.abort();
    entry.settled.reject(McpError.busy(`Cannot get ${entry.place}: ${state}`));
  }

  /** Disposes a value. Rejects if the disposal fails or takes longer than `ms` milliseconds. */
  async #dispose(entry: Entry, end: ServiceEnd, ms: number = DISPOSE_MS): Promise<void> {
    const { ticker: { clock }, observer } = this.#parts;
    const { name, value, definition: { dispose } } = entry;
    const since = clock.now();
    entry.state = "gone";
    try {
      const disposing: unknown = dispose ? dispose(value, end) : findDisposer(value)?.call(value);
      if (isPromiseLike(disposing)) await this.#limit(disposing, ms, entry);
      observer?.service?.({ name, state: "disposed", durationMs: clock.now() - since });
    } catch (error) {
      observer?.service?.({ name, state: "failed", error, durationMs: clock.now() - since });
      throw error;
    } finally {
      entry.abort();
      this.#keyed.release(entry.holds);
    }
  }

  async #disposeReported(entry: Entry, end: ServiceEnd, ms?: number): Promise<void> {
    try {
      await this.#dispose(entry, end, ms);
    } catch (error) {
      this.#parts.report(error, { subject: entry.place });
    }
  }

  /** Disposes all values, newest first, within `DISPOSE_MS`. */
  async #disposeAll(): Promise<void> {
    const { ticker: { clock } } = this.#parts;
    const deadline = clock.now() + DISPOSE_MS;
    const left = () => Math.max(0, deadline - clock.now());
    const wait = (all: readonly Promise<unknown>[]) => this.#limit(Promise.all(all), left()).catch(() => {});
    await wait([...this.#scopes].map(({ closed }) => closed.promise));
    await wait([...this.#scopes].map((scope) => this.#endReported(scope)));
    // Clear the maps before the disposal, so that calls that arrive during the disposal create new values.
    const all = [...this.#entries.values(), ...this.#keyed.clear()];
    const made = [...this.#made].reverse();
    const stopHandles = this.#handles.loaded?.removeAll();
    this.#values = new WeakMap();
    for (const known of [this.#entries, this.#made]) known.clear();
    for (const entry of all) this.#abandon(entry, "the server is closing; try again later");
    // Wait for values that are being created, because their `make` functions may use existing values.
    await wait(all.map(({ over }) => over.promise));
    for (const entry of made) await this.#disposeReported(entry, "result", left());
    await wait(this.#keyed.disposing);
    await stopHandles?.();
  }

  /** Waits for a disposal. Rejects if the disposal takes longer than `ms` milliseconds. */
  #limit(work: PromiseLike<unknown>, ms: number, entry?: Entry): Promise<unknown> {
    const onTimeout = () => {
      const what = entry?.place ?? "the services";
      throw new Error(`Cannot dispose ${what}: the disposal took longer than ${Math.round(ms)} ms`);
    };
    return deadline(work, { ms, onTimeout, clock: this.#parts.ticker });
  }
}
