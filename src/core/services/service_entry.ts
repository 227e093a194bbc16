/**
 * One value of a service, and its state in the container.
 *
 * @module
 */
import { quote } from "../../protocol/errors.ts";
import { isStrayPromise } from "../../protocol/promises.ts";
import { type Definition, type ServiceCall, toDefinition } from "../call/container.ts";
import type { Lifetime, Service } from "../call/service.ts";

/** The key of a value. */
export interface EntryKey {
  readonly key?: string;
  readonly fullKey?: string;
}

/** One value of a service. */
export class Entry {
  readonly name: string;
  readonly definition: Definition;
  readonly lifetime: Lifetime;
  readonly key?: string;
  /** Key among all values of the service: `key` together with the path of the endpoint. */
  readonly fullKey?: string;
  state: "making" | "made" | "gone" = "making";
  value: unknown;
  /** Runs `make` exactly once. */
  start?: () => void;
  /** Promise of the value. */
  readonly settled: PromiseWithResolvers<unknown> = Promise.withResolvers();
  /** Entries that `make` of this entry waits for. */
  readonly waitsFor: Set<Entry> = new Set();
  /** Entries by key that this entry uses. */
  readonly holds: Set<Entry> = new Set();
  /** Number of calls and entries that use a value by key. */
  users = 0;
  /** Time of the last use, in milliseconds of the monotonic clock. */
  usedAt = 0;
  /** Whether a call waits for the value, so that it reports the error if `make` fails. */
  isAwaited = false;
  readonly controller: AbortController = new AbortController();
  /** Settles when `make` has ended. If the value is no longer needed, settles when the value is disposed. */
  readonly over: PromiseWithResolvers<void> = Promise.withResolvers();

  constructor(service: Service, lifetime: Lifetime, { key, fullKey }: EntryKey = {}) {
    this.name = service.name;
    this.definition = toDefinition(service);
    this.lifetime = lifetime;
    this.key = key;
    this.fullKey = fullKey;
    // Handle the rejection: there may be no caller that waits, and an unhandled rejection would end the process.
    this.settled.promise.catch(() => {});
  }

  get place(): string {
    return `service ${quote(this.name)}`;
  }
}

/** Returns the entries from `from` to `to` that wait for each other. Returns `undefined` if there is no such chain. */
export function findPath(from: Entry, to: Entry): readonly Entry[] | undefined {
  if (from === to) return [from];
  for (const next of from.waitsFor) {
    const path = findPath(next, to);
    if (path) return [from, ...path];
  }
}

/** Returns the method with which a value disposes itself. */
export function findDisposer(value: unknown): (() => unknown) | undefined {
  const { [Symbol.asyncDispose]: later, [Symbol.dispose]: now }: Partial<AsyncDisposable & Disposable> = Object(value);
  return later ?? now;
}

/** Returns the key of a service for a call, or `undefined` if the value lives for one call. */
export function readKey(name: string, { key }: Definition, call: ServiceCall): EntryKey | undefined {
  const found: unknown = key?.(call);
  if (found === undefined) return;
  // Add the path of the endpoint, because the same id may stand for different callers on different endpoints, and a
  // tenant must not get another tenant's value.
  if (typeof found === "string" && found) return { key: found, fullKey: `${call.host.endpoint} ${found}` };
  const state = found === ""
    // Reject an empty string, because all callers without an id would share the value.
    ? "an empty text; return a key, or undefined for a value that lives for one call"
    : `${isStrayPromise(found) ? "a promise" : quote(found)}; return a string`;
  throw new TypeError(`Cannot find the key of service ${quote(name)}: per returned ${state}`);
}
