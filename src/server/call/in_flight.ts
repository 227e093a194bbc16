/**
 * The running calls of one connection.
 */
import { CancelError } from "./cancel_error.ts";
import type { Id, Notification } from "../../core/protocol/jsonrpc.ts";

export interface Cancellable {
  readonly id: Id;
  /** The call's host. `host.server` identifies the endpoint. */
  readonly host: { readonly server: object };
  /** A connection that has only subscriptions counts as idle. */
  readonly isSubscription: boolean;
  /** The client receives a response only if `reason.response` is set. */
  cancel(reason: CancelError): void;
  /** Does nothing if the call already counts. */
  charge(): void;
  /** Adds a period to the running time, and cancels the call when the time reaches `maxMs`. */
  age(periodMs: number, maxMs: number): void;
}

/** The running calls of one connection, or of one HTTP exchange. */
export class InFlight {
  // An array takes less memory than a map. Lookup is fast, because the array usually contains at most one call, and the
  // server limits the number of calls.
  #calls?: Cancellable[];
  /** The reason for refusing further calls. Set when the connection has ended. */
  over?: CancelError;

  /** Number of running calls, including subscriptions. */
  get size(): number {
    return this.#calls?.length ?? 0;
  }

  /** Adds a call. Several calls may have the same id, because some clients send every request with id 1. */
  add(call: Cancellable): void {
    if (this.#calls) this.#calls.push(call);
    else this.#calls = [call];
  }

  /** Removes a call that has ended. Returns whether another call is still running, not counting subscriptions. */
  remove(call: Cancellable): boolean {
    const calls = this.#calls;
    if (!calls) return false;
    const at = calls.lastIndexOf(call);
    if (at === calls.length - 1) calls.pop();
    else if (at >= 0) calls.splice(at, 1);
    return calls.length > 0 && !calls.every(isSubscription);
  }

  /** `notifications/cancelled` cancels the newest call with the given id. Returns `false` if no call has this id. */
  notify({ method, params }: Notification): boolean {
    if (method !== "notifications/cancelled") return true;
    const found = this.#calls?.findLast(({ id }) => id === params?.requestId);
    const reason = params?.reason;
    found?.cancel(new CancelError("client", typeof reason === "string" && reason ? reason : undefined));
    return !!found;
  }

  /** Unlike `host`, `host.server` is the same object for all calls to an endpoint. */
  addServers(servers: Set<object>): void {
    for (const { host } of this.#calls ?? []) servers.add(host.server);
  }

  charge(): void {
    for (const call of this.#calls ?? []) call.charge();
  }

  /** Adds a period to the running time of every call, and cancels calls whose running time reaches `maxMs`. */
  age(periodMs: number, maxMs: number): void {
    for (const call of [...this.#calls ?? []]) call.age(periodMs, maxMs);
  }

  /** Cancels all running calls. Further calls can still start. */
  cancelAll(reason: CancelError): void {
    for (const call of [...this.#calls ?? []]) call.cancel(reason);
  }

  /** Cancels all running calls, and refuses further calls. The reason defaults to `disconnected`. */
  end(reason: CancelError = new CancelError("disconnected")): void {
    this.over = reason;
    this.cancelAll(reason);
  }

  /** Cancels all subscriptions because the server is closing. The clients receive a response. */
  endSubscriptions(): void {
    for (const call of [...this.#calls ?? []]) if (call.isSubscription) call.cancel(new CancelError("closing"));
  }
}

function isSubscription(call: Cancellable): boolean {
  return call.isSubscription;
}
