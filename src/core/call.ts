/**
 * One request, the same in every era and on every transport.
 *
 * @module
 */
import { INVALID_PARAMS, McpError, MISSING_CAPABILITY } from "../protocol/errors.ts";
import { type Id, isObject, type Params, type Request as Message } from "../protocol/jsonrpc.ts";
import { countIndexes, toWeight } from "../protocol/weight.ts";
import { LOG_LEVELS, type Meta } from "../protocol/types.ts";
import type { Account } from "./account.ts";
import type { ChangeNotifier, ClientFacts, Context, Principal } from "./context.ts";
import type { Cancellable, InFlight } from "./in_flight.ts";
import type { Link } from "./link.ts";
import { createLog, type Log } from "./log.ts";
import {
  type Asking,
  elicitation,
  hasCapabilities,
  type Question,
  ROOTS,
  sampling,
  urlElicitation,
} from "./question.ts";
import type { RerunWatch } from "./rerun_watch.ts";

/** What all calls of one server share. */
export interface CallHost {
  readonly server: ChangeNotifier;
  /** Set in development. */
  reruns?: RerunWatch;
}

/** How an era carries what a call sends before its result. */
export interface Carrier {
  readonly host: CallHost;
  notify(call: Call, method: string, params: Params): Promise<void> | undefined;
  ask(call: Call, key: string, question: Question): Promise<unknown>;
  once(call: Call, key: string, make: () => unknown): Promise<unknown>;
  /** Ends the connection but not the call, where the client can read the rest later. */
  release?(call: Call, retryMs: number | undefined): void;
}

/** One request. Handlers see it as their {@linkcode Context}. */
export class Call implements Context, Cancellable {
  readonly id: Id;
  readonly method: string;
  readonly client: ClientFacts;
  readonly link: Link;
  /** The calls among which this one is found by its id. */
  readonly inFlight: InFlight;
  /** Bytes that its parameters take at most. */
  weight: number;
  /** The client that is charged with the call; nobody yet, while little is held. */
  account?: Account;
  /** Why the call was cancelled, if it was. */
  reason?: unknown;
  /** The answer to the call that was cancelled, if it has one. */
  error?: McpError;
  /** Dropped by a subscription. */
  params: Params;
  /** Whether nothing more may be sent for this call. */
  ended = false;
  /** Whether this is a subscription, which holds no slot. */
  isSubscription = false;
  /** Called once if the call is cancelled. */
  onCancel?: () => void;
  readonly #carrier: Carrier;
  /** The text of the request, until it is weighed. */
  #text?: string;
  #controller?: AbortController;
  #progress = -Infinity;
  #waiting?: Promise<void>;
  #merged?: Params;
  #ahead = 0;

  /** A call that came over `link` and whose messages `carrier` carries. */
  constructor(
    carrier: Carrier,
    link: Link,
    request: Message,
    client: ClientFacts,
    inFlight: InFlight = link.inFlight,
  ) {
    this.#carrier = carrier;
    this.link = link;
    this.inFlight = inFlight;
    this.id = request.id;
    this.method = request.method;
    this.weight = request.weight;
    this.#text = request.text;
    this.client = client;
    this.params = request.params ?? {};
    carrier.host.reruns?.begin(this);
  }

  get principal(): Principal | undefined {
    return this.link.principal;
  }

  get http(): Request | undefined {
    return this.link.http;
  }

  get server(): ChangeNotifier {
    return this.#carrier.host.server;
  }

  get meta(): Meta {
    const meta = this.params._meta;
    return isObject(meta) ? meta : {};
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.reason) this.#controller.abort(this.reason);
    }
    return this.#controller.signal;
  }

  // Handlers take the methods below out of their context: `run: (input, { log }) => …`. As getters, each of them knows
  // its call, and a call whose handler reads none makes none.

  get progress(): Context["progress"] {
    return (progress, { total, message } = {}) => {
      const { progressToken: token }: Meta = Object(this.params._meta);
      if (!isProgressToken(token) || !(progress > this.#progress)) return done;
      this.#progress = progress;
      const params = { progressToken: token, progress, total, message };
      if (!this.#waiting) return this.#send("notifications/progress", params);
      // The client reads more slowly than the handler works: only the newest value is worth sending.
      this.#merged = params;
      return this.#waiting;
    };
  }

  get log(): Log {
    return createLog((level, data, logger) => {
      const wanted = this.client.logLevel;
      const rank = LOG_LEVELS.indexOf(level);
      if (!wanted || rank < LOG_LEVELS.indexOf(wanted)) return done;
      // A handler that does not wait gets only so far ahead of its client: further messages are dropped.
      if (this.#waiting && this.#ahead++ >= MOST_AHEAD) return this.#waiting;
      return this.#send("notifications/message", { level, logger, data: toLoggable(data) });
    });
  }

  get elicit(): Context["elicit"] {
    return (key, options) => this.#ask(elicitation(key, options));
  }

  get elicitUrl(): Context["elicitUrl"] {
    return (key, options) => this.#ask(urlElicitation(key, options));
  }

  get sample(): Context["sample"] {
    return (key, request) => this.#ask(sampling(key, request));
  }

  get roots(): Context["roots"] {
    return () => this.#ask(ROOTS);
  }

  get once(): Context["once"] {
    // What comes back is what `make` returned, after a journey as JSON.
    return <T>(key: string, make: () => T | Promise<T>) => {
      const { host: { reruns } } = this.#carrier;
      const run = () => this.#carrier.once(this, key, make) as Promise<T>; // As above.
      return quiet(reruns ? reruns.once(this, run) : run());
    };
  }

  get closeStream(): Context["closeStream"] {
    return (retryMs) => {
      if (!this.ended) this.#carrier.release?.(this, retryMs);
    };
  }

  /** Makes the call a subscription: it holds no slot, and what it was asked with is no longer needed. */
  subscribe(): void {
    this.isSubscription = true;
    this.params = {};
  }

  /** Finds out how many bytes its parameters take. */
  weigh(): number {
    if (this.#text !== undefined) {
      this.weight = toWeight(this.#text, { most: 0, indexes: countIndexes(this.#text) });
      this.#text = undefined;
    }
    return this.weight;
  }

  /** Charges the client with a running call, if nobody is charged with it yet. */
  charge(): void {
    if (this.account || this.isSubscription) return;
    this.account = this.link.account;
    this.account.start();
    this.account.charge(this.weigh());
  }

  /** Stops the call: without an error there is no answer, with one that is the answer. */
  cancel(reason?: unknown, error?: McpError): void {
    if (this.ended) return;
    this.ended = true;
    this.reason = reason ?? new DOMException("Cannot go on: the call was cancelled", "AbortError");
    this.error = error;
    this.#controller?.abort(this.reason);
    this.onCancel?.();
  }

  #ask<T>(asking: Asking): Promise<T> {
    // The question's `read` let through only what T allows.
    return quiet(this.#put(asking) as Promise<T>);
  }

  // Runs up to the carrier without a pause, so that questions asked side by side travel together.
  async #put({ key, needs, make }: Asking): Promise<unknown> {
    if (!hasCapabilities(this.client.capabilities, needs)) {
      throw new McpError(
        MISSING_CAPABILITY,
        `Cannot ask the client: it did not declare ${JSON.stringify(needs)}`,
        { requiredCapabilities: needs },
      );
    }
    if (this.ended) throw this.reason ?? new McpError(INVALID_PARAMS, "Cannot ask the client: the call is over");
    const { host: { reruns } } = this.#carrier;
    const question = make();
    const ask = () => this.#carrier.ask(this, key, question);
    return await (reruns ? reruns.ask(this, key, ask) : ask());
  }

  #send(method: string, params: Params): Promise<void> {
    if (this.ended) return done;
    this.#carrier.host.reruns?.note(this, SENT[method]);
    let room;
    try {
      room = this.#carrier.notify(this, method, params);
    } catch {
      // What JSON cannot hold must not end the handler that wanted to send it.
      if ("data" in params) return this.#send(method, { level: params.level, data: "[a value that JSON cannot hold]" });
    }
    if (!room || this.#waiting) return this.#waiting ?? done;
    this.#waiting = room.then(() => {
      const merged = this.#merged;
      this.#waiting = this.#merged = undefined;
      this.#ahead = 0;
      if (merged) return this.#send("notifications/progress", merged);
    });
    return this.#waiting;
  }
}

const done = Promise.resolve();

/** What a handler does when it sends a notification. */
const SENT: Readonly<Record<string, string>> = {
  "notifications/progress": "reports progress",
  "notifications/message": "logs a message",
};

/** Log messages that may follow one for which there was no room. */
const MOST_AHEAD = 256;

// A question may fail before its asker waits for it; that is no unhandled rejection, which would end the process.
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** Whether a value can be a progress token. */
export function isProgressToken(value: unknown): value is string | number {
  return typeof value === "string" || Number.isInteger(value);
}

// What JSON leaves out would leave a message without data.
function toLoggable(data: unknown): unknown {
  return ["undefined", "function", "symbol"].includes(typeof data) ? String(data) : data;
}
