/**
 * One request, the same in every era and on every transport.
 *
 * @module
 */
import { INVALID_PARAMS, McpError, MISSING_CAPABILITY } from "../protocol/errors.ts";
import { type Id, isObject, type Notification, type Params, type Request as Message } from "../protocol/jsonrpc.ts";
import {
  type ClientCapabilities,
  LOG_LEVELS,
  type LogLevel,
  type Meta,
  type Root,
  type SamplingRequest,
  type SamplingResult,
} from "../protocol/types.ts";
import type { Checked, Infer, Schema } from "../schema/schema.ts";
import { toForm } from "../schema/form.ts";
import type {
  ClientFacts,
  Context,
  Elicited,
  ElicitOptions,
  ElicitUrlOptions,
  Principal,
  ProgressOptions,
} from "./context.ts";

/** Fields of a stream event beside its text. */
export interface EventFields {
  readonly id?: string;
  /** The event's type; `message` if nothing is said. */
  readonly event?: string;
  /** Milliseconds after which the client should come back. */
  readonly retry?: number;
}

/** Gives every text on a stream a name, and keeps it to be read again over another connection. */
export interface Journal {
  /** Begins on a connection; the event that opens it, if there is one. */
  open(link: Link): EventFields | undefined;
  /** Keeps a text and sends it to whoever reads the stream now; a promise if the sender should wait for room. */
  write(text: string): Promise<void> | undefined;
  /** Nothing more will come. */
  end(): void;
}

/** Where a message came from and where frames go before the answer. Made by a transport. */
export interface Link {
  /** Where ids are unique: the pipe, or this one exchange. */
  readonly scope: Scope;
  /** The HTTP request that carried the message. */
  readonly http?: Request;
  /** That request's headers. */
  readonly headers?: Headers;
  /** Its `MCP-Protocol-Version`; `null` if it has none. */
  readonly version?: string | null;
  readonly principal?: Principal;
  /** Set by an era whose answer must not become a stream. */
  quick?: boolean;
  /** Set by an era that lets its streams be read again. */
  journal?: Journal;
  /** Called once when the other side can no longer be reached. */
  onClose?: () => void;
  /** Whether texts can reach the client before the answer. */
  readonly streams: boolean;
  /** Sends a JSON text before the answer; a promise if the sender should wait for room. */
  send(text: string, event?: EventFields): Promise<void> | undefined;
  /** Starts the stream without waiting for a text. */
  open(): void;
  /** Ends the connection and not the call. */
  release(retryMs?: number): void;
}

/** The answer to one message. HTTP hints are ignored by a byte stream. No text: accepted, nothing to say. */
export interface Reply {
  /** One JSON-RPC message as JSON. */
  readonly text?: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Goes along with a refusal for want of room: after how many seconds there may be some. */
export const LATER = { "retry-after": "1" } as const;

/** Something to ask the client. */
export interface Question {
  readonly method: "elicitation/create" | "sampling/createMessage" | "roots/list";
  readonly params: Params;
  /** Reads the client's answer. */
  read(answer: unknown): Checked | Promise<Checked>;
}

/** How an era carries what a call says before its result. */
export interface Carrier {
  notify(call: Call, method: string, params: Params): Promise<void> | undefined;
  ask(call: Call, key: string, question: Question): Promise<unknown>;
  once(call: Call, key: string, make: () => unknown): Promise<unknown>;
}

/** A call that has to wait until others have ended; runs it when there is a slot. */
export type Waiting = () => void;

/** Where ids are unique, and which calls are running there. */
export class Scope {
  // Mostly one, and bounded by the limits: a list is cheaper to make for every request than anything with keys.
  #calls: Call[] = [];
  /** Calls that wait for a slot of this client, the oldest first. */
  waiting?: Set<Waiting>;
  /** How many calls have a slot of this client; those that only wait for news need none. */
  size = 0;
  /** Called once when fewer calls wait. */
  onRoom?: () => void;

  /** Notes a call. An id may be in flight twice (some clients number everything 1): both are kept. */
  add(call: Call): void {
    if (this.#calls.length) this.#calls.push(call);
    else this.#calls = [call];
  }

  /** Forgets a call that has ended. */
  remove(call: Call): void {
    const at = this.#calls.lastIndexOf(call);
    if (at === this.#calls.length - 1) this.#calls.pop();
    else if (at >= 0) this.#calls.splice(at, 1);
  }

  /** Takes what a client says without asking: it may cancel the newest call with an id. */
  note({ method, params }: Notification): void {
    if (method !== "notifications/cancelled") return;
    this.#calls.findLast(({ id }) => id === params?.requestId)?.cancel(params?.reason);
  }

  /** Cancels everything; with an error, that is the answer. */
  cancelAll(reason?: unknown, error?: McpError): void {
    for (const call of [...this.#calls]) call.cancel(reason, error);
  }

  /** Cancels the calls that only wait for news. */
  cancelLasting(): void {
    for (const call of [...this.#calls]) if (call.lasting) call.cancel();
  }
}

/** One request. Handlers see it as their {@linkcode Context}. */
export class Call implements Context {
  readonly id: Id;
  readonly method: string;
  readonly client: ClientFacts;
  readonly link: Link;
  /** Where the call's id is unique. */
  readonly scope: Scope;
  /** Whether nothing more may be said for this call. */
  ended = false;
  /** Why the call was cancelled, if it was. */
  reason?: unknown;
  /** The answer to the call that was cancelled, if it has one. */
  error?: McpError;
  /** Whether the call does not work but wait for news. */
  lasting?: boolean;
  /** Ends the wait for the handler; set while the call waits. */
  onCancel?: () => void;
  /** Whether the result may be kept, and by whom; said by the method. */
  cache?: { readonly ttlMs: number; readonly scope: "public" | "private" };
  readonly #carrier: Carrier;
  #params: Params;
  #controller?: AbortController;
  #progress = -Infinity;
  #waiting?: Promise<void>;
  #merged?: Params;
  #ahead = 0;

  /** A call that came over `link` and is spoken for by `carrier`. */
  constructor(carrier: Carrier, link: Link, request: Message, client: ClientFacts, scope: Scope = link.scope) {
    this.#carrier = carrier;
    this.link = link;
    this.scope = scope;
    this.id = request.id;
    this.method = request.method;
    this.#params = request.params ?? {};
    this.client = client;
  }

  get params(): Params {
    return this.#params;
  }

  /** Lets go of the parameters, for a call that lasts and has read them. */
  forget(): void {
    this.#params = {};
  }

  get principal(): Principal | undefined {
    return this.link.principal;
  }

  get http(): Request | undefined {
    return this.link.http;
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

  /** Stops the call: without an error there is no answer, with one that is the answer. */
  cancel(reason?: unknown, error?: McpError): void {
    if (this.ended) return;
    this.ended = true;
    this.reason = reason ?? new DOMException("Cannot go on: the call was cancelled", "AbortError");
    this.error = error;
    this.#controller?.abort(this.reason);
    this.onCancel?.();
  }

  progress(progress: number, { total, message }: ProgressOptions = {}): Promise<void> {
    const token = this.meta.progressToken;
    if (!isProgressToken(token) || !(progress > this.#progress)) return done;
    this.#progress = progress;
    const params = { progressToken: token, progress, total, message };
    if (!this.#waiting) return this.#say("notifications/progress", params);
    // The client reads more slowly than the handler works: only the newest value is worth sending.
    this.#merged = params;
    return this.#waiting;
  }

  log(level: LogLevel, data: unknown, logger?: string): Promise<void> {
    const wanted = this.client.logLevel;
    const rank = LOG_LEVELS.indexOf(level);
    if (!wanted || rank < LOG_LEVELS.indexOf(wanted)) return done;
    // A handler that does not wait gets only so far ahead of its client; what it says beyond is dropped.
    if (this.#waiting && this.#ahead++ >= MOST_AHEAD) return this.#waiting;
    return this.#say("notifications/message", { level, logger, data: toLoggable(data) });
  }

  elicit<S extends Schema>(key: string, { message, schema }: ElicitOptions<S>): Promise<Elicited<Infer<S>>> {
    return this.#ask(key, { elicitation: { form: {} } }, () => {
      const form = toForm(schema, `the question ${JSON.stringify(key)}`);
      return {
        method: "elicitation/create",
        params: { message, requestedSchema: form.requestedSchema },
        read: (given) => {
          const answer = readAction(given);
          if (answer.problem !== undefined || !isObject(given) || given.action !== "accept") return answer;
          const checked = form.check(given.content);
          return checked instanceof Promise ? checked.then(toAccepted) : toAccepted(checked);
        },
      };
    });
  }

  elicitUrl(
    key: string,
    { message, url }: ElicitUrlOptions,
  ): Promise<{ readonly action: "accept" | "decline" | "cancel" }> {
    return this.#ask(key, { elicitation: { url: {} } }, () => ({
      method: "elicitation/create",
      params: { mode: "url", message, url },
      read: readAction,
    }));
  }

  sample(key: string, request: SamplingRequest): Promise<SamplingResult> {
    const needs = request.tools || request.toolChoice ? { sampling: { tools: {} } } : { sampling: {} };
    return this.#ask(key, needs, () => ({
      method: "sampling/createMessage",
      params: { ...request },
      read: (given) =>
        isObject(given) && typeof given.role === "string" && typeof given.content === "object" && given.content
          ? { value: given }
          : { problem: "role, content: required" },
    }));
  }

  roots(): Promise<readonly Root[]> {
    return this.#ask("roots", { roots: {} }, () => ({
      method: "roots/list",
      params: {},
      read: (given) =>
        isObject(given) && Array.isArray(given.roots)
          ? { value: given.roots }
          : { problem: "roots: expected an array" },
    }));
  }

  once<T>(key: string, make: () => T | Promise<T>): Promise<T> {
    // What comes back is what `make` gave, after a journey as JSON.
    return quiet(this.#carrier.once(this, key, make) as Promise<T>);
  }

  closeStream(retryMs?: number): void {
    if (!this.ended) this.link.release(retryMs);
  }

  #ask<T>(key: string, needs: ClientCapabilities, prepare: () => Question): Promise<T> {
    // The question's `read` let through only what T says.
    return quiet(this.#put(key, needs, prepare) as Promise<T>);
  }

  // Runs up to the carrier without a pause, so that questions asked side by side travel together.
  async #put(key: string, needs: ClientCapabilities, prepare: () => Question): Promise<unknown> {
    if (!hasCapabilities(this.client.capabilities, needs)) {
      throw new McpError(
        MISSING_CAPABILITY,
        `Cannot ask the client: it did not declare ${JSON.stringify(needs)}`,
        { requiredCapabilities: needs },
      );
    }
    if (this.ended) throw this.reason ?? new McpError(INVALID_PARAMS, "Cannot ask the client: the call is over");
    return await this.#carrier.ask(this, key, prepare());
  }

  #say(method: string, params: Params): Promise<void> {
    if (this.ended) return done;
    let room;
    try {
      room = this.#carrier.notify(this, method, params);
    } catch {
      // What JSON cannot hold must not end the handler that wanted to say it.
      if ("data" in params) return this.#say(method, { level: params.level, data: "[a value that JSON cannot hold]" });
    }
    if (!room || this.#waiting) return this.#waiting ?? done;
    this.#waiting = room.then(() => {
      const merged = this.#merged;
      this.#waiting = this.#merged = undefined;
      this.#ahead = 0;
      if (merged) return this.#say("notifications/progress", merged);
    });
    return this.#waiting;
  }
}

const done = Promise.resolve();

/** Log messages that may follow one for which there was no room. */
const MOST_AHEAD = 256;

// A question may fail before its asker waits for it; that is no unhandled rejection, which would end the process.
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

function readAction(given: unknown): Checked {
  const action = isObject(given) ? given.action : undefined;
  return action === "accept" || action === "decline" || action === "cancel"
    ? { value: { action } }
    : { problem: "action: expected accept, decline or cancel" };
}

/** Whether a value can be a progress token. */
export function isProgressToken(value: unknown): value is string | number {
  return typeof value === "string" || Number.isInteger(value);
}

/** Whether a client declared all that is needed. An elicitation capability with no mode means forms. */
function hasCapabilities(has: ClientCapabilities, needs: ClientCapabilities): boolean {
  return Object.entries(needs).every(([name, wanted]) => {
    const offered = has[name];
    if (!isObject(offered)) return false;
    const modes = Object.keys(isObject(wanted) ? wanted : {});
    return modes.every((mode) =>
      isObject(offered[mode]) || (name === "elicitation" && mode === "form" && offered.url === undefined)
    );
  });
}

function toAccepted(checked: Checked): Checked {
  return checked.problem === undefined ? { value: { action: "accept", content: checked.value } } : checked;
}

// What JSON leaves out would leave a message without data.
function toLoggable(data: unknown): unknown {
  return ["undefined", "function", "symbol"].includes(typeof data) ? String(data) : data;
}
