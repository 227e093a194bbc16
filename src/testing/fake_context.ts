/**
 * A context for unit tests that call handlers without a server and a client.
 */
import { toMessage } from "../core/kit/error_state.ts";
import { McpError, quote } from "../core/protocol/errors.ts";
import { isObject, type Params, type Request as Message } from "../core/protocol/jsonrpc.ts";
import type { LogLevel, Meta, ResourceContents } from "../core/protocol/types.ts";
import { Accounts } from "../server/capacity/account.ts";
import { Call, type CallHost } from "../server/call/call.ts";
import { CancelError } from "../server/call/cancel_error.ts";
import type { ForwardedRounds } from "../server/call/forward.ts";
import { InFlight } from "../server/call/in_flight.ts";
import { readLimits } from "../server/capacity/limits.ts";
import type { InnerUse } from "../server/call/inner_calls.ts";
import type { Link } from "../server/call/link.ts";
import { OnceValues } from "../server/call/once.ts";
import type { Question } from "../server/call/question.ts";
import type { RerunWatch } from "../server/call/rerun_watch.ts";
import { checkUri } from "../server/visibility/changes.ts";
import type {
  ClientInfo,
  Context,
  ListChangedOptions,
  ListName,
  OnceOptions,
  Principal,
} from "../server/call/context.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import { readPrincipal } from "../server/call/principal.ts";
import { isGranted } from "../server/call/scopes.ts";
import type { Service, ServiceEnd } from "../server/call/service.ts";

/** The options of {@linkcode fakeContext}. */
export interface FakeContextOptions {
  /**
   * The client's responses to elicitation, sampling and roots requests, by the key that the handler passes. The key for
   * `ctx.roots()` is `"roots"`. Each response is the result that a client would send, such as `{ action: "accept",
   * content: { ok: true } }`, and is validated like the response of a real client.
   */
  readonly answers?: Readonly<Record<string, unknown>>;
  /** Facts about the client. Defaults to all capabilities, and to log messages of all levels. */
  readonly client?: Partial<ClientInfo>;
  /** The caller's principal. By default, the caller is not authenticated. */
  readonly principal?: Principal;
  /** Fakes of the handler's services, by the names in `ctx.services`. Accessing a service without a fake throws. */
  readonly services?: Readonly<Record<string, unknown>>;
  /** The path parameters that `ctx.pathParams()` returns, without validation. */
  readonly pathParams?: Readonly<Record<string, unknown>>;
  /** The resources that `ctx.readResource` can read, as text or contents, by URI. Defaults to no resources. */
  readonly resources?: Readonly<Record<string, string | readonly ResourceContents[]>>;
  /** Returns what `ctx.callTool` returns. `name` is always the tool's name. By default, every call fails. */
  readonly callTool?: (name: string, input: unknown) => unknown;
  /** Returns what `ctx.getPrompt` returns. By default, every call fails. */
  readonly getPrompt?: (name: string, args: unknown) => unknown;
  /** Returns what `ctx.list` returns. By default, all lists are empty. */
  readonly list?: (kind: string) => readonly unknown[];
  /** Returns what `ctx.complete` returns. By default, every call fails. */
  readonly complete?: (ref: unknown, argument: unknown) => unknown;
  /** The value that `ctx.session()` returns. */
  readonly session?: unknown;
  /** The method of the request. Defaults to `tools/call`. */
  readonly method?: string;
  /** The parameters of the request, as a client would send them. */
  readonly params?: Meta;
  /** The HTTP request. */
  readonly http?: Request;
  /** The value of `ctx.idempotencyToken`, for a tool that has an idempotency key. */
  readonly idempotencyToken?: string;
  /** Aborting this signal cancels the call. */
  readonly signal?: AbortSignal;
}

const OPTIONS: KnownOptions<keyof FakeContextOptions> = {
  names: {
    answers: true,
    client: true,
    principal: true,
    services: true,
    pathParams: true,
    resources: true,
    callTool: "function",
    getPrompt: "function",
    list: "function",
    complete: "function",
    session: true,
    method: true,
    params: true,
    http: true,
    idempotencyToken: true,
    signal: true,
  },
  hints: { route: "pathParams" },
};

/** A context that records the calls that a handler makes. */
export interface FakeContext extends Context<never> {
  /** The progress reports whose value increases, because a server does not send other reports. */
  readonly progressed: readonly { readonly progress: number; readonly total?: number; readonly message?: string }[];
  /** The messages that the handler has logged. */
  readonly logged: readonly { readonly level: LogLevel; readonly data: unknown; readonly logger?: string }[];
  /** The changes that the handler has announced with `ctx.server`. */
  readonly announced: readonly (
    | { readonly kind: "resource"; readonly uri: string }
    | ({ readonly kind: "list"; readonly list: ListName } & ListChangedOptions)
  )[];
  /** The elicitation, sampling and roots requests of the handler, in order. */
  readonly asked: readonly { readonly key: string; readonly method: string; readonly params: Meta }[];
  /** The functions passed to `ctx.defer`, in order, which run only if the test calls them. */
  readonly deferred: readonly ((end: ServiceEnd) => unknown)[];
  /** Cancels the call, as if the client had cancelled it. */
  cancel(message?: string): void;
}

/**
 * Creates a context that a test can pass to `tool.run(input, ctx)`, or to the functions of a resource or prompt.
 *
 * ```ts
 * import { tool } from "@x/mcp";
 * import { fakeContext } from "@x/mcp/testing";
 * import { z } from "zod";
 *
 * const remove = tool({
 *   name: "remove",
 *   input: z.object({ path: z.string() }),
 *   run: async ({ path }, ctx) => {
 *     const sure = await ctx.elicit("sure", { message: `Remove ${path}?`, schema: z.object({ yes: z.boolean() }) });
 *     return sure.action === "accept" && sure.content.yes ? "removed" : "kept";
 *   },
 * });
 *
 * const ctx = fakeContext({ answers: { sure: { action: "accept", content: { yes: true } } } });
 * const text = await remove.run({ path: "a.txt" }, ctx);
 * if (text !== "removed" || ctx.asked[0].params.message !== "Remove a.txt?") throw new Error("not removed");
 * ```
 */
export function fakeContext(options: FakeContextOptions = {}): FakeContext {
  return makeContext(options, new Rounds());
}

/**
 * Connects the contexts of repeated runs of a handler. This base class is for a single run, in which each question is
 * answered immediately.
 */
export class Rounds {
  /** Finds work that the handler repeats in a later run. */
  readonly reruns?: RerunWatch;

  /** The requests of `ctx.forward` that have not ended, by key. */
  readonly forwarded: ForwardedRounds = new Map();

  readonly #made = new OnceValues({
    limits: readLimits().calls,
    reserve: () => ({ resize() {}, end() {} }),
  });

  /** Called at the beginning of each run. */
  begin(_call: Call): void {}

  /** Returns the value that an earlier run has created under this key, or creates the value. */
  once(key: string, make: () => unknown, options?: OnceOptions): Promise<unknown> {
    return this.#made.get(key, make, options);
  }

  /** Throws if the run must end with this question, because the question is answered in the next run. */
  ask(_key: string, _question: Question): void | Promise<void> {}
}

export function makeContext(options: FakeContextOptions, rounds: Rounds): FakeContext {
  checkOptions("make a context", options, OPTIONS);
  const { client, method = "tools/call", params = {}, idempotencyToken, signal } = options;
  const records: Records = { progressed: [], logged: [], announced: [], asked: [], deferred: [] };
  const meta = { progressToken: "fake", ...isObject(params._meta) ? params._meta : {} };
  const request = { kind: "request" as const, id: 1, method, params: { ...params, _meta: meta }, weight: 0 };
  const call = new FakeCall({ options, rounds, records }, request, { ...CLIENT, ...client });
  rounds.begin(call);
  if (/^(tools\/call|prompts\/get|resources\/read)$/.test(method)) call.allowQuestions();
  if (idempotencyToken !== undefined) call.identifyEffects(idempotencyToken);
  const stop = (message?: string) => Call.prototype.cancel.call(call, new CancelError("client", message));
  const onAbort = () => stop(toMessage(signal?.reason));
  if (signal?.aborted) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  const services = toFakes(options.services);
  // The cast is safe, because the test is responsible for the types of its fakes.
  const get = async <T>({ name }: Service<T>) => await (services[name] as T);
  // Define these properties, because assignments cannot replace the call's getters with the same names.
  Object.defineProperties(call, { services: { value: services }, get: { value: get } });
  return Object.assign(call, { ...records, cancel: stop });
}

type Records = {
  readonly [Name in "progressed" | "logged" | "announced" | "asked" | "deferred"]: FakeContext[Name][number][];
};

interface FakeParts {
  readonly options: FakeContextOptions;
  readonly rounds: Rounds;
  readonly records: Records;
}

/** A call that records notifications and questions instead of sending them. */
class FakeCall extends Call {
  readonly #parts: FakeParts;

  constructor(parts: FakeParts, request: Message, client: ClientInfo) {
    const { options, rounds, records } = parts;
    // The cast is safe, because the test is responsible for the type of `options.session`.
    const session = () => () => options.session as never;
    super({ host: makeHost(options, rounds, records), session }, makeLink(options), request, client);
    this.#parts = parts;
  }

  notify(name: string, { progressToken: _token, ...rest }: Params): undefined {
    const { progressed, logged } = this.#parts.records;
    const sent = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
    // The cast is safe, because `Call` creates the parameters.
    if (name === "notifications/progress") progressed.push(sent as FakeContext["progressed"][number]);
    else logged.push(sent as FakeContext["logged"][number]); // The cast is safe, because `Call` creates the parameters.
  }

  async askClient(key: string, question: Question): Promise<unknown> {
    const { records, rounds, options: { answers = {} } } = this.#parts;
    records.asked.push({ key, method: question.method, params: question.params });
    await rounds.ask(key, question);
    if (!Object.hasOwn(answers, key)) {
      throw new TypeError(
        `Cannot answer the question ${
          JSON.stringify(key)
        }: the option answers does not contain this key; add the key with an answer`,
      );
    }
    const checked = await question.read(answers[key]);
    if (checked.problem === undefined) return checked.value;
    throw new TypeError(
      `Cannot answer the question ${JSON.stringify(key)}: ${checked.problem}; correct the answer in the option answers`,
    );
  }

  makeOnce(key: string, make: () => unknown, options?: OnceOptions): Promise<unknown> {
    return this.#parts.rounds.once(key, make, options);
  }

  override get forwarded(): ForwardedRounds {
    return this.#parts.rounds.forwarded;
  }
}

function makeHost(options: FakeContextOptions, rounds: Rounds, records: Records): CallHost {
  const { pathParams } = options;
  // The cast is safe, because the test is responsible for the type of `pathParams`.
  const readFake = () => pathParams as never;
  return {
    server: {
      resourceUpdated(uri, options) {
        checkUri(uri);
        records.announced.push({ kind: "resource", uri, ...options });
      },
      listChanged: (list, options) => void records.announced.push({ kind: "list", list, ...options }),
      handlers: { add() {}, remove() {}, list: () => [], get: () => undefined, enable() {}, disable() {} },
    },
    pathParams: pathParams && readFake,
    reruns: rounds.reruns,
    recheck: () => undefined,
    isGranted: (link, scopes) => isGranted({}, link, scopes),
    defer: (_call, run) => void records.deferred.push(run),
    // deno-lint-ignore require-await -- rejects where the real one does
    callInner: async (_call, use) => callFake(options, use),
  };
}

function callFake(
  { resources = {}, list = () => [], ...fakes }: FakeContextOptions,
  { name, given }: InnerUse,
): unknown {
  const [first, second] = given;
  switch (name) {
    case "readResource": {
      const uri = String(first);
      const found = Object.hasOwn(resources, uri) ? resources[uri] : undefined;
      if (found === undefined) throw McpError.resourceNotFound(uri);
      return typeof found === "string" ? [{ uri, text: found }] : found;
    }
    case "list":
      return list(String(first));
    // A call without an era has no earlier run.
    case "repeatReads":
    case "shareList":
      return;
  }
  const { callTool, getPrompt, complete } = fakes;
  const called = typeof first === "string" ? first : String(Object(first).name);
  if (name === "callTool" && callTool) return callTool(called, second);
  if (name === "getPrompt" && getPrompt) return getPrompt(called, second);
  if (name === "complete" && complete) return complete(first, second);
  throw new TypeError(`Cannot use ctx.${name}: the option ${name} is missing; add a function that returns the result`);
}

function makeLink({ principal, http }: FakeContextOptions): Link {
  return {
    transport: "memory",
    inFlight: new InFlight(),
    account: new Accounts({ limits: readLimits() }).find(),
    principal: principal === undefined ? undefined : readPrincipal(principal, "fakeContext()"),
    http: http && { request: http },
    streams: true,
    send: () => undefined,
    wait() {},
    open() {},
    release() {},
  };
}

/** Wraps fakes, so that accessing a service without a fake throws an error that names the service. */
function toFakes(fakes: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
  return new Proxy({ ...fakes }, {
    get(fakes: Readonly<Record<PropertyKey, unknown>>, name) {
      if (Object.hasOwn(fakes, name) || typeof name === "symbol") return fakes[name];
      throw new TypeError(
        `Cannot use service ${quote(name)}: the option services contains no fake with this name; add a fake`,
      );
    },
  });
}

const CLIENT: ClientInfo = {
  version: "2026-07-28",
  info: { name: "fake", version: "1.0.0" },
  capabilities: { elicitation: { form: {}, url: {} }, sampling: { context: {}, tools: {} }, roots: {} },
  logLevel: "debug",
};
