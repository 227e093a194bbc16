/**
 * The method `subscriptions/listen`, which sends notifications of changes until the subscription ends.
 *
 * @see specification/2026-07-28/basic/patterns/subscriptions
 */
import {
  INVALID_PARAMS,
  McpError,
  METHOD_NOT_FOUND,
  nameLimits,
  toBusy,
  withLimits,
} from "../../../core/protocol/errors.ts";
import {
  isObject,
  type Params,
  type Result,
  toIdText,
  toNotification,
  toSuccess,
} from "../../../core/protocol/jsonrpc.ts";
import { toBytes } from "../../../core/protocol/weight.ts";
import type { Call } from "../../call/call.ts";
import { CancelError } from "../../call/cancel_error.ts";
import type { Change } from "../../visibility/changes.ts";
import { canStream } from "../../engine/announced.ts";
import type { Engine } from "../../engine/era.ts";
import type { Published } from "../../call/lives.ts";
import type { ListenKey, Runner } from "../../visibility/feature.ts";
import { countSubscriber, createNotifier, isWatchable, mayNotify } from "../../engine/watching.ts";
import type { Reply } from "../../call/link.ts";
import type { CancelReason } from "../../call/observer.ts";
import { META, META_SERVER } from "./meta_keys.ts";

/** Key of the id of the subscription to which a notification belongs. */
const META_SUBSCRIPTION = `${META}subscriptionId`;

interface Filter {
  readonly lists: ReadonlySet<string>;
  readonly uris: ReadonlySet<string>;
  readonly topics: readonly Topics[];
}

/** The topics that an extension granted for one of its `listen` keys. */
interface Topics {
  readonly key: ListenKey;
  readonly names: readonly string[];
}

/** Settles when the subscription has ended. */
export async function listen(engine: Engine, call: Call): Promise<Reply> {
  const invoke = engine.core.hasMiddleware ? engine.scheduler.invoke : undefined;
  const result = await (invoke ? openThrough(engine, call, invoke) : open(engine, call));
  const { id, link } = call;
  if (!result || !endsWithResult(call)) return {};
  const subscription = { [META_SUBSCRIPTION]: id };
  const _meta = { [META_SERVER]: engine.core.info, ...subscription, ...Object(result._meta) };
  const text = toSuccess(id, JSON.stringify({ resultType: "complete", ...result, _meta }));
  if (link.http) return { text };
  // On stdio and sockets, the server cannot close a single response, so the server reports the end with both a result
  // and a notification. The result comes first, because a client may discard its request when it receives the
  // cancellation.
  link.send(text);
  link.send(toNotification("notifications/cancelled", { requestId: id, reason: "closing", _meta: subscription }));
  return {};
}

// Like other calls, the call takes a slot until its subscription is open.
async function openThrough(
  engine: Engine,
  call: Call,
  invoke: NonNullable<Engine["scheduler"]["invoke"]>,
): Promise<Result | undefined> {
  const { promise: begun, resolve, reject } = Promise.withResolvers<void>();
  const { promise: left, resolve: leave } = Promise.withResolvers<void>();
  const runner: Runner = {
    async run() {
      resolve();
      // Wait until the call has given its slot back, because `grant` takes a slot too.
      await left;
      const result = call.ended ? undefined : await open(engine, call);
      if (!result) throw call.endError;
      return result;
    },
  };
  let ended: Promise<Result> | undefined;
  const begin = () => {
    call.observed?.start();
    ended = Promise.resolve(invoke(call, runner));
    ended.then(() => resolve(), reject);
    return begun;
  };
  try {
    await engine.scheduler.prepareWith(call, begin).finally(leave);
    return await ended;
  } finally {
    // Cancel the subscription if middleware returned before the subscription ended. Otherwise the subscription would
    // stay open without a reply.
    call.cancel(new CancelError("closing"));
  }
}

/** Whether the server sends a result. Without a result, the client subscribes again, such as with new credentials. */
export function endsWithResult({ why }: Call): boolean {
  return why === undefined || why === "closing";
}

const NO_STREAMS =
  "Cannot open the subscription: this server sends no event streams over HTTP (streams: false); list or read again instead";

/** Resolves at the end of the subscription to its result, or to `undefined` if the client gets no result. */
async function open(engine: Engine, call: Call): Promise<Result | undefined> {
  const { link } = call;
  if (!canStream(engine.core, link)) throw new McpError(METHOD_NOT_FOUND, NO_STREAMS);
  const wanted = call.params.notifications;
  if (!isObject(wanted)) throw invalid("params.notifications is not an object");
  const read = readFilter(engine, wanted);
  if (!link.streams) throw invalid("the Accept header does not list text/event-stream");
  const keys = [...engine.registry.compiled("extensions")?.listen ?? []].filter(([key]) => Object.hasOwn(wanted, key));
  const { filter, granted } = keys.length ? await grant(engine, call, read, keys) : read;
  if (call.ended) return;
  const { account } = link;
  // Charge the client for the call until the subscription ends, because the call stays in memory until then.
  const names = [...filter.uris, ...filter.topics.flatMap(({ names }) => names)];
  const bytes = names.reduce((bytes, name) => bytes + toBytes(name) + URI_BYTES, call.weigh());
  if (!engine.scheduler.isOpen) throw toBusy("open the subscription: the server is closing");
  // If this subscription is evicted to make room for another client's stream, end the subscription with a result, as
  // when the server closes.
  const stream = account.openStream(() => {
    call.cancel(new CancelError("closing"));
    return true;
  });
  if (!stream) {
    throw toBusy(
      "open the subscription: too many streams are open",
      "connections.streams, connections.streamsPerClient",
    );
  }
  if (!account.hold(bytes)) {
    stream.end();
    throw toBusy("open the subscription: too much memory is used", "memory.bytesPerClient, memory.bytes");
  }
  call.observed?.start();
  call.subscribe();
  link.wait();
  return await new Promise((resolve) => {
    const subscription = new Subscription(engine, call, filter);
    subscription.open(granted, (result) => {
      account.free(bytes);
      stream.end();
      resolve(result);
    });
  });
}

interface Read {
  readonly filter: Filter;
  readonly granted: Params;
}

// Asks the extensions which of the requested topics they grant. Like other calls, the call takes a slot until the
// extensions have decided.
async function grant(
  engine: Engine,
  call: Call,
  { filter, granted }: Read,
  keys: readonly (readonly [string, ListenKey])[],
): Promise<Read> {
  const { scheduler, core } = engine;
  const decide = () =>
    Promise.all(keys.map(async ([name, key]) => {
      return { name, key, granted: await key.grant(Object(call.params.notifications)[name], call) };
    }));
  const decided = await scheduler.prepareWith(call, decide);
  const taken = decided.flatMap(({ name, key, granted }) => granted ? [{ name, key, ...granted }] : []);
  const topics = taken.map(({ key, topics }) => ({ key, names: topics }));
  if (!isWatchable([...filter.uris, ...topics.flatMap(({ names }) => names)], core.limits)) {
    throw invalid(
      "the client requests too many resources and topics, or their names are too long",
      "streams.watchedUris",
    );
  }
  return {
    filter: { ...filter, topics },
    granted: { ...granted, ...Object.fromEntries(taken.map(({ name, value }) => [name, value])) },
  };
}

/** Memory that a watched URI takes in addition to its text, in bytes. */
const URI_BYTES = 100;

class Subscription {
  readonly #engine: Engine;
  readonly #call: Call;
  readonly #filter: Filter;
  readonly #idText: string;
  readonly #notify: (text: string, key?: string) => void;
  readonly #onChange = (change: Change): void => this.#handleChange(change);
  // Bound: `streams.watchedUris`.
  readonly #stops: (() => void)[] = [];
  #ended?: (result: Result | undefined) => void;

  constructor(engine: Engine, call: Call, filter: Filter) {
    this.#engine = engine;
    this.#call = call;
    this.#filter = filter;
    this.#idText = toIdText(call.id);
    this.#notify = createNotifier((text) => call.link.send(text));
  }

  /** Sends the acknowledgement, and then a notification for each change, until the call or the server ends. */
  open(granted: Params, ended: (result: Result | undefined) => void): void {
    const { id, inFlight, link } = this.#call;
    this.#ended = ended;
    this.#call.whenCancelled(() => this.#end(endsWithResult(this.#call) ? {} : undefined));
    inFlight.add(this.#call);
    this.#announce("opened");
    const { principal, http } = link;
    const caller = { principal, checks: http?.toChecks?.(principal) };
    this.#stops.push(this.#engine.core.callers.watch(caller, () => this.#expire()));
    const start = () => {
      if (!this.#ended) return;
      this.#engine.changes.listeners.add(this.#onChange);
      const { lives } = this.#call.host;
      for (const { key: { extension, key }, names } of this.#filter.topics) {
        const wanted = { key, topics: names, ctx: this.#call };
        const stop = lives?.subscribe(extension, wanted, (published) => this.#deliver(published));
        if (stop) this.#stops.push(stop);
      }
      // Subscribe before sending the acknowledgement, because the client must not miss a change after the
      // acknowledgement.
      for (const uri of this.#filter.uris) this.#stops.push(countSubscriber(this.#engine, uri, this.#call));
      link.send(toNotification("notifications/subscriptions/acknowledged", {
        notifications: granted,
        _meta: { [META_SUBSCRIPTION]: id },
      }));
    };
    const ready = this.#engine.changes.connect?.();
    if (ready) ready.then(start);
    else start();
  }

  #handleChange(change: Change): void {
    if (change.kind === "close") return this.#end({});
    // In this revision, log messages are sent only as part of a request.
    if (change.kind === "log") return;
    const { lists, uris } = this.#filter;
    if (!(change.kind === "list" ? lists.has(change.feature) : uris.has(change.uri))) return;
    const [before, after] = toFrame(change);
    const text = before + this.#idText + after;
    const seen = mayNotify(this.#engine, change, this.#call);
    if (seen === true) this.#notify(text);
    else if (seen) seen.then((seen) => seen && !this.#call.ended && this.#notify(text));
  }

  // Over HTTP, closing the stream shows the client that the subscription has ended. On other links, the connection
  // stays open, so a notification must name the subscription.
  #expire(): void {
    const { id, link } = this.#call;
    if (!link.http) {
      const _meta = { [META_SUBSCRIPTION]: id };
      link.send(toNotification("notifications/cancelled", { requestId: id, reason: "expired", _meta }));
    }
    this.#call.cancel(
      new CancelError("expired", "Cannot continue the subscription: the caller's credentials are no longer valid"),
    );
  }

  #announce(state: "opened" | "ended", why?: CancelReason): void {
    const { client, link } = this.#call;
    this.#engine.core.observer.subscription?.({
      state,
      transport: link.transport,
      principal: link.principal?.id,
      revision: client.version,
      lists: [...this.#filter.lists],
      uris: [...this.#filter.uris],
      why,
    });
  }

  #deliver({ topic, method, params }: Published): void {
    const _meta = { ...Object(params._meta), [META_SUBSCRIPTION]: this.#call.id };
    this.#notify(toNotification(method, { ...params, _meta }), `${method} ${topic}`);
  }

  #end(result: Result | undefined): void {
    for (const stop of this.#stops.splice(0)) stop();
    this.#announce("ended", this.#call.why ?? "closing");
    this.#engine.changes.listeners.delete(this.#onChange);
    this.#call.inFlight.remove(this.#call);
    this.#call.end();
    this.#ended?.(result);
    this.#ended = undefined;
  }
}

// The server does not acknowledge notifications that it never sends. The server acknowledges hidden and unknown
// resources too, so that a client cannot find out which resources exist. `allow` decides for each change whether the
// client is notified.
function readFilter({ core, registry }: Engine, wanted: Params): Read {
  const { capabilities } = registry;
  const lists = Object.keys(LISTS).filter((name) => wanted[name] === true && capabilities[LISTS[name]]?.listChanged);
  const requested = wanted.resourceSubscriptions ?? [];
  if (!Array.isArray(requested) || !requested.every((uri) => typeof uri === "string")) {
    throw invalid("params.notifications.resourceSubscriptions is not an array of strings");
  }
  if (!isWatchable(requested, core.limits)) {
    throw invalid("the client requests too many resources, or their URIs are too long", "streams.watchedUris");
  }
  const uris = capabilities.resources?.subscribe ? requested : [];
  return {
    filter: { lists: new Set(lists.map((name) => LISTS[name])), uris: new Set(uris), topics: [] },
    granted: {
      ...Object.fromEntries(lists.map((name) => [name, true])),
      ...uris.length ? { resourceSubscriptions: uris } : {},
    },
  };
}

const LISTS: Readonly<Record<string, string>> = {
  toolsListChanged: "tools",
  promptsListChanged: "prompts",
  resourcesListChanged: "resources",
};

function invalid(state: string, limit?: string): McpError {
  const { message } = nameLimits(`Cannot open the subscription: ${state}`, limit);
  return withLimits(new McpError(INVALID_PARAMS, message), limit);
}

// Build the text of a notification once per change, because all subscriptions receive the same change object. Each
// subscription inserts its own id.
let lastChange: Change | undefined;
let lastFrame: readonly [string, string] = ["", ""];

function toFrame(change: Change): readonly [before: string, after: string] {
  if (change !== lastChange && (change.kind === "list" || change.kind === "resource")) {
    const isList = change.kind === "list";
    const method = isList ? `notifications/${change.feature}/list_changed` : "notifications/resources/updated";
    const text = toNotification(method, { _meta: { [META_SUBSCRIPTION]: 0 }, ...isList ? {} : { uri: change.uri } });
    const at = text.indexOf(`Id":0`) + 4;
    lastChange = change;
    lastFrame = [text.slice(0, at), text.slice(at + 1)];
  }
  return lastFrame;
}
