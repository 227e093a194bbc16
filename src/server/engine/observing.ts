/**
 * Builds the events for a server's observers, except for the events of requests.
 */
import { REACHED } from "../../core/protocol/errors.ts";
import type { Core } from "./core.ts";
import type {
  EventSource,
  KnownClient,
  Observing,
  Origin,
  Rejected,
  StreamEvent,
  TransportName,
} from "../call/observer.ts";

export function createObserving(core: Core): Observing {
  return new ServerObserving(core);
}

class ServerObserving implements Observing {
  readonly handlesRequests: boolean;
  readonly #core: Core;
  readonly #handlesCalls: boolean;
  /** The most recently reached limit, which the next refusal reports. */
  #reached?: string;

  constructor(core: Core) {
    this.#core = core;
    const { start, call, around, asked, refused, limit, subscription } = core.observer;
    this.#handlesCalls = !!(start ?? call ?? around ?? asked);
    this.handlesRequests = this.#handlesCalls || !!(refused ?? limit ?? subscription);
  }

  now(): number {
    return this.#handlesCalls ? this.#core.ticker.clock.now() : 0;
  }

  message(direction: "in" | "out", origin: Origin, text: string): void {
    this.#core.observer.message?.({ direction, ...toSource(origin), text });
  }

  openStream(transport: TransportName): (why: StreamEvent["why"]) => void {
    const { observer, ticker: { clock } } = this.#core;
    if (!observer.stream) return () => {};
    const since = clock.now();
    observer.stream({ state: "opened", transport });
    return (why) => observer.stream?.({ state: "ended", transport, why, durationMs: clock.now() - since });
  }

  refuse(origin: Origin, rejected: Rejected): void {
    const { status = 200, method, reason, message, code } = rejected;
    const limit = this.reachBy(rejected);
    this.#core.observer.refused?.({
      ...toSource(origin),
      status: origin.http ? status : undefined,
      reason: limit ? "limit" : reason,
      message,
      code,
      limit,
      method: method?.slice(0, MAX_NAME),
    });
  }

  notify(method: string, origin: Origin, { version: revision, info: client, session }: KnownClient): void {
    const named = method.slice(0, MAX_NAME);
    this.#core.observer.notification?.({ ...toSource(origin), method: named, revision, client, session });
  }

  reach(limit: string, client?: string, handler?: string): void {
    this.#reached = limit;
    this.#core.observer.limit?.(handler === undefined ? { limit, client } : { limit, client, handler });
  }

  reachBy(error: unknown): string | undefined {
    const names = readLimits(error).split(", ").filter((name) => this.#isLimit(name));
    // Skip limits in `REPORTED`, because the server has already reported these limits, and a handler may rethrow the
    // error.
    if (names.length === 1 && !REPORTED.test(names[0])) this.reach(names[0]);
    return names.find((name) => name === this.#reached) ?? names[0];
  }

  #isLimit(name: string): boolean {
    const [group, key] = name.split(".");
    if (group === "handler" || group === "route") return true;
    return Object.entries(this.#core.limits).some(([name, values]) => name === group && key in values);
  }
}

/** Matches the names of limits that the server reports before it creates the error. */
const REPORTED = /^(?:handler\.(?!timeoutMs$)|route\.)/;

/** Returns the fields of an event that the source of its message determines. */
function toSource({ transport, principal }: Origin): EventSource {
  return { transport, principal: principal?.id };
}

/** Returns the paths of the limits that caused an error. Returns an empty string if no limit caused the error. */
function readLimits(error: unknown): string {
  try {
    return `${Object(error)[REACHED] ?? ""}`;
  } catch {
    // A handler may throw any value, such as a proxy whose properties cannot be read.
    return "";
  }
}

/** Maximum length of a name from a client, in characters. */
const MAX_NAME = 200;
