/**
 * Answers a server's elicitation, sampling and roots requests, and validates the answers.
 *
 * @see specification/2026-07-28/client/elicitation
 * @see specification/2026-07-28/client/sampling
 * @see specification/2026-07-28/client/roots
 */
import { McpError } from "../core/protocol/errors.ts";
import { isObject, type Params } from "../core/protocol/jsonrpc.ts";
import {
  type AnswerOptions,
  type ElicitRequest,
  type ElicitResult,
  type ElicitUrlRequest,
  toCapabilities,
} from "./answer_options.ts";
import type { ClientCapabilities, Root, SamplingRequest, SamplingResult } from "../core/protocol/types.ts";
import { findFormMisfit } from "../core/schema/form_answer.ts";
import type { RequestHandler } from "./answer_options.ts";
import { show } from "../core/known_options.ts";
import { toShown } from "./shown.ts";

export interface RequestHandlerOptions extends AnswerOptions {
  /** Declared in addition to the capabilities of the callbacks. */
  readonly capabilities?: ClientCapabilities;
}

/** @throws {TypeError} if a root is not a `file://` URI. */
export function createRequestHandler(options: RequestHandlerOptions): RequestHandler {
  const { onElicit, onElicitUrl, onSample, roots } = options;
  const { sampling } = { ...toCapabilities(options), ...options.capabilities };
  if (Array.isArray(roots)) checkRoots(roots);
  return async ({ method, params, key = "", request: asking }, signal) => {
    const context = { signal, key, request: asking };
    switch (method) {
      case "ping":
        return {};
      case "elicitation/create":
        if (params.mode === "url" && onElicitUrl) return await onElicitUrl(readUrlRequest(params), context);
        if (params.mode !== "url" && onElicit) {
          const request = readRequest(params);
          return checkForm(withDefaults(await onElicit(request, context), request), request);
        }
        break;
      case "sampling/createMessage":
        if (onSample) {
          const request = readSampling(params, sampling);
          return checkSample(await onSample(request, context), request);
        }
        break;
      case "roots/list":
        if (roots) return { roots: checkRoots(typeof roots === "function" ? await roots(context) : roots) };
    }
    throw McpError.methodNotFound(`Cannot answer ${toShown(method)}: this client has no callback for this method`);
  };
}

function readRequest({ message, requestedSchema, ...more }: Params): ElicitRequest {
  if (typeof message !== "string" || !isObject(requestedSchema)) {
    throw refuse("elicitation/create", "message or requestedSchema is missing");
  }
  return { ...more, message, requestedSchema };
}

function readUrlRequest({ message, url, ...more }: Params): ElicitUrlRequest {
  if (typeof message !== "string" || typeof url !== "string") {
    throw refuse("elicitation/create", "message or url is missing");
  }
  // Allow only http and https, because opening a URL with another scheme could run code or open a file.
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw refuse("elicitation/create", "url is not an http or https URL");
  }
  return { ...more, message, url };
}

function readSampling(params: Params, declared: ClientCapabilities["sampling"]): SamplingRequest {
  if (!Array.isArray(params.messages)) throw refuse("sampling/createMessage", "messages is missing");
  if ((params.tools !== undefined || params.toolChoice !== undefined) && !declared?.tools) {
    throw refuse("sampling/createMessage", "this client has not declared sampling.tools");
  }
  // The client checks only that `messages` is an array. `onSample` must validate the content, because its format
  // differs between protocol revisions.
  return params as unknown as SamplingRequest;
}

function refuse(method: string, state: string): McpError {
  return McpError.invalidParams(`Cannot answer ${method}: ${state}`);
}

// Fills in defaults for missing values, because the user saw these defaults in the form and accepted the form.
function withDefaults(result: ElicitResult, { requestedSchema }: ElicitRequest): ElicitResult {
  if (result.action !== "accept") return result;
  const { properties } = requestedSchema;
  const defaults = Object.entries(isObject(properties) ? properties : {}).flatMap(([name, schema]) =>
    isObject(schema) && schema.default !== undefined ? [[name, schema.default]] : []
  );
  const given = Object.entries(result.content ?? {}).filter(([, value]) => value !== undefined);
  return { ...result, content: Object.fromEntries([...defaults, ...given]) };
}

// Validates the answer before sending it, because a server might reject an invalid answer and send the same request
// again and again.
function checkForm(result: ElicitResult, { requestedSchema }: ElicitRequest): ElicitResult {
  if (!["accept", "decline", "cancel"].includes(result.action)) {
    throw new TypeError(
      `Cannot answer the elicitation: the action is ${
        show(result.action)
      }; return accept, decline or cancel from onElicit`,
    );
  }
  if (result.action !== "accept") return result;
  const misfit = findFormMisfit(requestedSchema, { ...result.content });
  if (misfit === undefined) return result;
  throw new TypeError(`Cannot answer the elicitation: ${misfit}; correct the content that onElicit returns`);
}

// Validates the answer before sending it, because the error of a server that rejects the answer would not name
// `onSample`.
function checkSample(result: SamplingResult, { tools }: SamplingRequest): SamplingResult {
  const { role, content, model }: Params = Object(result);
  const blocks = [content].flat();
  const problem = role !== "assistant" && role !== "user"
    ? "role is not assistant or user"
    : typeof model !== "string"
    ? "model is not a string"
    : !blocks.every((block) => isObject(block) && typeof block.type === "string")
    ? "content is not a block or an array of blocks"
    : !tools && blocks.some((block) => isObject(block) && block.type === "tool_use")
    ? "content uses a tool, but the request offers no tools"
    : undefined;
  if (problem === undefined) return result;
  throw new TypeError(`Cannot answer the sampling request: ${problem}; correct the result that onSample returns`);
}

function checkRoots(roots: readonly Root[]): readonly Root[] {
  const wrong = roots.find(({ uri }) => typeof uri !== "string" || !/^file:\/\//i.test(uri) || !URL.canParse(uri));
  if (!wrong) return roots;
  throw new TypeError(
    `Cannot offer the root ${
      show(wrong.uri)
    }: the URI is not a valid file:// URI; use a URI such as file:///path/to/folder`,
  );
}
