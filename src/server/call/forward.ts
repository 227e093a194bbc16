/**
 * Implements `ctx.forward`: passes another server's questions to the client, and the client's answers back to that
 * server.
 *
 * @see specification/2026-07-28/basic/patterns/mrtr
 */
import {
  INVALID_PARAMS,
  isRemoteError,
  McpError,
  MISSING_CAPABILITY,
  quote,
  RESOURCE_NOT_FOUND,
  ToolError,
  URLS_REQUIRED,
} from "../../core/protocol/errors.ts";
import { toPrintableLine } from "../../core/kit/printable.ts";
import { isObject, type Params } from "../../core/protocol/jsonrpc.ts";
import { LOG_LEVELS, type LogLevel, type Root } from "../../core/protocol/types.ts";
import type { ClientInfo, Context, Elicited, ForwardedRequest, ForwardOptions, ForwardRetry } from "./context.ts";
import { findForwarder, type Forwarder, openKeys } from "./forwarded_keys.ts";
import { INTERNALS } from "../../core/internals.ts";
import { checkOptions, type KnownOptions, show } from "../../core/known_options.ts";
import { JoinedProgress } from "./joined_progress.ts";
import { FORM, isQuestion, type PreparedQuestion, type Question } from "./question.ts";
import type { RerunWatch, Stretch } from "./rerun_watch.ts";
import { delay } from "../../core/kit/deadline.ts";
import { systemClock } from "../../core/timers.ts";

/** A forwarded request that has not ended: the questions in the other server's latest result. */
export interface ForwardedRound {
  /** Number of results with questions that the other server has sent before this result. */
  readonly round: number;
  /** The questions, by the other server's keys. */
  readonly inputRequests?: unknown;
  readonly requestState?: unknown;
  /** Number of questions in this result and in earlier results. */
  readonly questions: number;
  /** Whether the questions are pages that the user must open before the other server accepts the request. */
  readonly isBlocked?: boolean;
}

/** The forwarded requests of a call that have not ended, by key. The next run of the handler continues them. */
export interface ForwardedRounds {
  get(key: string): ForwardedRound | undefined;
  set(key: string, round: ForwardedRound): unknown;
}

interface ForwardingCall extends Forwarder, Pick<Context, "log" | "progress"> {
  readonly signal: AbortSignal;
  readonly client: ClientInfo;
  readonly wantsProgress: boolean;
  /** The progress of all forwarded requests of the handler. */
  forwardedProgress?: JoinedProgress;
  readonly host: {
    readonly reruns?: RerunWatch;
    readonly outer?: ForwardingCall;
    readonly toInnerKey?: () => Promise<string>;
  };
  /** `undefined` if the handler does not run again after a question. */
  readonly forwarded?: ForwardedRounds;
  readonly forwarder?: ForwardingCall;
  stretch?: Stretch;
  readonly method: string;
  readonly params: Params;
}

export interface Forwarding<R> {
  readonly call: ForwardingCall;
  readonly ask: (question: PreparedQuestion) => Promise<unknown>;
  readonly send: (retry: ForwardRetry, request: ForwardedRequest) => R | Promise<R>;
  readonly options: OwnForwardOptions;
}

/** Options for a part of this library that keeps data for a `requestState` of the other server. */
export interface OwnForwardOptions extends ForwardOptions {
  /** Called if the request ends although the other server waits for answers. */
  readonly [INTERNALS]?: (requestState: unknown) => void;
}

const OPTIONS: KnownOptions<keyof ForwardOptions> = { names: { key: true } };
const MAX_ROUNDS = 64;
/**
 * Maximum number of questions of all results together. Without a maximum, a hostile server behind a proxy could ask the
 * users and models of the proxy's clients without end.
 */
const MAX_QUESTIONS = 32;
const MAX_WAIT_MS = 5000;
/** Keys in the metadata of the forwarded request. */
const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL = "io.modelcontextprotocol/logLevel";
/** The capabilities for the questions that {@linkcode prepare} can forward. */
const FORWARDED = ["elicitation", "sampling", "roots"];

/** Repeats a request until the result contains no question. Rethrows errors from the other server. */
export async function forward<R extends object>(forwarding: Forwarding<R>): Promise<R> {
  const { call, send, options } = forwarding;
  const { reruns } = call.host;
  const key = readKey(options);
  const place = await reservePlace(call, key);
  const request = toRequest(forwarding, key);
  const before = place.rounds?.get(place.key);
  let last = before;
  let questions = before?.questions ?? 0;
  let retry = before ? await answerOrEnd(forwarding, key, before) : {};
  for (let round = before ? before.round + 1 : 0; round < MAX_ROUNDS; round++) {
    const work = () => sendOnce(call, () => send(retry, request));
    // The next run does not repeat this work if the result contains questions.
    const result = await (reruns ? reruns.once(call, work) : work());
    // The cast is safe, because only an R lacks this `resultType`: every `Blocked` has it.
    const { resultType, inputRequests, requestState, [BLOCKED]: isBlocked } = Object(result) as Partial<Blocked>;
    if (resultType !== "input_required") return result as R; // See above.
    const added = isObject(inputRequests) ? Object.keys(inputRequests).length : 0;
    if (isBlocked && last?.isBlocked) {
      throw new ToolError(
        "Cannot continue: the other server still requires its page; finish what the page asks for, and then call again",
      );
    }
    const asked = { round, inputRequests, requestState, questions: questions += added, ...isBlocked && { isBlocked } };
    last = asked;
    if (questions > MAX_QUESTIONS) {
      throw new Error(
        `Cannot forward the request: the other server asked more than ${MAX_QUESTIONS} questions, which is the limit`,
      );
    }
    place.rounds?.set(place.key, asked);
    retry = await answerOrEnd(forwarding, key, asked);
  }
  throw new Error(
    `Cannot forward the request: the other server still requires input after ${MAX_ROUNDS} rounds, which is the limit`,
  );
}

function readKey(options: Partial<ForwardOptions> = {}): string {
  checkOptions("forward a request", options, OPTIONS);
  const { key } = options;
  if (key && typeof key === "string") return key;
  throw new TypeError(
    `Cannot forward a request: key is ${show(key)}; the key names the upstream and the request, as in ` +
      'ctx.forward(send, { key: "airline seats" })',
  );
}

interface Place {
  readonly rounds?: ForwardedRounds;
  readonly key: string;
}

/**
 * Returns the place of a request. If the handler of an inner call, or a layer of an extension, forwards the request, the
 * place belongs to the call of the client's request, because the client retries that call. A place is used once per run,
 * because the next run may send the requests in another order, and an answer must reach the server that has asked.
 */
async function reservePlace(call: ForwardingCall, key: string): Promise<Place> {
  const inner: string[] = [];
  let outermost = call;
  for (let { outer } = call.host; outer; { outer } = outer.host) {
    inner.push(await outermost.host.toInnerKey?.() ?? "");
    outermost = outer;
  }
  const owner = findForwarder(outermost);
  // No key of a handler can equal the list of another key and the keys of inner calls.
  const listed = JSON.stringify([key, ...inner]);
  const keys = openKeys(owner);
  if (keys.has(listed)) {
    throw new TypeError(
      `Cannot forward two requests with the key ${quote(key)} in one run: the answers could reach the wrong server; ` +
        "give each request its own key",
    );
  }
  keys.add(listed);
  // A request that has ended keeps its round. The next run sends it again, and so gets the same result without asking
  // the user again.
  return { rounds: owner.forwarded, key: listed };
}

/**
 * Returns the options of the forwarded request. They contain no capabilities of extensions, because the other server
 * could then answer with a result that only an extension can finish, such as a task.
 */
function toRequest({ call, ask }: Pick<Forwarding<unknown>, "call" | "ask">, key: string): ForwardedRequest {
  const { client: { capabilities, logLevel }, signal, wantsProgress } = call;
  const forwarded = Object.entries(capabilities).filter(([name]) => FORWARDED.includes(name));
  let count = 0;
  // The questions of a session have no keys, so the number of the question is part of the key.
  const put = async <T>(
    method: string,
    params: object,
    { signal }: Partial<Pick<ForwardedRequest, "signal">> = {},
  ): Promise<T> => {
    const place = `forward ${JSON.stringify(key)} question ${++count}`;
    return await ask(prepare({ key: place, signal }, { method, params })) as T; // The other server checks the answer.
  };
  const elicit = (request: Params, context?: Partial<Pick<ForwardedRequest, "signal">>) =>
    put<Elicited<Params>>("elicitation/create", request, context);
  return {
    rounds: false,
    signal,
    meta: { [CAPABILITIES]: Object.fromEntries(forwarded), [LOG_LEVEL]: logLevel },
    ...wantsProgress && { onProgress: toProgress(call) },
    onNotification: ({ method, params: { level, data, logger } }) => {
      if (method !== "notifications/message" || !LOG_LEVELS.includes(level as LogLevel)) return; // `includes` decides.
      void call.log[level as LogLevel](data, typeof logger === "string" ? { logger } : {}); // See above.
    },
    onElicit: elicit,
    onElicitUrl: elicit,
    onSample: (request, context) => put("sampling/createMessage", request, context),
    roots: async (context) => (await put<{ readonly roots: readonly Root[] }>("roots/list", {}, context)).roots,
  };
}

/** Adds the progress of a request to that of the other requests of the handler, because they share one token. */
function toProgress(call: ForwardingCall): ForwardedRequest["onProgress"] {
  const joined = call.forwardedProgress ??= new JoinedProgress(-Infinity);
  const place = joined.open();
  let last = -Infinity;
  return ({ progress, total, message }) => {
    if (!(progress > last) || !Number.isFinite(progress)) return;
    last = progress;
    const sum = joined.add(place, { progress, total: Number.isFinite(total) ? total : undefined });
    if (sum) void call.progress(sum.progress, { total: sum.total, message });
  };
}

/** Key that no result of another server has. */
const BLOCKED = Symbol("blocked");

/** The questions of an error that the user can solve by opening pages. */
interface Blocked {
  readonly resultType: string;
  readonly inputRequests: unknown;
  readonly requestState?: unknown;
  readonly [BLOCKED]?: true;
}

async function sendOnce<R extends object>(call: ForwardingCall, send: () => R | Promise<R>): Promise<R | Blocked> {
  let result: R;
  try {
    result = await send();
  } catch (error) {
    const blocked = findPages(error);
    if (blocked) return blocked;
    throw toOwn(error, call);
  }
  if (isObject(result)) return result;
  throw new TypeError(
    "Cannot forward the request: send() did not return an object; return the result of the client's request",
  );
}

/**
 * Returns the pages of the error "URL elicitation required", which only the last revision with sessions has.
 */
export function findPages(error: unknown): Blocked | undefined {
  if (!isRemoteError(error) || error.code !== URLS_REQUIRED) return;
  const { elicitations }: Params = Object(error.data);
  if (!Array.isArray(elicitations) || !elicitations.length) return;
  const pages = elicitations.map((params, at) => [String(Object(params).elicitationId ?? at), params] as const);
  const questions = pages.map(([id, params]) => [id, { method: "elicitation/create", params }]);
  return { resultType: "input_required", inputRequests: Object.fromEntries(questions), [BLOCKED]: true };
}

/**
 * Returns the error for the caller's revision. An error with another reserved code stays unexpected, so the server reports
 * it: to the client, the code would mean that this server's own messages are wrong.
 */
export function toOwn(error: unknown, { method, params: { uri } }: Pick<ForwardingCall, "method" | "params">): unknown {
  if (!isRemoteError(error)) return error;
  const { code, message, data } = error;
  if (code === RESOURCE_NOT_FOUND && method === "resources/read") {
    // With the URI, each revision encodes the error as its error for a missing resource.
    const own = new McpError(INVALID_PARAMS, message, { ...isObject(data) ? data : {}, uri });
    own.cause = error;
    return own;
  }
  const isReserved = code >= -32_099 && code <= -32_000 && code !== RESOURCE_NOT_FOUND && code !== MISSING_CAPABILITY;
  return isReserved ? error : error.asOwn();
}

async function answerOrEnd(
  forwarding: Pick<Forwarding<unknown>, "call" | "ask" | "options">,
  key: string,
  asked: ForwardedRound,
): Promise<ForwardRetry> {
  try {
    return await answer(forwarding, key, asked);
  } catch (error) {
    if (!isQuestion(error)) forwarding.options[INTERNALS]?.(asked.requestState);
    throw error;
  }
}

/** If the result contains no question, waits before the request is repeated. */
async function answer(
  { call, ask }: Pick<Forwarding<unknown>, "call" | "ask">,
  key: string,
  asked: ForwardedRound,
): Promise<ForwardRetry> {
  const { round, inputRequests, requestState, isBlocked } = asked;
  if (!isObject(inputRequests)) {
    const ms = Math.min(100 * 2 ** round, MAX_WAIT_MS);
    await delay(ms, { signal: call.signal, clock: systemClock, background: true });
    return { requestState };
  }
  // Ask all questions before awaiting an answer, so that the client receives the questions together. No text that
  // another server sends can turn one prefix into another prefix, so no server gets the answer to a question of another
  // server, of the handler, or of an earlier round.
  const prefix = ["forward", JSON.stringify(key), ...round ? [round + 1] : []].join(" ");
  const asking = Object.entries(inputRequests).map(async ([name, question]) => {
    return [name, await ask(prepare({ key: `${prefix}: ${name}`, name }, question))] as const;
  });
  const answers = await Promise.all(asking);
  if (!isBlocked) return { inputResponses: Object.fromEntries(answers), requestState };
  if (answers.every(([, answer]) => Object(answer).action === "accept")) return {};
  throw new ToolError(
    "Cannot continue: the user did not open the page that the other server requires; call again to ask the user again",
  );
}

/** Converts a question from the other server, which also validates the answer. */
function prepare(
  { key, name = key, signal }: { readonly key: string; readonly name?: string; readonly signal?: AbortSignal },
  asked: unknown,
): PreparedQuestion {
  const { method, params = {} } = isObject(asked) ? asked : {};
  const need = isObject(params) ? findNeed(method, params) : undefined;
  if (!need) {
    throw new Error(
      `Cannot forward the question ${quote(name)}: the other server's request has an unknown method (${
        quote(method)
      }), or its params are invalid`,
    );
  }
  const question: Question = {
    ...need.question,
    name,
    signal,
    read: (given) => isObject(given) ? { value: given } : { problem: "expected an object" },
  };
  return { key, requires: [need.capability], make: () => question };
}

/** Returns a question of another server, and the capability that it needs. Returns `undefined` if it is invalid. */
export function findNeed(method: unknown, params: Params) {
  switch (method) {
    case "elicitation/create":
      // Nobody can check a URL with invisible characters.
      if (params.mode === "url" && toPrintableLine(params.url) !== params.url) return;
      // Allow only http and https, because other schemes could run code or open files.
      if (params.mode === "url" && !/^https?:\/\/\S+$/i.test(String(params.url))) return;
      return { capability: params.mode === "url" ? "elicitation.url" : FORM, question: { method, params } } as const;
    case "sampling/createMessage": {
      const isPlain = params.tools === undefined && params.toolChoice === undefined;
      return { capability: isPlain ? "sampling" : "sampling.tools", question: { method, params } } as const;
    }
    case "roots/list":
      return { capability: "roots", question: { method, params } } as const;
  }
}
