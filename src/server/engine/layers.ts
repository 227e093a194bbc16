/**
 * The interface of layers, which stand around handlers. `layer()` from `@x/mcp/layers` creates layers.
 *
 * The type parameters have `in` and `out`, because without them the compiler would compare all steps to find the variance,
 * and make a quarter more type instantiations for a file with one tool and one layer.
 */
import type { Result } from "../../core/protocol/jsonrpc.ts";
import type { Meta, ToolAnnotations } from "../../core/protocol/types.ts";
import type { Allow, Context } from "../call/context.ts";
import { INTERNALS } from "../../core/internals.ts";
import type { ListedPrompt, ListedResource, ListedTemplate, ListedTool } from "../../core/protocol/listed.ts";
import type { HandlerCall } from "../call/handler_call.ts";
import type { Argument, Member } from "./added.ts";
import type { Middleware } from "../call/middleware.ts";
import type { Requirement } from "../call/question.ts";
import type { NoServices } from "../call/service.ts";
import type { Next, WrappedCall } from "./extension.ts";
import type { Handler, HandlerLayers } from "../visibility/feature.ts";
import type { ServerHandle } from "./server_handle.ts";
import type { OutputPart } from "../visibility/guards.ts";

export type { OutputPart };

/** The handler that a layer stands around. */
export interface HandlerInfo {
  /**
   * Kind of the handler. `server` if the layer is in the `use` option of a server, and stands around every call.
   * `completion` for the completion of a prompt or resource template that has the layer. `method` for a method of an
   * extension.
   */
  readonly kind: "tool" | "prompt" | "resource" | "completion" | "method" | "server";
  /**
   * Name of a tool, prompt, method or server. URI of a resource, URI template, scheme with a colon, or `provider` and the
   * name of a provider without a scheme.
   */
  readonly name: string;
  /** Kind and name, such as `tool "pay"`, unique in the server, for messages and as a key per handler. */
  readonly key: string;
  /** Hints about a tool's behavior. */
  readonly annotations?: ToolAnnotations;
  /** Whether the results of the tool must match an output schema. */
  readonly hasOutput?: boolean;
  /** Decides who may see and call the tool. Use it for handlers that the layer adds for the callers of the tool. */
  readonly allow?: Allow;
  /** Scopes that a caller of the tool must have. */
  readonly scopes?: readonly string[];
}

/**
 * Stands around handlers. Pass the layer in the `use` option of a tool, resource, prompt, group or server. Handlers with
 * the same layer share its state.
 *
 * A layer is a function, so that TypeScript infers the parameters of its callbacks from the `input` and `services` of
 * the handler. `Input` is the type of the validated input, `Services` the type of `ctx.services`, and `Shared` the type
 * of `ctx.services` without the services that live for one call.
 */
export interface Layer<in Input = unknown, in Services = NoServices, in Shared = NoServices> {
  /** Returns the steps of the layer around one handler. Throws if the handler cannot have the layer. */
  (handler: HandlerInfo): Steps<Input, Services, never, Shared>;
  /**
   * Internal state that the handler uses.
   *
   * @ignore
   */
  readonly [INTERNALS]: LayerInternals;
}

/**
 * A middleware in `use`. TypeScript 7 sorts a union by the names of its members, and explains why a function does not fit
 * the first one. With this name before `Layer`, the error for a middleware without `return` is about middleware.
 *
 * @ignore
 */
export interface CallMiddleware {
  (...given: Parameters<Middleware>): ReturnType<Middleware>;
}

/** An item of `use`: a middleware function or a layer. */
export type UseItem<Input = unknown, Services = NoServices, Shared = NoServices> =
  | CallMiddleware
  | Layer<Input, Services, Shared>;

/**
 * The steps of a layer. The step decides when a function runs, not the order of the layers in `use`. Of several layers
 * with the same step, the first is the outermost, and the layers of the server and of a group are outside of the layers
 * of a handler.
 */
export interface Steps<in Input = unknown, in Services = NoServices, in out State = never, in Shared = NoServices> {
  /** Name of the layer for messages, such as `cache`. */
  readonly name: string;
  /**
   * Starts the layer on a server, with the first request or by `server.ready()`. The returned value is the `state` that
   * the steps of all handlers get. When the server closes, it disposes the value with `Symbol.asyncDispose` or
   * `Symbol.dispose`. If the server's path has parameters, `start` is called for each concrete path; use `server.slot`
   * for a value that all paths share. Declare the parameter even if `start` does not use it, as in
   * `start: (_server) => new Map()`: without the parameter, TypeScript infers the type `undefined` for `state`.
   */
  readonly start?: (server: ServerHandle) => State | Promise<State>;
  /**
   * Timeout of the handler and its middleware in milliseconds. `Infinity` means no limit. Of several layers, the
   * shortest timeout applies. Defaults to the server's `limits.calls.timeoutMs`.
   */
  readonly timeoutMs?: number;
  /**
   * Decides whether a call may run, after the checks of `allow`, scopes and `requires`, and before the response starts.
   * Throw `McpError.rateLimited` or `McpError.busy` to refuse the call with status 429 or 503 over HTTP. Cannot send
   * requests to the client. May take at most `limits.calls.timeoutMs`. Also runs for a call that a
   * handler makes, but not for a call that the server makes.
   */
  readonly limit?: (call: LayerCall<State>) => void | Promise<void>;
  /**
   * Runs around the whole call when the call has its slot of `limits.calls.running`, outside of `around`. Can wait
   * before it calls `next`, which starts the call. Time before `next` counts towards the timeout. `next` can settle
   * before the handler has ended, so release what the handler uses when `call.ended` resolves.
   */
  readonly enter?: (call: LayerEntry<State>, next: () => Promise<Result>) => Promise<Result>;
  /**
   * Runs around the whole call, before the input is validated. In the `use` option of a server, the `around` that the
   * layer returns for the kind `server` runs for every method. If there is one, the `around` that it returns for the
   * server's handlers is not used.
   */
  readonly around?: (ctx: Context, next: () => Promise<Result>, state: State) => Promise<Result>;
  /** The methods for which `around` of a server runs, such as `["tools/call"]`. Defaults to every method. */
  readonly methods?: readonly string[];
  /**
   * Runs with the validated input. Returns a changed input, or `undefined` to leave the input unchanged. Throw a
   * `ToolError` to refuse the call. Services that live for one call do not exist yet.
   */
  readonly onInput?: (input: Input, ctx: Context<Shared>, state: State) => unknown;
  /** Runs after `onInput`, around the rest of the call. */
  readonly inside?: (ctx: Context, next: () => Promise<Result>, state: State) => Promise<Result>;
  /**
   * Runs after `inside`. Returns a key under which the result of the call is kept and found, or `undefined` for a call
   * without a key. If the same caller repeats a call with the same key and the same input, the repeated call gets the
   * result of the first call. `ctx.services` has no services that live for one call. Only for tools, and only for one
   * layer of a tool.
   */
  readonly key?: (
    input: Input,
    ctx: Context<Shared>,
    state: State,
  ) => string | undefined | Promise<string | undefined>;
  /**
   * Whether the next call with the `key` runs the handler again if the instance that ran the handler ended before it
   * kept a result. Defaults to `false`: such a call fails with code -31409.
   */
  readonly rerun?: boolean;
  /** Milliseconds for which the `key` is remembered after its call. At most one year. Defaults to 600,000. */
  readonly ttlMs?: number;
  /**
   * Runs around the tool's `run` function, with the services. Calls `next` for the value that the function returns, and
   * returns this value or another value. `next` can be called several times. Only for tools.
   */
  readonly run?: (run: LayerRun<Input, Services, State>, next: () => unknown) => unknown;
  /**
   * The place of `run` among the `run` steps of other layers, from the outermost: `ask` for consent, `reuse` of an
   * earlier result, `repeat` after a failure, `break` of a circuit. Without `rank`, `run` is inside of all of these.
   */
  readonly rank?: "ask" | "reuse" | "repeat" | "break";
  /**
   * Gets everything that the client receives from the handler: the encoded value, errors, questions, log messages and
   * progress messages. Returns a changed value, or `undefined` to leave the value unchanged.
   */
  readonly onOutput?: (output: unknown, ctx: Context<Services>, part: OutputPart, state: State) => unknown;
  /**
   * Gets the finished result of the handler, before the server's middleware. Returns another result, or `undefined` to
   * leave the result unchanged. Of several layers, the innermost gets the result first.
   */
  readonly result?: (result: Result, call: LayerResult<State>) => Result | undefined | Promise<Result | undefined>;
  /**
   * An argument that the layer adds to tools. The steps `limit`, `enter`, `run` and `result` read its value with
   * `given(token)`. A tool whose input schema has no place for it stays as it is, and `observer.fault` gets the reason.
   * For other handlers than tools, the server ignores it, and the steps `key` and `run` of the layer.
   */
  readonly argument?: Argument;
  /**
   * A member that the layer adds to the structured content of tools. The step `result` sets it with `set(token, value)`.
   * For other handlers than tools, the server ignores it, and the steps `key` and `run` of the layer.
   */
  readonly member?: Member;
  /** Metadata for the handler's list entry. The handler's `_meta` takes precedence. */
  readonly list?: Meta;
  /** Capabilities that the client must have declared, such as `["elicitation"]`. */
  readonly requires?: readonly Requirement[];
  /** Handlers to add with the handler. The options of its groups and the layers of the server also apply to them. */
  readonly handlers?: readonly Handler[];
  /**
   * Checks the layer against the server's handlers. Called whenever the handlers change. Returns a description of a
   * problem, such as `no resource "ui://chart"`. In that case, the server throws a `TypeError` with the description and
   * the handler's name.
   */
  readonly verify?: (server: {
    /** The handler that has the layer. */
    readonly handler: HandlerInfo;
    /** Whether a handler exists. `key` is the name of a tool or prompt, a resource's URI, or an extension's id. */
    has(kind: "tool" | "resource" | "prompt" | "extension", key: string): boolean;
  }) => string | undefined;
  /** Returns a warning with a remedy that `mcp check` prints, or `undefined` if there is no warning. */
  readonly warn?: (handler: {
    /** The handler's `run` or `read` function. */
    readonly run: unknown;
  }) => string | undefined;
}

/** The steps of a layer that an extension creates. All steps are optional. */
export interface ExtensionSteps extends Pick<Steps, "list" | "verify" | "warn"> {
  /**
   * Runs around the whole call, outside of the middleware of the server and of all other layers. Calls `next` to run the
   * handler, and returns the handler's result or another result.
   */
  readonly around?: (call: WrappedCall, next: Next) => Result | Promise<Result>;
  /**
   * Whether the client must have declared the extension. For any other client, the call fails with code -32021 (HTTP
   * 400), and the handler does not run. Defaults to `false`.
   */
  readonly required?: boolean;
  /**
   * Whether the handler adds the extension to the server. If `false`, the author must add the extension to the server's
   * `handlers`. `true` requires an extension without options other than `settings`. Defaults to `false`.
   */
  readonly registers?: boolean;
}

/** One call of a handler in the step `limit` of a layer. The methods can be destructured. */
export interface LayerCall<out State = unknown> {
  /** The context of the call, without services. */
  readonly ctx: Context<never>;
  /** The value that `start` returned. */
  readonly state: State;
  /** The parts of the server that a layer can use without `start`. */
  readonly server: Pick<ServerHandle, "clock" | "report" | "slot">;
  /**
   * Key of the client, which is equal in all of its calls: a text that begins with `principal ` for a principal, a text
   * for an IP address (IPv6: the /56 network), otherwise an object for the connection.
   */
  readonly client: string | object;
  /** Whether the caller has all scopes without a principal, because the user of the client started the server. */
  readonly hasAllScopes: boolean;
  /** Path of the server's endpoint. `undefined` for an endpoint without a path. */
  readonly path?: string;
  /**
   * The entry of the tool, prompt, resource or resource template in this server's lists, with its description and schemas.
   * Frozen. `undefined` for other handlers.
   */
  readonly entry?: ListedTool | ListedPrompt | ListedResource | ListedTemplate;
  /** The handler that makes the call, such as with `ctx.callTool`. `undefined` for a call of the client. */
  readonly outer?: HandlerCall;
  /** Whether the server makes the call, such as for a task that it takes over from another instance. */
  readonly isInternal: boolean;
  /** Whether the call was cancelled, or has its result. */
  readonly hasEnded: boolean;
  /** Reports to the observer that the call has reached a limit of the layer, such as `handler.circuit`. */
  readonly reachLimit: (name: string) => void;
  /**
   * Returns the value of an argument that a layer of the tool adds. Returns `undefined` if the call does not have the
   * argument, and for a tool that could not get the argument. In `limit` and `enter`, also for an invalid value: the call
   * is refused with its other arguments.
   *
   * @throws {TypeError} if no layer of the handler adds the argument.
   */
  readonly given: <T>(token: Argument<T>) => T | undefined;
  /**
   * Notes a text about the call, such as what a client says about its purpose. Audit records, spans and the events of
   * observers contain it as `notes[name]`. In `limit`, also the `start` event. A text of more than 1,024 characters is
   * cut. If the layer's argument has the same name, audit records leave it out of `arguments`.
   *
   * @throws {TypeError} if `name` is not 1 to 64 letters, digits, `_`, `-` and `.`, or `text` is not a text.
   */
  readonly note: (name: string, text: string) => void;
}

/** One call of a handler in the step `result` of a layer. The methods can be destructured. */
export interface LayerResult<out State = unknown> extends LayerCall<State> {
  /**
   * Sets a member of the structured content, and of its text copy, in the result that the step returns. Returns `false`
   * if there is no place for the member: the result is an error, or its structured content is not an object or has a
   * member of this name, or the tool could not get the member. An invalid value is a fault, and the call fails.
   *
   * @throws {TypeError} if the layer does not add the member.
   */
  readonly set: <T>(token: Member<T>, value: T) => boolean;
}

/** One call of a handler in the step `enter` of a layer. The methods can be destructured. */
export interface LayerEntry<out State = unknown> extends LayerCall<State> {
  /**
   * Resolves when the handler has ended and `next` has settled, or if the handler does not run. This may be after the
   * response. After a timeout, resolves immediately. After any other cancellation, and if middleware has responded
   * early, a handler that continues counts as ended after the timeout of the call. Never rejects.
   */
  readonly ended: Promise<void>;
}

/** One run of a tool's function within the `run` step of a layer. The methods can be destructured. */
export interface LayerRun<out Input = unknown, out Services = NoServices, out State = unknown>
  extends Omit<LayerCall<State>, "ctx"> {
  /** The input, after validation and guards. */
  readonly input: Input;
  /** The context of the tool. */
  readonly ctx: Context<Services>;
  /** What the call would change, as `plan` of `planned()` has returned it. `undefined` for a tool without plans. */
  readonly plan?: unknown;
  /** Timeout of the call in milliseconds. The time in which the client answers a question does not count. */
  readonly timeoutMs: number;
  /**
   * Whether the function has sent a request to the client or used `ctx.once`, so that it may run again, or its services
   * or middleware have asked the client. Questions for consent do not count.
   */
  readonly usesRounds: boolean;
  /** URIs of the resources that the function has read, if not every caller may read them. A text if there are too many. */
  readonly reads: readonly string[] | string;
  /**
   * Counts bytes that the layer keeps for the client against `limits.memory` and against a limit of the layer, until
   * they expire or `end()` is called. Returns `undefined` if there is no room.
   */
  readonly keep: (bytes: number, options: KeepOptions) => KeptValue | undefined;
}

/** Options of {@linkcode LayerRun.keep}. */
export interface KeepOptions {
  /** Milliseconds after which the bytes are released. */
  readonly ttlMs: number;
  /** Releases the value when the bytes expire or another value needs the room. Returns whether there was a value. */
  readonly drop: () => boolean;
  /** The limit of the layer. The least recently used values are dropped if the limit is reached. */
  readonly limit: {
    /** Distinguishes the limit from the limits of other layers. The observer names all of them `handler.cacheBytes`. */
    readonly of: string;
    /** Maximum number of bytes of all clients. A client can use at most a quarter. */
    readonly bytes: number;
    /** Minimum number of bytes that count for a value, to limit the number of values. */
    readonly least: number;
  };
}

/** A value whose bytes are counted. */
export interface KeptValue {
  /** Marks the value as the most recently used value. `ctx` is the context of the call that uses it. */
  use(ctx: Context<unknown>): void;
  /** Releases the bytes. */
  end(): void;
}

/**
 * Internal state of a layer. Only `layer()` refers to the code that sorts layers, so that a server without layers does
 * not contain the code.
 *
 * @internal
 */
export interface LayerInternals {
  /** Returns the options of a handler with the steps of all layers in `use`. */
  apply<O extends LayeredOptions>(options: O, handler: LayeredHandler): Unlayered<O>;
  /** The steps that the layer returned for the server. Set if the layer is in the `use` option of the server. */
  readonly ofServer?: Steps<never, never, never, never>;
  /** Registers the layer on the server of a handler. Set when a handler first has the layer, if the layer has `start`. */
  starter?: LayerStarter;
  /** Set for a layer of an extension. */
  readonly extension?: ExtensionPart;
  /** Whether the keys of the step `key` are ids of plans. */
  readonly isPlanned?: boolean;
}

/**
 * The parts of an extension's layer that other layers do not have.
 *
 * @internal
 */
export interface ExtensionPart extends Pick<ExtensionSteps, "around" | "required"> {
  /** Identifier of the extension, such as `com.example/audit`. */
  readonly id: string;
  /** Whether clients with sessions cannot use the extension, because their revisions lack its methods. */
  readonly lacksSessions: boolean;
  /** Creates the extension that the handler at `place` registers. `undefined` if the handler registers no extension. */
  readonly register?: (place: string) => Handler;
}

/**
 * Starts a layer with the server.
 *
 * @internal
 */
export interface LayerStarter {
  /** Identifies the layer on a server. Named after the layer's first handler. */
  readonly id: string;
  /** The values that `start` returned, by the handle of the server, because each path of a server has its own. */
  readonly states: WeakMap<object, unknown>;
  /** Creates an internal handler that starts the layer. The handler at `place` registers it. */
  readonly register: (place: string) => Handler;
}

export interface LayeredOptions {
  readonly use?: readonly AnyUseItem[];
}

interface AnyUseItem {
  (...given: never[]): unknown;
  /** Set for a layer. Another copy of this library may have created the layer. */
  readonly [INTERNALS]?: LayerInternals;
}

/** The handler whose options have layers. The key defaults to the kind and the name. */
export type LayeredHandler = Omit<HandlerInfo, "key"> & { readonly key?: string };

/**
 * Returns the items that also stand around handlers which other layers add. Layers of extensions are for handlers of the
 * author, because some of them, such as tasks, cannot stand around a resource.
 */
export function withoutExtensions<Item extends AnyUseItem>(use: readonly Item[]): readonly Item[] {
  return use.filter((item) => !item[INTERNALS]?.extension);
}

/** Options whose `use` contains only middleware. */
export type Unlayered<O> = O & {
  readonly use?: readonly Middleware[];
  /** Set for a handler with layers. */
  readonly layers?: HandlerLayers;
  /** Set if a server has layers with steps around single handlers. */
  readonly [INTERNALS]?: LayeredHandlers;
};

export interface LayeredHandlers {
  /** The internal handlers that start the layers, and the handlers that the layers add. */
  readonly first: readonly Handler[];
  /** The handlers within the layers, keyed by the handlers that the author has created. */
  readonly served: Pick<WeakMap<Handler, Handler>, "get">;
  /** The handlers that the author has created, keyed by the handlers within the layers. */
  readonly own: Pick<WeakMap<Handler, Handler>, "get">;
  /** Returns a handler within the layers of the server. */
  serve(handler: Handler): Handler;
}

/**
 * Returns the options themselves if there is no layer.
 *
 * @throws {TypeError} if a layer has a step that its kind of handler does not have.
 */
export function withLayers<O extends LayeredOptions>(options: O, handler: LayeredHandler): Unlayered<O> {
  // The cast is safe, because there is no layer in `use` if no layer is found.
  return options.use?.find((item) => item[INTERNALS])?.[INTERNALS]?.apply(options, handler) ?? options as Unlayered<O>; // See above.
}
