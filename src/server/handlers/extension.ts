/**
 * Extensions: methods, notifications and subscriptions that the protocol does not have, for clients that declare the
 * extension.
 *
 * @see specification/2026-07-28/basic (Extensions)
 */
import { INVALID_PARAMS, McpError, quote } from "../../core/protocol/errors.ts";
import { isObject, type Notification, type Params, type Result } from "../../core/protocol/jsonrpc.ts";
import type { CompiledSchema, Infer, Schema, Schemas } from "../../core/schema/schema.ts";
import { compileSchema } from "../../core/schema/schema_compiler.ts";
import { countIndexes, toWeight } from "../../core/protocol/weight.ts";
import type { Call } from "../call/call.ts";
import type { Context } from "../call/context.ts";
import type { FeatureParts } from "../visibility/feature_parts.ts";
import type { Life, TopicParts, WatchTopic, WrittenStores } from "../engine/extension.ts";
import { type ExtensionSteps, type Layer, withLayers } from "../engine/layers.ts";
import type { ServerHandle, StartPart } from "../engine/server_handle.ts";
import {
  type Compiled,
  type Feature,
  type Granted,
  type Handler,
  isAllowed,
  type IsShown,
  type ListenKey,
  type Method,
  type NotificationSource,
  type Runner,
  toDefinitions,
} from "../visibility/feature.ts";
import { isBroughtByOther, toUnknownMethod, withAlso, withoutSpares } from "../visibility/registry.ts";
import { INTERNALS } from "../../core/internals.ts";
import { checkOptions, isPlain, type KnownOptions, toPlace } from "../../core/known_options.ts";
import type { Reply } from "../call/link.ts";
import type { HandlerCall } from "../call/handler_call.ts";
import type { Published } from "../call/lives.ts";
import type { Awaitable } from "../engine/store.ts";
import { requireCapabilities } from "../call/question.ts";
import { attempt } from "./attempt.ts";
import { extensionLayer } from "./layer.ts";
import { QUOTA } from "./option_names.ts";
import { createLife } from "./watcher.ts";
import { lazyWireCheck } from "../call/lazy_wire_check.ts";

/** Type of the parameters that a schema describes. Without a schema, the parameters can have any type. */
export type InferParams<P extends Schema> = Schema extends P ? Params : Infer<P>;

/** The definition of an extension's method. */
export interface ExtensionMethod<P extends Schema = Schema> {
  /** Schema of the parameters, an object without `_meta`. Defaults to any object. */
  readonly params?: P;
  /**
   * Name of the parameter that HTTP clients repeat in the `Mcp-Name` header, such as `taskId`. If the header is missing
   * or differs from the parameter, the call fails with code -32020.
   */
  readonly subject?: keyof InferParams<P> & string;
  /**
   * Layers around the method, such as `quota({ timeoutMs: 5000 })` from `@x/mcp/layers`. A layer of a method can have the
   * steps `limit`, `enter` and `result`.
   */
  readonly use?: readonly Layer[];
  /**
   * Runs the method. The returned result is sent unchanged. If `run` throws an `McpError`, the client gets that error.
   * For any other error, the client gets only an error id. `server` is the argument that `start` received, or
   * `undefined` if the extension has no `start`.
   */
  readonly run: (params: InferParams<P>, ctx: Context, server: ServerHandle | undefined) => Result | Promise<Result>;
}

/** A notification that clients send and an extension handles. */
export interface ExtensionNotification<P extends Schema = Schema> {
  /** Schema of the parameters, an object. Notifications that do not match the schema are dropped. */
  readonly params?: P;
  /** Unexpected errors only go to `observer.fault`, because a notification has no response. */
  readonly run: (params: InferParams<P>, ctx: Context, server: ServerHandle | undefined) => void | Promise<void>;
}

/** A key in the filter of `subscriptions/listen`. */
export interface ExtensionListen<F extends Schema = Schema> {
  /** Schema of the value of the key. */
  readonly filter: F;
  /**
   * Decides which part of the subscription a caller gets. Returns the granted part of the value, which the server sends
   * to the client. Returns `undefined`, `null` or `false` to grant nothing. By default, the whole value is granted.
   *
   * If the granted part is an array of strings, the client subscribes to these topics, otherwise to the topic `""`.
   */
  readonly grant?: (value: Infer<F>, ctx: Context, server: ServerHandle | undefined) => unknown;
  /**
   * Called when a topic gets its first subscriber on this server. Returns a function that is called after the topic has
   * lost its last subscriber. Use `watch` to do work only while the topic has subscribers. If `watch` fails, the server
   * calls it again until it succeeds.
   */
  readonly watch?: WatchTopic;
  /**
   * Returns the current notification of a topic, for the subscribers on this server. `publish` then sends no parameters
   * to other instances. Their servers call `load` instead, with the context of the topic's first subscriber. They also
   * call it for each new subscriber, after `watch`. If `load` fails, the server calls it again until it succeeds. Use
   * `load` if notifications can be large. By default, `publish` sends the whole notification to other instances.
   */
  readonly load?: (
    topic: string,
    ctx: Context,
    server: ServerHandle | undefined,
  ) => Awaitable<ExtensionEvent | undefined>;
}

/** Options of an extension. Only `id` is required. */
export interface ExtensionOptions<M extends Schemas, N extends Schemas, L extends Schemas> {
  /** Id such as `com.example/audit`. The prefix is a domain name that you own, with its labels in reverse order. */
  readonly id: string;
  /** Settings that clients see: a JSON object. Defaults to `{}`. */
  readonly settings?: Params;
  /**
   * Methods, keyed by name, such as `audit/get`. Unless `undeclared` is set, the methods exist only for clients that
   * declared the extension.
   */
  readonly methods?: { readonly [K in keyof M]: ExtensionMethod<M[K]> };
  /** Notifications that clients send, keyed by name, such as `notifications/audit/seen`. */
  readonly notifications?: { readonly [K in keyof N]: ExtensionNotification<N[K]> };
  /** Keys in the filter of `subscriptions/listen`, such as `auditIds`. */
  readonly listen?: { readonly [K in keyof L]: ExtensionListen<L[K]> };
  /**
   * Whether clients that use a protocol revision with sessions can use the extension too. These clients can use the
   * methods and notifications of the extension, but not its subscriptions and result types. The response to
   * `initialize` lists the extension. Defaults to `false`. An extension that has neither methods nor subscriptions is
   * listed in any case.
   */
  readonly sessions?: boolean;
  /**
   * Whether clients that did not declare the extension can call its methods too. Use `true` if the specification of the
   * extension requires only the server to declare the extension. Defaults to `false`.
   */
  readonly undeclared?: boolean;
  /** Called when a server receives its first request. Can return a function that stops the extension. */
  readonly start?: StartPart;
}

const PARAMS_HINTS = { input: "params", inputSchema: "params", handler: "run" } as const;

const METHOD: KnownOptions<keyof ExtensionMethod> = {
  names: { params: true, subject: true, use: "functions", run: true },
  hints: PARAMS_HINTS,
  elsewhere: { quota: QUOTA },
};

const NOTIFICATION: KnownOptions<keyof ExtensionNotification> = {
  names: { params: true, run: true },
  hints: PARAMS_HINTS,
};

const LISTEN: KnownOptions<keyof ExtensionListen> = {
  names: { filter: true, grant: "function", watch: "function", load: "function" },
};

const OPTIONS: KnownOptions<
  keyof ExtensionOptions<Record<never, Schema>, Record<never, Schema>, Record<never, Schema>>
> = {
  names: {
    id: true,
    settings: true,
    methods: { each: METHOD },
    notifications: { each: NOTIFICATION },
    listen: { each: LISTEN },
    sessions: "boolean",
    undeclared: "boolean",
    start: "function",
  },
};

const LAYER: KnownOptions<keyof ExtensionSteps> = {
  names: {
    list: true,
    required: "boolean",
    registers: "boolean",
    around: "function",
    verify: "function",
    warn: "function",
  },
  hints: { wrap: "around", check: "verify" },
};

const EVENT: KnownOptions<keyof ExtensionEvent> = {
  names: {
    topic: true,
    method: true,
    params: true,
    handler: { names: { method: true, params: true, reads: true } },
  },
};

/** A notification for {@linkcode Extension.publish}. */
export interface ExtensionEvent {
  /** The topic. Defaults to `""`. */
  readonly topic?: string;
  /** Method of the notification, such as `notifications/audit`. */
  readonly method: string;
  /** Parameters of the notification: a JSON object. */
  readonly params?: Params;
  /**
   * The handler to which the notification belongs, such as `{ method: "tools/call", params: { name: "add" } }`. Only
   * subscribers that may call the handler at this time are notified. By default, all subscribers are notified.
   */
  readonly handler?: HandlerCall;
}

/** An extension for `handlers`. */
export interface Extension<Keys extends string = string> extends Handler {
  /** Identifier, such as `com.example/audit`. */
  readonly id: string;
  /**
   * Creates a layer, with which the extension changes handlers. Pass the layer in the `use` option of a handler, a group
   * or a server. The layer has the name of the extension.
   *
   * @throws {TypeError} if a step is unknown or invalid.
   */
  layer(steps?: ExtensionSteps): Layer;
  /**
   * Notifies the subscribers of a topic, on all servers in this process that have this extension, and on other
   * instances that use the same store. If a client reads too slowly, the server keeps only the newest notification per
   * method and topic for this client.
   *
   * @throws {TypeError} if the key is unknown, or the parameters are not JSON.
   */
  publish(key: Keys, event: ExtensionEvent): void;
}

/**
 * Creates an extension.
 *
 * ```ts
 * import { extension } from "@x/mcp";
 * import { z } from "zod";
 *
 * const audit = extension({
 *   id: "com.example/audit",
 *   methods: {
 *     "audit/get": { params: z.object({ day: z.string() }), run: ({ day }) => ({ day, calls: 3 }) },
 *   },
 * });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function extension<
  const M extends Schemas = Record<never, Schema>,
  const N extends Schemas = Record<never, Schema>,
  const L extends Schemas = Record<never, Schema>,
>(options: ExtensionOptions<M, N, L>): Extension<keyof L & string> {
  const place = toPlace("extension", options, "id");
  checkOptions(`make ${place}`, options, OPTIONS);
  const { id } = options;
  const refuse = (state: string) => new TypeError(`Cannot make ${place}: ${state}`);
  if (typeof id !== "string" || !ID.test(id)) {
    throw refuse("an id is a prefix and a name of letters, digits, hyphens and dots, such as com.example/audit");
  }
  const definition = define(options, refuse);
  const added = definition.methods.size + definition.listen.size;
  const lacksSessions = !options.sessions && added > 0;
  const hasMore = added + definition.notifications.size > 0 || options.start !== undefined;
  const life = toLife(options, place);
  return {
    id,
    name: id,
    layer(steps = {}) {
      checkOptions(`make a layer of ${place}`, steps, LAYER);
      const { around, required, registers, ...general } = steps;
      const refuse = (state: string) => new TypeError(`Cannot make a layer of ${place}: ${state}`);
      toJson(steps.list ?? {}, "list", refuse);
      if (registers && hasMore) {
        throw refuse(
          "registers is only for extensions without methods, notifications, listen and start; omit registers, and add the extension to handlers",
        );
      }
      const register = registers ? (place: string) => toRegistered(definition, place) : undefined;
      return extensionLayer({ id, lacksSessions, around, required, register }, general);
    },
    publish(key, event) {
      const purpose = `publish an event for the key ${quote(key)} of ${place}`;
      if (!life.keys.has(key)) {
        const remedy = life.keys.size ? `use the key ${[...life.keys.keys()].join(" or ")}` : "add the key to listen";
        throw new TypeError(`Cannot ${purpose}: ${remedy}`);
      }
      const published = toPublished(event, purpose);
      const written: WrittenStores = new Map();
      for (const publish of [...life.servers]) publish(key, published, written);
    },
    [INTERNALS]: {
      feature: extensions,
      key: id,
      definition,
      also: [...definition.methods.values()].flatMap(({ also = [] }) => also),
      life: life.start || life.keys.size ? life : undefined,
    },
  };
}

function toPublished(event: ExtensionEvent, purpose: string): Published {
  checkOptions(purpose, event, EVENT);
  const { topic = "", method, params = {}, handler } = event;
  const refuse = (state: string) => new TypeError(`Cannot ${purpose}: ${state}`);
  if (typeof method !== "string" || !method.startsWith("notifications/")) {
    throw refuse(`method is ${quote(method)}; it must start with notifications/`);
  }
  let copy;
  try {
    copy = JSON.parse(JSON.stringify(params));
  } catch (error) {
    throw refuse(`params is not JSON (${error})`);
  }
  if (!isObject(copy)) throw refuse("params is not an object");
  return { topic, method, params: copy, handler: handler && toHandlerCall(handler, refuse) };
}

/** Several handlers of a server can register the same extension through layers. */
function toRegistered(definition: Definition, place: string): Handler {
  const { id } = definition;
  return { name: id, [INTERNALS]: { feature: extensions, key: `${id} of ${place}`, definition } };
}

// Matches an extension id. Ids have the format of prefixed `_meta` keys: a prefix and a name.
const ID = /^[a-z](?:[a-z\d-]*[a-z\d])?(?:\.[a-z](?:[a-z\d-]*[a-z\d])?)*\/[a-z\d](?:[\w.-]*[a-z\d])?$/i;

/** Names that an extension's method cannot have: methods of all protocol revisions, and names of notifications. */
const METHODS =
  /^(initialize|ping|notifications\/.*|(server\/discover|subscriptions\/listen|tools\/(list|call)|resources\/(list|templates\/list|read|subscribe|unsubscribe)|prompts\/(list|get)|completion\/complete|logging\/setLevel|elicitation\/create|sampling\/createMessage|roots\/list))$/;

/** Names that an extension's notification cannot have, because a protocol revision defines or reserves them. */
const NOTIFICATIONS =
  /^notifications\/(initialized|cancelled|progress|message|(tools|prompts|resources|roots)\/list_changed|resources\/updated|elicitation\/complete|subscriptions\/.*)$/;

/** Keys of the subscription filter that the protocol defines. */
const KEYS = ["toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions"];

interface Definition {
  readonly id: string;
  readonly settings: Params;
  readonly methods: ReadonlyMap<string, Compiling>;
  readonly notifications: ReadonlyMap<string, Compiling>;
  readonly listen: ReadonlyMap<string, ListenKey>;
}

interface Compiling {
  /** Creates the protocol method for one server. */
  readonly compile: (core: FeatureParts, brought: Brought) => Method;
  /** Handlers that the layers of the method add to the server. */
  readonly also?: readonly Handler[];
}

/** How other handlers bring an extension to a server. */
interface Brought {
  readonly isBrought?: boolean;
  /** Decides whether the extension exists for a caller. `undefined` if it exists for all callers. */
  readonly isShown?: IsShown;
}

type Refuse = (state: string) => TypeError;

function toLife<M extends Schemas, N extends Schemas, L extends Schemas>(
  { id, start, listen }: ExtensionOptions<M, N, L>,
  place: string,
): Life {
  const keys = Object.entries<FormListen>(listen ?? {}).map(([key, { watch, load }]) => {
    const purpose = `load an event for the key ${quote(key)} of ${place}`;
    const loadChecked: TopicParts["load"] = load && (async (topic, ctx, server) => {
      const event = await load(topic, ctx, server);
      return event === undefined ? undefined : toPublished({ ...event, topic }, purpose);
    });
    return [key, { watch, load: loadChecked }] as const;
  });
  return createLife({ id, start, keys: new Map(keys) });
}

function define<M extends Schemas, N extends Schemas, L extends Schemas>(
  { id, settings = {}, methods, notifications, listen, sessions, undeclared }: ExtensionOptions<M, N, L>,
  refuse: Refuse,
): Definition {
  const toMap = <T, R>(of: Readonly<Record<string, T>> | undefined, make: (name: string, item: T) => R) =>
    new Map(Object.entries(of ?? {}).map(([name, item]) => [name, make(name, item)]));
  return {
    id,
    settings: toJson(settings, "settings", refuse),
    methods: toMap<Form, Compiling>(methods, (name, method) => {
      if (!/^[\w.$-]+(\/[\w.$-]+)+$/.test(name)) {
        throw refuse(`${quote(name)} is not a valid method name; use a name such as audit/get`);
      }
      if (METHODS.test(name)) throw refuse(`the method ${name} is reserved; choose another name`);
      return compile({ id, sessions, undeclared }, name, method, refuse);
    }),
    notifications: toMap<Form, Compiling>(notifications, (name, notification) => {
      if (!/^notifications(\/[\w.$-]+)+$/.test(name)) {
        throw refuse(`${quote(name)} is not a valid notification name; use a name such as notifications/audit/seen`);
      }
      if (NOTIFICATIONS.test(name)) {
        throw refuse(`the notification ${name} is reserved; choose another name`);
      }
      return compile({ id, sessions }, name, notification, refuse);
    }),
    listen: toMap<FormListen, ListenKey>(listen, (key, form) => {
      if (!/^[a-z]\w*$/i.test(key)) {
        throw refuse(`${quote(key)} is not a valid listen key; use letters and digits, such as auditIds`);
      }
      if (KEYS.includes(key) || key in {}) {
        throw refuse(`the key ${key} of listen is reserved; choose another name`);
      }
      return toListenKey(id, key, form);
    }),
  };
}

interface Form {
  readonly params?: Schema;
  readonly subject?: string;
  readonly use?: readonly Layer[];
  // The type of `params` is `never`, because each function has its own type of parameters, which its schema validates.
  readonly run: (params: never, ctx: Context, server: ServerHandle | undefined) => unknown;
}

interface FormListen {
  readonly filter: Schema;
  readonly grant?: (value: never, ctx: Context, server: ServerHandle | undefined) => unknown;
  readonly watch?: WatchTopic;
  readonly load?: ExtensionListen["load"];
}

interface Owner {
  readonly id: string;
  readonly sessions?: boolean;
  readonly undeclared?: boolean;
}

function compile(
  { id, sessions, undeclared }: Owner,
  name: string,
  form: Form,
  refuse: Refuse,
): Compiling {
  const { params, subject, run } = form;
  if (typeof run !== "function") throw refuse(`run of ${name} is not a function`);
  const place = `${name} of extension ${quote(id)}`;
  const { use = [], layers } = withLayers(form, { kind: "method", name, key: place });
  if (use.length) throw refuse(`use of ${name} contains a function that is not a layer; use layers only`);
  const schema = params === undefined ? undefined : compileSchema(params, { use: "input", place });
  schema?.json();
  const needs = [`extensions.${id}`];
  const make = (core: FeatureParts, { isBrought, isShown }: Brought): Method => {
    const plain: Runner = {
      run: (call: Call) =>
        attempt({ core, call, subject: name }, async () => {
          const { _meta, ...given } = call.params;
          const checked = await schema?.validate(given) ?? { value: given };
          if (checked.problem !== undefined) {
            throw new McpError(INVALID_PARAMS, `Cannot run ${quote(name)}: ${checked.problem}`);
          }
          await call.host.lives?.until(id);
          // The cast is safe, because the schema validated the value.
          const result = await call.startHandler(() => run(checked.value as never, call, findServer(call, id)));
          if (isObject(result) && result._meta === undefined) return result;
          if (name.startsWith("notifications/")) return {};
          // The extension defines all other members.
          if (isObject(result)) return (await lazyWireCheck.load()).checkResult(call, result, `run of ${quote(id)}`);
          throw new TypeError(`Cannot send the result of ${name}: run did not return an object; return an object`);
        }),
    };
    const runner = layers?.apply(plain) ?? plain;
    const findShown = (call: Call) => {
      if (!undeclared) requireCapabilities(call.client.capabilities, needs, `run ${quote(name)}`);
      return runner;
    };
    const find = isShown
      ? async (call: Call) => {
        if (!await isShown(call)) throw toUnknownMethod(name);
        return findShown(call);
      }
      : findShown;
    return { subject, extension: id, inSessions: sessions, isBrought, find };
  };
  return { compile: make, also: layers?.also };
}

function toListenKey(id: string, key: string, { filter, grant }: FormListen): ListenKey {
  const schema: CompiledSchema = compileSchema(filter, { use: "output", place: `${key} of extension ${quote(id)}` });
  const needs = [`extensions.${id}`];
  return {
    extension: id,
    key,
    async grant(value, call) {
      requireCapabilities(call.client.capabilities, needs, `subscribe to ${quote(key)}`);
      await call.host.lives?.until(id);
      const checked = await schema.validate(value);
      if (checked.problem !== undefined) {
        throw new McpError(INVALID_PARAMS, `Cannot subscribe to ${quote(key)}: ${checked.problem}`);
      }
      const granted = grant
        // The cast is safe, because the schema validated the value.
        ? await call.startHandler(() => grant(checked.value as never, call, findServer(call, id)))
        : checked.value;
      return granted === undefined || granted === null || granted === false ? undefined : toGranted(granted, key);
    },
  };
}

function findServer(call: Call, id: string): ServerHandle | undefined {
  // The cast is safe, because `extension_lives.ts` created the server object.
  return call.host.lives?.find(id) as ServerHandle | undefined;
}

function toGranted(granted: unknown, key: string): Granted {
  const refuse = (state: string) => new TypeError(`Cannot subscribe to ${quote(key)}: ${state}`);
  // Reject a `Set`. In JSON, a `Set` becomes an object, so the client would subscribe to the topic "" instead of the
  // topics in the `Set`.
  const { value } = toJson({ value: granted }, "the result of grant", refuse);
  if (!Array.isArray(value)) return { value, topics: [""] };
  if (value.every((topic) => typeof topic === "string")) return { value, topics: [...new Set(value)] };
  throw refuse("grant returned an array with a value that is not a string; return strings");
}

/** Finds the handlers that bring an extension. The extension exists for callers that may see one of them. */
function toBrought(own: Handler, all: readonly Handler[], core: FeatureParts): Brought {
  const { key, rank } = own[INTERNALS];
  // Others may bring the extension too, but the server has the author's own.
  if (rank !== undefined && !isBroughtByOther(own, all)) return {};
  const isExtension = ({ [INTERNALS]: internals }: Handler) =>
    internals.feature.name === "extensions" && internals.key === key;
  // A group only repeats what its members bring.
  const bringing = all.filter((handler) =>
    handler[INTERNALS].feature.name !== "groups" && withAlso(handler).slice(1).some(isExtension)
  );
  const isBrought = bringing.length > 0;
  if (!isBrought || bringing.some(({ allow }) => !allow)) return { isBrought };
  return {
    isBrought,
    async isShown(call) {
      for (const { allow } of bringing) if (!call.ended && await isAllowed(allow, call, core)) return true;
      return false;
    },
  };
}

function toShownKey(key: ListenKey, { isShown }: Brought): ListenKey {
  if (!isShown) return key;
  return {
    ...key,
    isShown,
    grant: async (value, call) => await isShown(call) ? await key.grant(value, call) : undefined,
  };
}

const extensions: Feature = {
  name: "extensions",
  compile(added, core, served) {
    const handlers = withoutSpares(added, served);
    const all = toDefinitions<Definition>(handlers);
    const brought = new Map(all.map((definition, at) => [definition, toBrought(handlers[at], served, core)]));
    const owners = new Map<string, string>();
    const own = (name: string, id: string) => {
      const other = owners.get(name);
      if (other !== undefined) {
        throw new TypeError(
          `Cannot add extension ${quote(id)}: ${name} already belongs to extension ${
            quote(other)
          }; choose another name`,
        );
      }
      owners.set(name, id);
    };
    const collect = <T, R>(
      pick: (definition: Definition) => ReadonlyMap<string, T>,
      make: (item: T, brought: Brought) => R,
    ) =>
      new Map(all.flatMap((definition) =>
        [...pick(definition)].map(([name, item]) => {
          own(name, definition.id);
          return [name, make(item, brought.get(definition) ?? {})] as const;
        })
      ));
    const capabilities: Compiled["capabilities"] = all.length
      ? { extensions: Object.fromEntries(all.map(({ id, settings }) => [id, settings])) }
      : {};
    const notifications = collect(
      ({ notifications }) => notifications,
      ({ compile }, brought) => compile(core, brought),
    );
    return {
      capabilities,
      methods: Object.fromEntries(collect(({ methods }) => methods, ({ compile }, brought) => compile(core, brought))),
      notify(message, source) {
        const method = notifications.get(message.method);
        if (method && (method.inSessions || !source.hasSession)) return handleNotification(message, method, source);
      },
      listen: collect(({ listen }) => listen, toShownKey),
    };
  },
};

// Runs the handler of a notification as a call, within the limits for calls of its client. Errors for the client are
// dropped, because a notification gets no response.
async function handleNotification(
  { method: name, params = {} }: Notification,
  { extension = "", find, isBrought }: Method,
  { open, client: { version, capabilities }, executor }: NotificationSource,
): Promise<Reply> {
  const text = JSON.stringify(params);
  const weight = toWeight(text, { max: 0, indexes: countIndexes(text) });
  // Metadata is optional in notifications. If the metadata contains capabilities, these capabilities must declare the
  // extension.
  const declared = isObject(capabilities) ? capabilities : { extensions: { [extension]: {} } };
  // `NaN` does not equal any id, so a client cannot cancel the notification.
  const request = { kind: "request" as const, id: NaN, method: name, params, weight };
  const call = open(request, { version, capabilities: declared });
  try {
    // The `allow` of the handlers that bring the extension may take a while.
    const runner = isBrought ? await executor.prepareWith(call, async () => await find(call)) : await find(call);
    await executor.run(call, runner);
  } catch (error) {
    executor.toError(error, call);
  }
  return {};
}

function toHandlerCall({ method, params = {}, reads }: HandlerCall, refuse: Refuse): HandlerCall {
  if (typeof method !== "string") throw refuse("handler.method is not a string");
  return { method, params: toJson(params, "handler.params", refuse), ...reads && { reads } };
}

/** Copies a JSON object. Throws if the value is not an object, or contains a value that JSON cannot represent. */
function toJson(value: Params, name: string, refuse: Refuse): Params {
  if (!isObject(value)) throw refuse(`${name} is not an object`);
  let lost: string | undefined;
  let text;
  try {
    text = JSON.stringify(value, (key, item: unknown) => {
      const isLost = item === undefined || ["function", "symbol"].includes(typeof item) ||
        typeof item === "number" && !Number.isFinite(item) || isObject(item) && !isPlain(item);
      if (isLost) lost ??= key;
      return item;
    });
  } catch (error) {
    if (lost === undefined) throw refuse(`${name} is not JSON (${error})`);
  }
  if (lost !== undefined || text === undefined) throw refuse(`${quote(lost)} in ${name} is not JSON`);
  return JSON.parse(text);
}
