/**
 * What a client answers when the server asks, and what it says it can be asked.
 *
 * @see specification/2026-07-28/client/elicitation
 * @see specification/2026-07-28/client/sampling
 * @see specification/2026-07-28/client/roots
 * @module
 */
import { INVALID_PARAMS, METHOD_NOT_FOUND } from "../protocol/errors.ts";
import { isObject, type Params } from "../protocol/jsonrpc.ts";
import type { ClientCapabilities, Root, SamplingRequest, SamplingResult } from "../protocol/types.ts";
import { findFormMisfit } from "./form_answer.ts";
import type { RequestHandler } from "./rpc.ts";
import { RpcError } from "./rpc_error.ts";

/** A form that the server wants the user to fill in. */
export interface ElicitRequest {
  /** What to tell the user. */
  readonly message: string;
  /** A JSON Schema: a flat object of strings, numbers, booleans and choices. */
  readonly requestedSchema: Params;
  /** Whatever else the server said. */
  readonly [key: string]: unknown;
}

/** A page that the server wants the user to visit. */
export interface ElicitUrlRequest {
  /** What to tell the user. */
  readonly message: string;
  /** An http or https URL. Show its host, and ask before it is opened. */
  readonly url: string;
  /** Whatever else the server said. */
  readonly [key: string]: unknown;
}

/** What the user did with a form. */
export interface ElicitResult {
  /** The user agreed, refused, or closed the form without a choice. */
  readonly action: "accept" | "decline" | "cancel";
  /** With `accept`, the values by name. For a name left out, the default of the form is sent. */
  readonly content?: Readonly<Record<string, string | number | boolean | readonly string[]>>;
}

/** What a question comes with. */
export interface AnswerContext {
  /** Aborted when the answer is not wanted any more. */
  readonly signal: AbortSignal;
}

/** Who answers what the server asks. A client says that it can be asked what it has a function for. */
export interface AnswerOptions {
  /** Has the user fill in a form. */
  readonly onElicit?: (request: ElicitRequest, context: AnswerContext) => ElicitResult | Promise<ElicitResult>;
  /** Has the user visit a page. */
  readonly onElicitUrl?: (
    request: ElicitUrlRequest,
    context: AnswerContext,
  ) => Pick<ElicitResult, "action"> | Promise<Pick<ElicitResult, "action">>;
  /** What `onSample` can do beside continuing a conversation. */
  readonly sampling?: {
    /** Whether it offers the request's tools to the model; without it, requests with tools are refused. */
    readonly tools?: boolean;
    /** Whether it adds the context that the request names. */
    readonly context?: boolean;
  };
  /** Has a model continue a conversation. */
  readonly onSample?: (request: SamplingRequest, context: AnswerContext) => SamplingResult | Promise<SamplingResult>;
  /** The directories and files that the server may work on, as `file://` URIs, or a function that lists them. */
  readonly roots?: readonly Root[] | (() => readonly Root[] | Promise<readonly Root[]>);
}

/** What a client with these functions can be asked. */
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

/** Functions that answer, and what was declared of them. */
export interface RequestHandlerOptions extends AnswerOptions {
  /** What the client says that it can do, whoever answers. */
  readonly capabilities?: ClientCapabilities;
}

/**
 * Makes the function that answers the server.
 *
 * @throws {TypeError} if a root is not a `file://` URI.
 */
export function createRequestHandler(options: RequestHandlerOptions): RequestHandler {
  const { onElicit, onElicitUrl, onSample, roots } = options;
  const { sampling } = { ...toCapabilities(options), ...options.capabilities };
  if (Array.isArray(roots)) checkRoots(roots);
  return async ({ method, params }, signal) => {
    switch (method) {
      case "ping":
        return {};
      case "elicitation/create":
        if (params.mode === "url" && onElicitUrl) return await onElicitUrl(readUrlRequest(params), { signal });
        if (params.mode !== "url" && onElicit) {
          const request = readRequest(params);
          return checkForm(withDefaults(await onElicit(request, { signal }), request), request);
        }
        break;
      case "sampling/createMessage":
        if (onSample) return await onSample(readSampling(params, sampling), { signal });
        break;
      case "roots/list":
        if (roots) return { roots: checkRoots(typeof roots === "function" ? await roots() : roots) };
    }
    throw new RpcError(METHOD_NOT_FOUND, `Cannot answer ${method}: this client has no function for it`);
  };
}

function readRequest({ message, requestedSchema, ...more }: Params): ElicitRequest {
  if (typeof message !== "string" || !isObject(requestedSchema)) throw refuse("message or requestedSchema is missing");
  return { ...more, message, requestedSchema };
}

function readUrlRequest({ message, url, ...more }: Params): ElicitUrlRequest {
  if (typeof message !== "string" || typeof url !== "string") throw refuse("message or url is missing");
  // Other schemes run code or open files.
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) throw refuse("url is neither http nor https");
  return { ...more, message, url };
}

function readSampling(params: Params, declared: ClientCapabilities["sampling"]): SamplingRequest {
  if (!Array.isArray(params.messages)) throw refuse("messages is missing");
  if ((params.tools !== undefined || params.toolChoice !== undefined) && !declared?.tools) {
    throw refuse("this client has not declared sampling.tools");
  }
  // What is in the messages is for the function to look at: it differs from revision to revision.
  return params as unknown as SamplingRequest; // Its messages are there.
}

function refuse(state: string): RpcError {
  return new RpcError(INVALID_PARAMS, `Cannot answer: ${state}`);
}

// The user agreed to the form as it was shown, and what was not changed was shown with its default.
function withDefaults(result: ElicitResult, { requestedSchema }: ElicitRequest): ElicitResult {
  if (result.action !== "accept") return result;
  const { properties } = requestedSchema;
  const defaults = Object.entries(isObject(properties) ? properties : {}).flatMap(([name, schema]) =>
    isObject(schema) && schema.default !== undefined ? [[name, schema.default]] : []
  );
  return { ...result, content: { ...Object.fromEntries(defaults), ...result.content } };
}

// A server would only ask again, without end if nobody corrects the answer.
function checkForm(result: ElicitResult, { requestedSchema }: ElicitRequest): ElicitResult {
  if (!["accept", "decline", "cancel"].includes(result.action)) {
    throw new TypeError(`Cannot answer the form: the action is ${result.action}; return accept, decline or cancel`);
  }
  if (result.action !== "accept") return result;
  const misfit = findFormMisfit(requestedSchema, { ...result.content });
  if (misfit === undefined) return result;
  throw new TypeError(`Cannot answer the form: ${misfit}; correct the content that onElicit returns`);
}

function checkRoots(roots: readonly Root[]): readonly Root[] {
  const wrong = roots.find(({ uri }) => !/^file:\/\//i.test(uri) || !URL.canParse(uri));
  if (!wrong) return roots;
  throw new TypeError(`Cannot offer the root ${wrong.uri}: it is not a file:// URI; write file:///path/to/folder`);
}
