/**
 * The running calls of one connection.
 *
 * @module
 */
import { CancelError } from "./cancel_error.ts";
import type { Id, Notification } from "../../protocol/jsonrpc.ts";

/** A call that can be cancelled. */
export interface Cancellable {
  readonly id: Id;
  /** Identifies the endpoint of the call. */
  readonly host: { readonly server: object };
  /** Whether this is a subscription. A subscription does not keep the connection busy. */
  readonly isSubscription: boolean;
  /** Cancels the call. The client gets a response only if the reason has one. */
  cancel(reason: CancelError): void;
  /** Charges the client for this running call, unless the client is already charged. */
  charge(): void;
  /** Adds a period to the time of the call, and cancels the call at its timeout. */
  age(periodMs: number, maxMs: number): void;
}

/** The running calls of one connection or exchange. */
export class InFlight {
  // An array takes less memory than a map. Lookup stays fast, because the array usually contains at most one call, and
  // limits bound its length.
  #calls?: Cancellable[];
  /** The reason why no further call may start. Set when the connection has ended. */
  over?: CancelError;

  /** Number of calls. */
  get size(): number {
    return this.#calls?.length ?? 0;
  }

  /** Adds a call. Two calls may have the same id, because some clients use the id 1 for every request. */
  add(call: Cancellable): void {
    if (this.#calls) this.#calls.push(call);
    else this.#calls = [call];
  }

  /** Removes a call that has ended. Returns whether other calls remain that are not subscriptions. */
  remove(call: Cancellable): boolean {
    const calls = this.#calls;
    if (!calls) return false;
    const at = calls.lastIndexOf(call);
    if (at === calls.length - 1) calls.pop();
    else if (at >= 0) calls.splice(at, 1);
    return calls.length > 0 && !calls.every(isSubscription);
  }

  /**
   * Handles a notification of the client, which may cancel the newest call with an id. Returns `false` if there is no
   * such call.
   */
  notify({ method, params }: Notification): boolean {
    if (method !== "notifications/cancelled") return true;
    const found = this.#calls?.findLast(({ id }) => id === params?.requestId);
    const reason = params?.reason;
    found?.cancel(new CancelError("client", typeof reason === "string" && reason ? reason : undefined));
    return !!found;
  }

  /**
   * Adds the endpoints of the calls to a set, by `host.server`. The hosts of an endpoint's calls may be different
   * objects.
   */
  addServers(servers: Set<object>): void {
    for (const { host } of this.#calls ?? []) servers.add(host.server);
  }

  /** Charges the clients for all calls that have no charge yet. */
  charge(): void {
    for (const call of this.#calls ?? []) call.charge();
  }

  /** Adds a period to the time of all calls, and cancels calls at their timeout. */
  age(periodMs: number, maxMs: number): void {
    for (const call of [...this.#calls ?? []]) call.age(periodMs, maxMs);
  }

  /** Cancels all calls. */
  cancelAll(reason: CancelError): void {
    for (const call of [...this.#calls ?? []]) call.cancel(reason);
  }

  /** Cancels all calls, and calls that start later. The reason defaults to a disconnected client. */
  end(reason: CancelError = new CancelError("disconnected")): void {
    this.over = reason;
    this.cancelAll(reason);
  }

  /** Ends the subscriptions, and notifies their clients. */
  endSubscriptions(): void {
    for (const call of [...this.#calls ?? []]) if (call.isSubscription) call.cancel(new CancelError("closing"));
  }
}

function isSubscription(call: Cancellable): boolean {
  return call.isSubscription;
}
