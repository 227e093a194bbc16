/**
 * A part of a server that starts with the server: an extension, a layer, an authentication, a route, a provider, or a
 * service that uses the handle of the server.
 */
import { deadline } from "../../core/kit/deadline.ts";
import { noteFailedPart } from "../../core/kit/failed_part.ts";
import { CancelError } from "../call/cancel_error.ts";
import type { Change } from "../visibility/changes.ts";
import type { Engine } from "./era.ts";
import { watchHandlers } from "./handler_watch.ts";
import { openHandle } from "./open_handle.ts";
import type { ServerHandle, StartPart } from "./server_handle.ts";

// Extensions load this file when they first need one of its functions.
export { mayCall } from "./open_handle.ts";

/** Returns the decision of `allow`, or `false` if the decision takes longer than `calls.timeoutMs`. */
export function decideInTime(deciding: boolean | Promise<boolean>, { core }: Engine): Promise<boolean> {
  const { ticker: clock, limits: { calls: { timeoutMs: ms } } } = core;
  return deadline(deciding, { ms, clock, onTimeout: () => false });
}

/** Milliseconds that a part may take to stop. */
const STOP_MS = 5000;

export interface PartOptions {
  /** Name of the part in messages and observer events, such as `extension "com.example/audit"`. */
  readonly name: string;
  readonly id: string;
  readonly start?: StartPart;
  readonly marksIds?: boolean;
  /** See {@linkcode HandleOptions.owner}. */
  readonly owner?: string;
}

export class ServerPart {
  handle?: ServerHandle;
  readonly #engine: Engine;
  readonly #options: PartOptions;
  readonly #watchers = new Set<() => void>();
  readonly #onChange = ({ kind }: Change): void => {
    if (kind === "close") this.close();
  };
  #unwatch = () => {};
  #controller = new AbortController();
  #starting?: Promise<void>;
  #end?: () => unknown;
  #isClosed = false;

  constructor(engine: Engine, options: PartOptions) {
    this.#engine = engine;
    this.#options = options;
  }

  /**
   * Starts the part, unless it has already started. After a failed start, the next call starts the part again. Returns
   * `undefined` if the part has started, or has no `start`. Rejects after `close`.
   */
  start(): Promise<void> | undefined {
    if (!this.#options.start || this.#end) return;
    if (this.#isClosed) return Promise.reject(this.#toClosed());
    return this.#starting ??= this.#start().catch((error) => {
      this.#starting = undefined;
      noteFailedPart(error, this.#options.name);
      // End what the failed start has begun, because the next start begins it again.
      this.#controller.abort(error);
      throw error;
    });
  }

  /** Announces that the part will be stopped for good. */
  close(): void {
    this.#isClosed = true;
    this.#controller.abort(this.#toClosed());
  }

  #toClosed(): CancelError {
    return new CancelError("closing", `Cannot continue ${this.#options.name}: the server stops it`);
  }

  /** Stops the part, in a limited time. Unless `close` was called, `start` can start the part again. Never rejects. */
  async stop(): Promise<void> {
    this.#controller.abort(this.#toClosed());
    try {
      await deadline(this.#stop(), { ms: STOP_MS, onTimeout: () => {}, clock: this.#engine.core.ticker });
    } catch (error) {
      this.#report(error);
    }
  }

  async #start(): Promise<void> {
    const { name, start } = this.#options;
    if (this.#controller.signal.aborted) this.#controller = new AbortController();
    this.#watch();
    this.handle = await openHandle(this.#engine, {
      ...this.#options,
      signal: this.#controller.signal,
      watchers: this.#watchers,
      report: (error) => this.#report(error),
    });
    const stop: unknown = await start?.(this.handle);
    if (stop !== undefined && typeof stop !== "function") {
      throw new TypeError(
        `Cannot start ${name}: start did not return a function; return a function that stops it, or nothing`,
      );
    }
    this.#end = () => stop?.();
  }

  #watch(): void {
    const { changes: { listeners } } = this.#engine;
    this.#unwatch();
    this.#watchers.clear();
    const unwatchHandlers = watchHandlers(this.#engine, () => this.#notifyChange());
    listeners.add(this.#onChange);
    this.#unwatch = () => {
      unwatchHandlers();
      listeners.delete(this.#onChange);
    };
  }

  async #stop(): Promise<void> {
    await this.#starting?.catch(() => {});
    const end = this.#end;
    this.#starting = this.#end = undefined;
    // The part may be started again while `end` runs.
    this.#unwatch();
    this.#watchers.clear();
    await end?.();
  }

  #notifyChange(): void {
    if (this.#controller.signal.aborted) return;
    for (const onChange of [...this.#watchers]) {
      // The author's function may return a promise in spite of its type.
      const notifying = async () => await onChange();
      notifying().catch((error) => this.#report(error));
    }
  }

  #report(error: unknown): void {
    this.#engine.core.report(error, { subject: this.#options.name });
  }
}
