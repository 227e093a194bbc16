/**
 * Passes a request of a caller on to the server behind a proxy.
 */
import { isModern } from "../client/detect_era.ts";
import type { RequestOptions } from "../client/rpc.ts";
import { ID as TASKS } from "../extensions/tasks/task_methods.ts";
import { INTERNALS } from "../core/internals.ts";
import { isRemoteError, McpError, MISSING_CAPABILITY, ToolError } from "../core/protocol/errors.ts";
import { isObject, type Params, type Result } from "../core/protocol/jsonrpc.ts";
import { type Context, isQuestion } from "../library.ts";
import type { ForwardedRequest, ForwardRetry } from "../server/call/context.ts";
import { toCall } from "../server/call/find_call.ts";
import { findPages, type OwnForwardOptions } from "../server/call/forward.ts";
import { canPassHandle } from "../server/visibility/relayed_handles.ts";
import { ActiveTimer } from "./active_timer.ts";
import { showTexts } from "./foreign_text.ts";
import { findLoop, toHops } from "./hops.ts";
import type { ScopeParts } from "./parts.ts";
import { type Settings, toAllowed } from "./settings.ts";
import type { Upstream } from "./upstream.ts";

const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL = "io.modelcontextprotocol/logLevel";

export interface PassedRequest {
  readonly method: "tools/call" | "prompts/get" | "resources/read";
  /** The name or URI, as the other server knows it. */
  readonly subject: string;
  readonly params: Params;
  /** Whether the result can be a task of the other server. Otherwise the proxy awaits the task. */
  readonly canBeTask?: boolean;
}

/** Whether the caller of a tool can get a task. */
export function canGetTask(ctx: Context): boolean {
  const { extensions } = ctx.client.capabilities;
  return isObject(Object(extensions)[TASKS]) && canPassHandle(toCall(ctx, "call another server"));
}

/** Returns metadata with the capabilities of a caller that can get a task. */
export function withTasks(meta: Params, capabilities: object): Params {
  return { ...meta, [CAPABILITIES]: { ...capabilities, extensions: { [TASKS]: {} } } };
}

/** Sends a request, and passes on its progress, log messages and questions. */
export async function passOn(
  upstream: Upstream,
  { scope, ctx }: { readonly scope: ScopeParts; readonly ctx: Context },
  request: PassedRequest,
): Promise<Result> {
  const { settings: { name }, id } = upstream;
  const { method, subject, params } = request;
  if (findLoop(ctx, id)) {
    throw new ToolError(`Cannot call ${name}: the request has already passed this server, which would never end`);
  }
  const passing = new Passing(upstream, scope, ctx, request);
  const send = (retry: ForwardRetry, given: ForwardedRequest) => passing.send(retry, given, params);
  try {
    const options: OwnForwardOptions = {
      key: `${name} ${method} ${subject}`,
      [INTERNALS]: (state) => upstream.parked.cancel(String(state)),
    };
    return await ctx.forward(send, options);
  } catch (error) {
    if (!isQuestion(error)) passing.end();
    throw error;
  }
}

class Passing {
  readonly #upstream: Upstream;
  readonly #scope: ScopeParts;
  readonly #ctx: Context;
  readonly #method: string;
  readonly #canBeTask: boolean;
  #parked?: string;

  constructor(upstream: Upstream, scope: ScopeParts, ctx: Context, { method, canBeTask = false }: PassedRequest) {
    this.#upstream = upstream;
    this.#scope = scope;
    this.#ctx = ctx;
    this.#method = method;
    this.#canBeTask = canBeTask;
  }

  async send(retry: ForwardRetry, given: ForwardedRequest, params: Params): Promise<Result> {
    const { parked } = this.#upstream;
    const options = this.#toPermitted(given);
    const { caller, client: { version } } = this.#ctx;
    const capabilities = Object(options.meta[CAPABILITIES]);
    let needsParking = false;
    // A waiting call gets its answer without a connection, even if no new request could be sent.
    if (!parked.has(retry.requestState)) {
      const { hasSession, hasTasks } = await this.#scope.connect(this.#ctx);
      if (hasSession && !isModern(version)) return this.#toShown(await this.#request(params, options));
      if (!hasSession) {
        try {
          const sent = {
            ...withoutAnswers(options),
            ...this.#canBeTask && hasTasks && { meta: withTasks(options.meta, capabilities) },
          };
          return this.#toShown(await this.#request({ ...params, ...retry }, sent));
        } catch (error) {
          const { extensions: declared } = this.#ctx.client.capabilities;
          // A caller without a session that does not support tasks gets the other server's error.
          if (!needsTask(error) || isModern(version) && !declared?.[TASKS]) throw error;
          // The call has not started. As a task, it keeps running while its caller answers, so it also runs only once.
          needsParking = true;
        }
      }
    }
    const begin = (own: RequestOptions) =>
      this.#exchange(params, {
        ...options,
        ...own,
        ...needsParking && { rounds: true, meta: withTasks(options.meta, capabilities) },
      });
    const request = { caller, capabilities, given: options, ctx: this.#ctx, begin };
    const result = await parked.run(request, needsParking ? {} : retry);
    this.#parked = typeof result.requestState === "string" ? result.requestState : undefined;
    return this.#toShown(result);
  }

  /** Ends the call that waits for an answer, because the caller does not answer. */
  end(): void {
    if (this.#parked !== undefined) this.#upstream.parked.cancel(this.#parked);
  }

  /** Sends a request. The caller answers the server's questions during this run, or with its next request. */
  async #request(params: Params, given: RequestOptions & Pick<ForwardedRequest, "signal">): Promise<Result> {
    const { settings: { timeoutMs }, server } = this.#upstream;
    if (timeoutMs === undefined) return await this.#exchange(params, given);
    const late = new AbortController();
    const timer = new ActiveTimer(server.clock, timeoutMs, () => {
      late.abort(new DOMException("The server did not respond in time", "TimeoutError"));
    });
    const wait = <A extends unknown[], R>(ask: ((...asked: A) => Promise<R>) | undefined) =>
      ask && ((...asked: A) => timer.without(() => ask(...asked)));
    // The cast is safe, because only requests in a session have these functions.
    const { onElicit, onElicitUrl, onSample, roots } = given as Partial<ForwardedRequest>;
    try {
      return await this.#exchange(params, {
        ...given,
        onElicit: wait(onElicit),
        onElicitUrl: wait(onElicitUrl),
        onSample: wait(onSample),
        roots: wait(roots),
        signal: AbortSignal.any([given.signal, late.signal]),
      });
    } finally {
      timer.stop();
    }
  }

  async #exchange(params: Params, options: RequestOptions): Promise<Result> {
    const isRepeatable = this.#method !== "tools/call";
    const sent = { ...options, timeoutMs: Infinity };
    try {
      return await this.#scope.request(this.#method, params, sent, { ctx: this.#ctx, isRepeatable });
    } catch (error) {
      const pages = findPages(error);
      if (!pages) throw error;
      return { ...pages };
    }
  }

  /** Leaves out what the other server must not use. */
  #toPermitted(given: ForwardedRequest): ForwardedRequest {
    const { settings, id } = this.#upstream;
    const capabilities = toAllowed(Object(given.meta[CAPABILITIES]), settings);
    const isLogged = settings.forward?.log !== false;
    return {
      ...given,
      meta: {
        ...toHops(this.#ctx, id),
        ...given.meta,
        [CAPABILITIES]: capabilities,
        [LOG_LEVEL]: isLogged ? given.meta[LOG_LEVEL] : undefined,
      },
      onNotification: (notification) => isLogged && given.onNotification(notification),
      // A server can ask questions for which it got no capability.
      onElicit: async (asked, context) => await given.onElicit(toAsked(settings, "elicitation/create", asked), context),
      onElicitUrl: async (asked, context) =>
        await given.onElicitUrl(toAsked(settings, "elicitation/create", asked), context),
      onSample: async (asked, context) => {
        toAsked(settings, "sampling/createMessage", asked);
        return await given.onSample(asked, context);
      },
      roots: async (context) => {
        toAsked(settings, "roots/list", {});
        return await given.roots(context);
      },
    };
  }

  /** Returns a result whose questions name the other server. */
  #toShown(result: Result): Result {
    const { settings } = this.#upstream;
    const { resultType, inputRequests } = result;
    if (resultType !== "input_required" || !isObject(inputRequests)) return result;
    const shown = Object.entries(inputRequests).map(([key, question]) => {
      const { method, params = {} }: Params = Object(question);
      // The call rejects other params as invalid.
      return [key, isObject(params) ? { ...Object(question), params: toAsked(settings, method, params) } : question];
    });
    return { ...result, inputRequests: Object.fromEntries(shown) };
  }
}

/** Returns the params of a question for the caller. Throws if the other server must not ask it. */
export function toAsked({ forward = {}, name }: Settings, method: unknown, params: object): Params {
  const kind = KINDS_OF_QUESTIONS.find((kind) => String(method).startsWith(kind));
  if (kind && forward[kind] === false) {
    throw McpError.internalError(`Cannot ask the client: ${name} must not use ${kind} (forward.${kind})`);
  }
  return kind === "elicitation" ? toNamed(name, { ...params }) : { ...params };
}

/** The members of `forward` that decide about questions. The method of a question begins with the name of its member. */
const KINDS_OF_QUESTIONS = ["elicitation", "sampling", "roots"] as const;

/** Whether a server has refused a call because it can only run as a task. */
function needsTask(error: unknown): boolean {
  if (!isRemoteError(error) || error.code !== MISSING_CAPABILITY) return false;
  return Object.hasOwn(Object(Object(error.data).requiredCapabilities?.extensions), TASKS);
}

/** Without a session, the questions are in the result. */
function withoutAnswers(
  { onElicit: _, onElicitUrl: __, onSample: ___, roots: ____, ...options }: ForwardedRequest,
): Omit<ForwardedRequest, "onElicit" | "onElicitUrl" | "onSample" | "roots"> {
  return options;
}

/** Returns an elicitation whose message begins with the name of the server that asks. */
function toNamed(name: string, asked: Params): Params {
  const shown: Params = Object(showTexts(asked));
  return { ...shown, message: `${name}: ${shown.message}` };
}
