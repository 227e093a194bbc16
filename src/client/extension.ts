/**
 * Client extensions: their settings, and the result types and notifications that they define.
 *
 * @see specification/2026-07-28/basic (Extensions)
 */
import { McpError } from "../core/protocol/errors.ts";
import { isObject, type Params, type Result } from "../core/protocol/jsonrpc.ts";
import type { ClientCapabilities } from "../core/protocol/types.ts";
import { checkOptions, type KnownOptions, show, toPlace } from "../core/known_options.ts";
import type { Checked, Infer, Schema, Schemas } from "../core/schema/schema.ts";
import { compileSchema } from "../core/schema/schema_compiler.ts";
import type { Notification } from "./message.ts";
import type { ServerRequest } from "./answer_options.ts";
import type { Progress, RequestOptions } from "./rpc.ts";
import type { Subscription, SubscriptionFilter } from "./subscription.ts";

/** A result type that an extension defines. */
export interface ExtensionResult<R extends Schema = Schema> {
  /** Schema of the result, without `_meta`. */
  readonly schema: R;
  /**
   * Converts the result to the final result, for example by polling. If `finish` throws, the request rejects with the
   * error.
   */
  readonly finish: (result: Infer<R>, call: PendingRequest) => Result | Promise<Result>;
}

/** A request whose result an extension finishes. */
export interface PendingRequest {
  /** Method of the request. */
  readonly method: string;
  /** Parameters of the request. */
  readonly params: Params;
  /** Aborts when the request is cancelled or times out. The caller then no longer waits for the result. */
  readonly signal: AbortSignal;
  /**
   * Aborts when the client closes, or when the server ends the connection. Once `closed` has aborted, all requests
   * fail.
   */
  readonly closed: AbortSignal;
  /**
   * Whether the caller passed the result with the option `resume`. Such a result may come from a request of another
   * process.
   */
  readonly isResumed: boolean;
  /** The caller's progress callback. `undefined` if the caller did not request progress. */
  readonly onProgress?: (progress: Progress) => void;
  /**
   * Sends another request to the server, with the headers and capabilities of this request. The new request is
   * cancelled together with this request, unless you pass another `signal`. If `signal` has aborted when the client
   * closes, the client waits up to one second for `finish`, so that `finish` can ask the server to cancel the work.
   */
  request(method: string, params?: Params, options?: RequestOptions): Promise<Result>;
  /** Answers an elicitation, sampling or roots request with the callbacks of this request or of the client. */
  answer(request: ServerRequest, options?: {
    /**
     * The signal that the callback receives. Abort the signal to withdraw the server's request. Defaults to the signal
     * of the client's request.
     */
    readonly signal: AbortSignal;
  }): Promise<unknown>;
  /** Subscribes to changes. The subscription ends when `signal` aborts. */
  subscribe(filter: SubscriptionFilter): Promise<Subscription>;
}

/** A server notification that an extension defines. */
export interface ReceivedNotification<P extends Schema = Schema> {
  /**
   * Schema of the parameters, without `_meta`. If the parameters do not match, the error is passed to `onWarning`.
   * Defaults to a schema that accepts any object.
   */
  readonly params?: P;
  /**
   * Called with the parameters of each notification, including notifications of subscriptions and requests. Errors are
   * passed to `onWarning`.
   */
  readonly receive: (params: Schema extends P ? Params : Infer<P>) => void | Promise<void>;
}

/** Options of {@linkcode clientExtension}. Only `id` is required. */
export interface ClientExtensionOptions<R extends Schemas, N extends Schemas> {
  /** Identifier of the extension, such as `com.example/audit`. */
  readonly id: string;
  /** Settings to declare to servers, as a JSON object. Defaults to `{}`. */
  readonly settings?: Params;
  /** Result types, by their `resultType`, such as `task`. */
  readonly results?: { readonly [K in keyof R]: ExtensionResult<R[K]> };
  /** Notifications from the server, by method. */
  readonly notifications?: { readonly [K in keyof N]: ReceivedNotification<N[K]> };
  /**
   * The name of the parameter to repeat in the HTTP header `Mcp-Name`, by method, such as `{ "audit/get": "auditId" }`.
   */
  readonly subjects?: Readonly<Record<string, string>>;
}

const RESULT: KnownOptions<keyof ExtensionResult> = { names: { schema: true, finish: "function" } };

const NOTIFICATION: KnownOptions<keyof ReceivedNotification> = { names: { params: true, receive: "function" } };

const OPTIONS: KnownOptions<keyof ClientExtensionOptions<Record<never, Schema>, Record<never, Schema>>> = {
  names: {
    id: true,
    settings: true,
    results: { each: RESULT },
    notifications: { each: NOTIFICATION },
    subjects: true,
  },
};

/** A client extension. Pass it to `connect` in `extensions`. */
export interface ClientExtension {
  /** Identifier, such as `com.example/audit`. */
  readonly id: string;
  /** Settings to declare to servers. */
  readonly settings: Params;
  /** The name of the parameter to repeat in the HTTP header `Mcp-Name`, by method. */
  readonly subjects: Readonly<Record<string, string>>;
  /** Functions that convert results to final results, by result type. */
  readonly results: ReadonlyMap<string, (result: Result, call: PendingRequest) => Promise<Result>>;
  /**
   * Functions that receive notifications, by method. A function rejects if the parameters do not match the schema, or
   * if `receive` throws.
   */
  readonly notifications: ReadonlyMap<string, (params: Params) => Promise<void>>;
}

/**
 * Creates an extension for a client.
 *
 * ```ts
 * import { clientExtension } from "@x/mcp/client";
 * import { z } from "zod";
 *
 * const tickets = clientExtension({
 *   id: "com.example/tickets",
 *   results: {
 *     ticket: {
 *       schema: z.object({ ticketId: z.string() }),
 *       finish: ({ ticketId }, { request }) => request("tickets/redeem", { ticketId }),
 *     },
 *   },
 * });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid, the id has no prefix, or a schema is invalid.
 */
export function clientExtension<
  const R extends Schemas = Record<never, Schema>,
  const N extends Schemas = Record<never, Schema>,
>(options: ClientExtensionOptions<R, N>): ClientExtension {
  checkOptions(`make ${toPlace("extension", options, "id")}`, options, OPTIONS);
  const { id, settings = {}, results, notifications, subjects = {} } = options;
  if (typeof id !== "string" || !/^[^/\s]+\/[^/\s]+$/.test(id)) {
    throw new TypeError(
      `Cannot make the extension ${show(id)}: the id is not valid; use a prefix and a name, such as com.example/audit`,
    );
  }
  const compile = (schema: Schema, name: string) =>
    compileSchema(schema, { use: "output", place: `${name} of extension ${JSON.stringify(id)}` });
  const finishers = Object.entries<FormResult>(results ?? {}).map(([type, { schema, finish }]) => {
    const compiled = compile(schema, type);
    const read = async (result: Result, call: PendingRequest) => {
      const { _meta, ...given } = result;
      const checked = await compiled.validate(given);
      if (checked.problem !== undefined) {
        throw new McpError(0, `Cannot use the ${type} result of ${call.method}: ${checked.problem}`, undefined, {});
      }
      // The cast is safe, because the schema has validated the value.
      const final: unknown = await finish(checked.value as never, call);
      if (isObject(final)) return final;
      throw new TypeError(
        `Cannot use the ${type} result of ${call.method}: its finish() did not return an object; return a result object`,
      );
    };
    return [type, read] as const;
  });
  const receivers = Object.entries<FormNotification>(notifications ?? {}).map(([method, { params, receive }]) => {
    const compiled = params === undefined ? undefined : compile(params, method);
    const take = async ({ _meta, ...given }: Params) => {
      const checked: Checked = await compiled?.validate(given) ?? { value: given };
      if (checked.problem !== undefined) throw new Error(`Cannot read ${method}: ${checked.problem}`);
      // The cast is safe, because the schema has validated the value.
      await receive(checked.value as never);
    };
    return [method, take] as const;
  });
  return { id, settings, subjects, results: new Map(finishers), notifications: new Map(receivers) };
}

interface FormResult {
  readonly schema: Schema;
  readonly finish: (result: never, call: PendingRequest) => unknown;
}

interface FormNotification {
  readonly params?: Schema;
  readonly receive: (params: never) => void | Promise<void>;
}

export function declareExtensions(
  capabilities: ClientCapabilities,
  extensions: readonly ClientExtension[] = [],
): ClientCapabilities {
  if (!extensions.length) return capabilities;
  const declared = Object.fromEntries(extensions.map(({ id, settings }) => [id, settings]));
  return { ...capabilities, extensions: { ...capabilities.extensions, ...declared } };
}

/** Returns a function that passes each notification to the extensions that receive it. */
export function toReceiver(
  extensions: readonly ClientExtension[],
  onError: (error: unknown) => void,
): (notification: Notification) => void {
  return ({ method, params }) => {
    for (const { notifications } of extensions) notifications.get(method)?.(params).catch(onError);
  };
}
