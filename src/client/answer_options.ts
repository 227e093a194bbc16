/**
 * The callbacks of a client that answer a server's elicitation, sampling and roots requests.
 */
import type { Params } from "../core/protocol/jsonrpc.ts";
import type { KnownOptions } from "../core/known_options.ts";
import type { ClientCapabilities, Root, SamplingRequest, SamplingResult } from "../core/protocol/types.ts";

/** An elicitation request with a form for the user. */
export interface ElicitRequest {
  /** The message to show to the user. */
  readonly message: string;
  /**
   * JSON Schema of the form: an object whose properties are strings, numbers, booleans or choices, without nested
   * objects.
   */
  readonly requestedSchema: Params;
  /** Other parameters of the request, without validation. */
  readonly [key: string]: unknown;
}

/** An elicitation request with a page that the user should open. */
export interface ElicitUrlRequest {
  /** The message to show to the user. */
  readonly message: string;
  /** An http or https URL. Show its host to the user, and ask the user before opening it. */
  readonly url: string;
  /** Other parameters of the request, without validation. */
  readonly [key: string]: unknown;
}

/** The user's answer to an elicitation. */
export interface ElicitResult {
  /** `accept` or `decline` if the user has decided, or `cancel` if the user has closed the form without deciding. */
  readonly action: "accept" | "decline" | "cancel";
  /**
   * The values of the form, by property name, with `accept`. The client fills in the form's defaults for values that
   * are missing or `undefined`.
   */
  readonly content?: Readonly<Record<string, unknown>>;
}

/**
 * The second argument of a callback: the signal and the key of the server's request, and the client's request that
 * needs the answer.
 */
export interface AnswerContext {
  /** Aborts when the server's request is cancelled. */
  readonly signal: AbortSignal;
  /**
   * Key of the server's request: in a session, the request's JSON-RPC id; without a session, the key that the handler
   * has chosen for the question.
   */
  readonly key: string;
  /**
   * The client's request for which the server needs the answer. `undefined` if several requests are running in a
   * session over stdio, because the server's request does not identify the client's request.
   */
  readonly request?: {
    /** The method of the request, such as `tools/call`. */
    readonly method: string;
    /** The parameters of the request. */
    readonly params: Params;
  };
}

/** A request from the client for which the server needs an answer from the client. */
export type OriginatingRequest = NonNullable<AnswerContext["request"]>;

/** An elicitation, sampling or roots request from the server. */
export interface ServerRequest {
  /** The method, such as `elicitation/create`. */
  readonly method: string;
  /** The parameters. */
  readonly params: Params;
  /**
   * Key of the server's request: in a session, the request's JSON-RPC id; without a session, the key that the handler
   * has chosen for the question.
   */
  readonly key?: string;
  /**
   * The client's request for which the server needs the answer. `undefined` if the client cannot identify this request.
   */
  readonly request?: AnswerContext["request"];
}

/**
 * Answers a request from the server: returns the result, or throws an `McpError`. `signal` aborts when the server's
 * request is cancelled.
 */
export type RequestHandler = (request: ServerRequest, signal: AbortSignal) => unknown;

/** Callbacks that answer requests from the server. The client declares the capability of each callback that is set. */
export interface AnswerOptions {
  /** Shows a form to the user, and returns the user's answer. */
  readonly onElicit?: (request: ElicitRequest, context: AnswerContext) => ElicitResult | Promise<ElicitResult>;
  /** Asks the user to open a page, and returns the user's choice. */
  readonly onElicitUrl?: (
    request: ElicitUrlRequest,
    context: AnswerContext,
  ) => Pick<ElicitResult, "action"> | Promise<Pick<ElicitResult, "action">>;
  /**
   * Optional features that `onSample` supports.
   *
   * @deprecated by the protocol, with `onSample`.
   */
  readonly sampling?: {
    /**
     * Whether `onSample` offers the request's tools to the model. Defaults to `false`: the client rejects requests with
     * tools.
     */
    readonly tools?: boolean;
    /** Whether `onSample` supports `includeContext` of the request. Defaults to `false`. */
    readonly context?: boolean;
  };
  /**
   * Passes a conversation to a model, and returns the model's message.
   *
   * @deprecated by the protocol. Servers call the API of a model provider instead. Older servers still send
   * sampling requests.
   */
  readonly onSample?: (request: SamplingRequest, context: AnswerContext) => SamplingResult | Promise<SamplingResult>;
  /**
   * The directories and files that the server may use, as `file://` URIs, or a function that returns these roots.
   *
   * @deprecated by the protocol. Pass paths in arguments, resource URIs or the server's configuration instead.
   */
  readonly roots?: readonly Root[] | ((context: AnswerContext) => readonly Root[] | Promise<readonly Root[]>);
}

export const ANSWER: KnownOptions<keyof AnswerOptions>["names"] = {
  onElicit: "function",
  onElicitUrl: "function",
  sampling: { names: { tools: "boolean", context: "boolean" } },
  onSample: "function",
  roots: true,
};

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
