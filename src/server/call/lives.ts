/**
 * The interface of the extensions that start and stop with the server.
 */
import type { Context } from "./context.ts";

/** A server's extensions that start and stop with the server, or that publish notifications. */
export interface Lives {
  /**
   * Starts all extensions, and each extension that is added later. Reports errors to the observer. After this call,
   * `stopUnlessStarted` does nothing, unless `isKept` is `false`.
   */
  start(isKept?: boolean): void;
  /** Starts all extensions. Rejects if an extension cannot be started. */
  ready(): Promise<void>;
  /**
   * Waits until an extension has started. Starts the extension if it is not running, even after a failed start. Rejects
   * if the extension cannot be started.
   */
  until(id: string): Promise<void> | undefined;
  /**
   * Returns the object that the server passed to the extension's `start` function, or `undefined` if the extension has
   * not started.
   */
  find(id: string): object | undefined;
  /** Calls `deliver` for each notification about the wanted topics. Returns a function that ends the subscription. */
  subscribe(id: string, wanted: WantedTopics, deliver: (published: Published) => void): () => void;
  /** Stops all extensions that no request has started. The next request starts the extensions again. */
  stopUnlessStarted(): Promise<void>;
  /** Aborts the signals of all extensions, to announce that the server is closing. */
  stop(): void;
  /** Stops all extensions permanently. Waits a limited time for each extension. */
  close(): Promise<void>;
}

/** The topics that a subscription requests for one of an extension's keys. */
export interface WantedTopics {
  readonly key: string;
  readonly topics: readonly string[];
  /** The context of the subscription. */
  readonly ctx: Context;
}

/** A call to a handler. */
export interface HandlerCall {
  /** Method, such as `tools/call`. */
  readonly method: string;
  /** The parameters that name the handler, such as `{ name: "add" }`. Defaults to `{}`. */
  readonly params?: { readonly [name: string]: unknown };
  /**
   * URIs of the resources that the handler has read with `ctx.readResource` for its caller, if not every caller may read
   * them. The caller needs the rights to these resources too. An entry that begins with `+` is the JSON of the method and
   * parameters of another handler that the handler has called, such as `+["tools/call",{"name":"add"}]`. An entry that
   * begins with `=` is the hash of the only caller for whom output guards have checked what the handler returns. If there
   * are too many entries to check the rights of another caller, the hash of the only caller who may use what the handler
   * returns.
   */
  readonly reads?: readonly string[] | string;
}

/** The resources that a handler has read for its caller. */
export type Reads = NonNullable<HandlerCall["reads"]>;

/** A read, and the hash of the caller that reads. */
export interface Read {
  readonly uri: string;
  readonly caller: string;
  /** Whether the entry stands for the output guards around the output of a call, instead of a resource. */
  readonly isOutput?: boolean;
}

/** A notification for the subscribers to a topic. */
export interface Published {
  readonly topic: string;
  readonly method: string;
  readonly params: { readonly [name: string]: unknown };
  /** The handler to which the notification belongs. Only subscribers that may call the handler are notified. */
  readonly handler?: HandlerCall;
}
