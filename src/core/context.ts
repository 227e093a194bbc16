/**
 * What a handler is given beside its input.
 *
 * @module
 */
import type { ClientCapabilities, Implementation, LogLevel, Meta, Root } from "../protocol/types.ts";
import type { SamplingRequest, SamplingResult } from "../protocol/types.ts";
import type { Infer, Schema } from "../schema/schema.ts";
import type { Log } from "./log.ts";

/** Who is asking, as far as something in front of the library found out. */
export interface Principal {
  /** Stable and unique: sessions and the state of questions are bound to it. */
  readonly id: string;
  /** What the caller may do. */
  readonly scopes?: readonly string[];
  /** Whatever else the code in front wants handlers to know. */
  readonly [key: string]: unknown;
}

/** What the client told about itself. It is not verified: show it, log it, do not decide by it. */
export interface ClientFacts {
  /** The protocol version of this call. */
  readonly version: string;
  /** Its name and version, if it said so. */
  readonly info?: Implementation;
  /** What it can do. */
  readonly capabilities: ClientCapabilities;
  /** Least severe log message the client wants; without it, none is sent. */
  readonly logLevel?: LogLevel;
}

/** A form for the user. */
export interface ElicitOptions<S extends Schema = Schema> {
  /** What the user reads above the form. */
  readonly message: string;
  /** A flat object of strings, numbers, booleans and choices. */
  readonly schema: S;
}

/** A page for the user to visit, for what must not pass through the client (passwords, payments). */
export interface ElicitUrlOptions {
  /** Why the user should go there. */
  readonly message: string;
  /** The page. */
  readonly url: string;
}

/** What the user did with a form. */
export type Elicited<T> =
  | { readonly action: "accept"; readonly content: T }
  | { readonly action: "decline" | "cancel"; readonly content?: undefined };

/** The lists that a server has: the kinds of handlers. */
export type ListName = "tools" | "resources" | "prompts";

/** Notifies clients of changes. Changes that follow each other within 10 milliseconds are announced once. */
export interface ChangeNotifier {
  /** Notifies the clients that have subscribed to this resource, and may see it, that it has changed. */
  resourceUpdated(uri: string): void;
  /**
   * Notifies clients that a list has changed, for example because `allow` decides differently from now on. Adding and
   * removing handlers does this by itself. Does nothing if the server has never had handlers of this kind, because its
   * clients know of no such list.
   *
   * @throws {TypeError} if there is no list of this name.
   */
  listChanged(list: ListName): void;
}

/** How far a call has come. */
export interface ProgressOptions {
  /** The value that means done, if it is known. */
  readonly total?: number;
  /** A few words for people. */
  readonly message?: string;
}

/**
 * What a handler is given beside its input: who asks, and what can be said to the client before the result.
 *
 * Nothing here fails because the client went away or the call is over: such words are dropped.
 */
export interface Context {
  /** What the client told about itself. */
  readonly client: ClientFacts;
  /** Who is asking, if the server is told (see `fetch`). */
  readonly principal?: Principal;
  /** Notifies clients of changes, as the methods of the same names of the server do. */
  readonly server: ChangeNotifier;
  /** The method that is being answered, such as `tools/call`. */
  readonly method: string;
  /** The parameters as the client sent them. */
  readonly params: Meta;
  /** The `_meta` of the request. */
  readonly meta: Meta;
  /** The HTTP request, if the call came by one. Its body has been read. */
  readonly http?: Request;
  /** Aborts when the call is cancelled, its client is gone (where that means cancel), or its time is over. */
  readonly signal: AbortSignal;
  /**
   * Tells how far the call has come, if the client asked for it. A value that does not grow is dropped; values that
   * come faster than the client reads are merged. Settles when there is room for more.
   *
   * @see specification/2026-07-28/basic/patterns/progress
   */
  progress(progress: number, options?: ProgressOptions): Promise<void>;
  /**
   * Sends log messages: `ctx.log.info(data, { logger: "db" })`. Messages of a level that the client does not want are
   * dropped. Each method returns a promise that settles when there is room for more. A handler that does not await it,
   * and gets far ahead of its client, loses messages.
   *
   * @see specification/2026-07-28/server/utilities/logging
   */
  readonly log: Log;
  /**
   * Asks the user to fill in a form. `key` names the question within this call; the same key and form is the same
   * question. The handler may be run again from the top when the answer comes, so irreversible work goes after the
   * last question.
   *
   * @throws {McpError} -32021 if the client has no forms.
   * @see specification/2026-07-28/client/elicitation
   */
  elicit<S extends Schema>(key: string, options: ElicitOptions<S>): Promise<Elicited<Infer<S>>>;
  /** Asks the user to visit a page. @throws {McpError} -32021 if the client cannot open pages. */
  elicitUrl(key: string, options: ElicitUrlOptions): Promise<{ readonly action: "accept" | "decline" | "cancel" }>;
  /** Asks the client's model. @throws {McpError} -32021 if the client has none. */
  sample(key: string, request: SamplingRequest): Promise<SamplingResult>;
  /** Asks which directories and files the client offers. @throws {McpError} -32021 if it offers none. */
  roots(): Promise<readonly Root[]>;
  /**
   * Makes a JSON value once per call, even if the handler is run again after a question: at least once, not exactly
   * once. The value travels with the client, sealed.
   */
  once<T>(key: string, make: () => T | Promise<T>): Promise<T>;
  /**
   * Ends the connection but not the call, where the client can fetch the rest later; elsewhere it does nothing.
   * `retryMs` is when the client should come back.
   */
  closeStream(retryMs?: number): void;
}
