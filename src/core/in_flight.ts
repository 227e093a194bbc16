/**
 * The calls of one connection, by id.
 *
 * @module
 */
import type { McpError } from "../protocol/errors.ts";
import type { Id, Notification } from "../protocol/jsonrpc.ts";

/** A call that can be cancelled. */
export interface Cancellable {
  readonly id: Id;
  /** Whether this is a subscription, which ends when nothing else runs. */
  readonly isSubscription: boolean;
  cancel(reason?: unknown, error?: McpError): void;
  /** Charges the client with a running call, if nobody is charged with it yet. */
  charge(): void;
}

/** The calls of one connection or exchange. */
export class InFlight {
  // Mostly none or one, and bounded by the limits: a list is cheaper to make than anything with keys.
  #calls?: Cancellable[];

  /** How many calls there are. */
  get size(): number {
    return this.#calls?.length ?? 0;
  }

  /** Adds a call. An id may be in flight twice, because some clients give every request the id 1: both are kept. */
  add(call: Cancellable): void {
    if (this.#calls) this.#calls.push(call);
    else this.#calls = [call];
  }

  /** Removes a call that has ended. Returns whether others are left that are not subscriptions. */
  remove(call: Cancellable): boolean {
    const calls = this.#calls;
    if (!calls) return false;
    const at = calls.lastIndexOf(call);
    if (at === calls.length - 1) calls.pop();
    else if (at >= 0) calls.splice(at, 1);
    return calls.length > 0 && !calls.every(isSubscription);
  }

  /** Takes a notification of the client, which may cancel the newest call with an id. */
  notify({ method, params }: Notification): void {
    if (method !== "notifications/cancelled") return;
    this.#calls?.findLast(({ id }) => id === params?.requestId)?.cancel(params?.reason);
  }

  /** Charges clients with the calls that nobody is charged with yet. */
  charge(): void {
    for (const call of this.#calls ?? []) call.charge();
  }

  /** Cancels every call. The error, if there is one, is their answer. */
  cancelAll(reason?: unknown, error?: McpError): void {
    for (const call of [...this.#calls ?? []]) call.cancel(reason, error);
  }

  /** Ends the subscriptions, and has their clients told. */
  endSubscriptions(): void {
    for (const call of [...this.#calls ?? []]) if (call.isSubscription) call.cancel(SHUTDOWN);
  }
}

/** The reason of a subscription that ends because its connection is about to. */
export const SHUTDOWN: unique symbol = Symbol();

function isSubscription(call: Cancellable): boolean {
  return call.isSubscription;
}
