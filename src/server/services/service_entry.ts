/**
 * One value of a service, and its state in the container.
 */
import { quote } from "../../core/protocol/errors.ts";
import { show } from "../../core/known_options.ts";
import { isStrayPromise } from "../../core/protocol/promises.ts";
import type { Account, Holding } from "../capacity/account.ts";
import { type Definition, type ServiceCall, toDefinition } from "../call/container.ts";
import { findCall } from "../call/find_call.ts";
import type { Lifetime, Service } from "../call/service.ts";

export interface EntryKey {
  readonly key?: string;
  readonly fullKey?: string;
  /** The client that uses the value. `undefined` in a unit test. */
  readonly account?: Account;
}

/** The value may not exist yet. */
export class Entry {
  readonly name: string;
  readonly definition: Definition;
  readonly lifetime: Lifetime;
  readonly key?: string;
  /** `key`, preceded by the path of the endpoint. Unique among all values of the service. */
  readonly fullKey?: string;
  state: "making" | "made" | "gone" = "making";
  value: unknown;
  /** Runs the service's `make` function. `undefined` once `make` was called. */
  start?: () => void;
  /** Resolves to the value. Rejects if `make` fails. */
  readonly settled: PromiseWithResolvers<unknown> = Promise.withResolvers();
  /** Entries that this entry's `make` function waits for. */
  readonly waitsFor: Set<Entry> = new Set();
  /** Entries with a key that this entry uses. */
  readonly holds: Set<Entry> = new Set();
  /** Number of calls and other entries that use this entry. Counted only for an entry with a key. */
  users = 0;
  /** Charges the client for an entry with a key. */
  holding?: Holding;
  /** Time at which the last use ended, in milliseconds of the monotonic clock. */
  usedAt = 0;
  /** Whether a call waits for the value. If `make` fails, this call reports the error. */
  isAwaited = false;
  #controller?: AbortController;
  #aborted?: { readonly reason: unknown };
  /** Resolves when `make` has ended. If the value is no longer needed by then, resolves when the value was disposed. */
  readonly over: PromiseWithResolvers<void> = Promise.withResolvers();

  constructor(service: Service, lifetime: Lifetime, { key, fullKey }: EntryKey = {}) {
    this.name = service.name;
    this.definition = toDefinition(service);
    this.lifetime = lifetime;
    this.key = key;
    this.fullKey = fullKey;
    // Handle the rejection here, because no caller may be waiting, and an unhandled rejection would end the process.
    this.settled.promise.catch(() => {});
  }

  /** The client that pays for an entry with a key, and for the entries with its key that it needs. */
  get account(): Account | undefined {
    return this.holding?.account;
  }

  /** The signal for `make`. Created on first use, because few services use it, and each abort creates an error. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#aborted.reason);
    }
    return this.#controller.signal;
  }

  abort(reason?: unknown): void {
    this.#aborted ??= { reason };
    this.#controller?.abort(reason);
  }

  get place(): string {
    return `service ${quote(this.name)}`;
  }
}

/** Returns a path in which each entry waits for the next entry, or `undefined` if there is none. */
export function findPath(from: Entry, to: Entry): readonly Entry[] | undefined {
  if (from === to) return [from];
  for (const next of from.waitsFor) {
    const path = findPath(next, to);
    if (path) return [from, ...path];
  }
}

/** Returns the value's `Symbol.asyncDispose` or `Symbol.dispose` method, if any. */
export function findDisposer(value: unknown): (() => unknown) | undefined {
  const { [Symbol.asyncDispose]: later, [Symbol.dispose]: now }: Partial<AsyncDisposable & Disposable> = Object(value);
  return later ?? now;
}

/** Returns a service's key for a call. Returns `undefined` if the value lives for one call. */
export function readKey(name: string, { key }: Definition, call: ServiceCall): EntryKey | undefined {
  const found: unknown = key?.(call);
  if (found === undefined) return;
  // Add the path of the endpoint, because one id may identify different callers on different endpoints, and a tenant
  // must not get another tenant's value.
  if (typeof found === "string" && found) {
    return { key: found, fullKey: `${call.host.endpoint} ${found}`, account: findCall(call)?.link.account };
  }
  const state = found === ""
    // Reject an empty key. Otherwise all callers without an id would share one value.
    ? "an empty string; return a key, or undefined for a value that lives for one call"
    : `${isStrayPromise(found) ? "a promise" : show(found)}; return a string`;
  throw new TypeError(`Cannot get the key of service ${quote(name)}: per returned ${state}`);
}
