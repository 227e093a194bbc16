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
}

/** The calls of one connection or exchange. */
export class InFlight {
  // Mostly one, and bounded by the limits: a list is cheaper to make for every request than anything with keys.
  #calls: Cancellable[] = [];

  /** How many calls there are. */
  get size(): number {
    return this.#calls.length;
  }

  /** Adds a call. An id may be in flight twice, because some clients give every request the id 1: both are kept. */
  add(call: Cancellable): void {
    this.#calls.push(call);
  }

  /** Removes a call that has ended. Returns how many are left. */
  remove(call: Cancellable): number {
    const at = this.#calls.lastIndexOf(call);
    if (at === this.#calls.length - 1) this.#calls.pop();
    else if (at >= 0) this.#calls.splice(at, 1);
    return this.#calls.length;
  }

  /** Takes a notification of the client, which may cancel the newest call with an id. */
  notify({ method, params }: Notification): void {
    if (method !== "notifications/cancelled") return;
    this.#calls.findLast(({ id }) => id === params?.requestId)?.cancel(params?.reason);
  }

  /** Cancels every call. The error, if there is one, is their answer. */
  cancelAll(reason?: unknown, error?: McpError): void {
    for (const call of [...this.#calls]) call.cancel(reason, error);
  }

  /** Cancels the subscriptions. */
  cancelSubscriptions(): void {
    for (const call of [...this.#calls]) if (call.isSubscription) call.cancel();
  }
}
