/**
 * Shares one check of credentials between the requests that present the same credentials at the same time.
 */
import { isPromiseLike } from "../core/protocol/promises.ts";
import type { AuthRequestInfo } from "../server/engine/auth.ts";

interface SharedCheck<T> {
  readonly result: Promise<T>;
  readonly controller: AbortController;
  /** Number of requests that use the check and were not aborted. */
  users: number;
}

interface User extends Pick<AuthRequestInfo, "signal"> {
  /** Whether the request has started the check. */
  readonly isFirst?: boolean;
}

export class SharedChecks<T> {
  /** The checks by the credentials that they check. */
  // Bound: `auth.running`, because a check was started by a request that waits for it, until this request times out.
  readonly #running = new Map<string, SharedCheck<T>>();

  has(id: string): boolean {
    return this.#running.has(id);
  }

  join(id: string, info: AuthRequestInfo): Promise<T> | undefined {
    const check = this.#running.get(id);
    if (!check) return;
    this.#follow(id, check, { signal: info.signal });
    info.share?.();
    return check.result;
  }

  /** The signal of the check aborts only when all requests that use the check were aborted. */
  start(id: string, info: AuthRequestInfo, check: (info: AuthRequestInfo) => T | PromiseLike<T>): T | Promise<T> {
    const controller = new AbortController();
    const found = check(withSignal(info, controller.signal));
    if (!isPromiseLike(found)) return found;
    const running: SharedCheck<T> = { result: Promise.resolve(found), controller, users: 0 };
    this.#running.set(id, running);
    this.#follow(id, running, { signal: info.signal, isFirst: true });
    return running.result.finally(() => this.#forget(id, running));
  }

  clear(): void {
    this.#running.clear();
  }

  #follow(id: string, check: SharedCheck<T>, { signal, isFirst }: User): void {
    check.users++;
    const onAbort = () => {
      const isUnused = !--check.users;
      // After the timeout of the first request, later requests must not wait for the check, because it may never end.
      if (isFirst || isUnused) this.#forget(id, check);
      if (isUnused) check.controller.abort(signal.reason);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  }

  #forget(id: string, check: SharedCheck<T>): void {
    if (this.#running.get(id) === check) this.#running.delete(id);
  }
}

// The facts are copied, because a request computes them with private members.
function withSignal(info: AuthRequestInfo, signal: AbortSignal): AuthRequestInfo {
  const { transport, peer, now, pathParams, isRecheck } = info;
  const refuseIfFull = () => info.refuseIfFull?.();
  const delay: AuthRequestInfo["delay"] = (turn, options) => info.delay?.(turn, options);
  return { transport, peer, now, pathParams, isRecheck, signal, refuseIfFull, delay };
}
