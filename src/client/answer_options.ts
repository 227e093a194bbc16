/**
 * The functions with which a client answers requests from a server.
 *
 * @module
 */
import type { Params } from "../protocol/jsonrpc.ts";
import type { KnownOptions } from "../core/call/known_options.ts";
import type { ClientCapabilities, Root, SamplingRequest, SamplingResult } from "../protocol/types.ts";

/** A form that the server wants the user to fill in. */
export interface ElicitRequest {
  /** A message for the user. */
  readonly message: string;
  /** A JSON Schema: a flat object of strings, numbers, booleans and choices. */
  readonly requestedSchema: Params;
  /** Further parameters, as the server sent them. */
  readonly [key: string]: unknown;
}

/** A page that the server wants the user to open. */
export interface ElicitUrlRequest {
  /** A message for the user. */
  readonly message: string;
  /** An http or https URL. Show its host to the user, and ask the user before opening it. */
  readonly url: string;
  /** Further parameters, as the server sent them. */
  readonly [key: string]: unknown;
}

/** The user's answer to a form. */
export interface ElicitResult {
  /** `accept` and `decline` are choices of the user; `cancel` means that the user closed the form. */
  readonly action: "accept" | "decline" | "cancel";
  /** With `accept`: the values by name. Names that are missing or `undefined` get the defaults of the form. */
  readonly content?: Readonly<Record<string, unknown>>;
}

/** The context of an answer. */
export interface AnswerContext {
  /** Aborts when the request is cancelled. */
  readonly signal: AbortSignal;
  /**
   * The key that identifies the question: the key that the handler chose, or in a session the id of the server's
   * request.
   */
  readonly key: string;
  /**
   * The request during which the server asks. `undefined` if the request is not known, which happens in a session over
   * stdio while several requests are running.
   */
  readonly request?: AskingRequest;
}

/** A request during which the server asks. */
export interface AskingRequest {
  /** The method of the request, such as `tools/call`. */
  readonly method: string;
  /** The parameters of the request. */
  readonly params: Params;
}

/** The functions that answer the server. The client declares the capabilities for the functions that are given. */
export interface AnswerOptions {
  /** Shows a form to the user, and returns the answer. */
  readonly onElicit?: (request: ElicitRequest, context: AnswerContext) => ElicitResult | Promise<ElicitResult>;
  /** Asks the user to open a page, and returns the user's choice. */
  readonly onElicitUrl?: (
    request: ElicitUrlRequest,
    context: AnswerContext,
  ) => Pick<ElicitResult, "action"> | Promise<Pick<ElicitResult, "action">>;
  /** Optional abilities of `onSample`. */
  readonly sampling?: {
    /**
     * Whether `onSample` offers the tools of the request to the model. Defaults to `false`: requests with tools are
     * refused.
     */
    readonly tools?: boolean;
    /** Whether `onSample` adds the context that the request names. Defaults to `false`. */
    readonly context?: boolean;
  };
  /** Passes a conversation to a model, and returns its message. */
  readonly onSample?: (request: SamplingRequest, context: AnswerContext) => SamplingResult | Promise<SamplingResult>;
  /** The directories and files that the server may use, as `file://` URIs, or a function that lists them. */
  readonly roots?: readonly Root[] | ((context: AnswerContext) => readonly Root[] | Promise<readonly Root[]>);
}

/** The names of {@linkcode AnswerOptions}. */
export const ANSWER: KnownOptions<keyof AnswerOptions>["names"] = {
  onElicit: "function",
  onElicitUrl: "function",
  sampling: { names: { tools: "boolean", context: "boolean" } },
  onSample: "function",
  roots: true,
};

/** Returns the capabilities of a client with these functions. */
export function toCapabilities(
  { onElicit, onElicitUrl, onSample, sampling = {}, roots }: AnswerOptions,
): ClientCapabilities {
  const elicitation = { ...onElicit && { form: {} }, ...onElicitUrl && { url: {} } };
  return {
    ...(onElicit || onElicitUrl) && { elicitation },
    ...onSample && { sampling: { ...sampling.tools && { tools: {} }, ...sampling.context && { context: {} } } },
    ...roots && { roots: {} },
  };
}
