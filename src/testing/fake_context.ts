/**
 * A context for unit tests of handlers, without a server or a client.
 *
 * @module
 */
import { McpError, quote } from "../protocol/errors.ts";
import { isObject, type Params, type Request as Message } from "../protocol/jsonrpc.ts";
import type { LogLevel, Meta, ResourceContents } from "../protocol/types.ts";
import { Accounts } from "../core/capacity/account.ts";
import { Call, type CallHost } from "../core/call/call.ts";
import { CancelError } from "../core/call/cancel_error.ts";
import { InFlight } from "../core/call/in_flight.ts";
import { readLimits } from "../core/capacity/limits.ts";
import type { Link } from "../core/call/link.ts";
import { OnceValues } from "../core/call/once.ts";
import type { Question } from "../core/call/question.ts";
import type { RerunWatch } from "../core/call/rerun_watch.ts";
import { checkUri } from "../core/visibility/changes.ts";
import type { ClientFacts, Context, ListChangedOptions, ListName, Principal } from "../core/call/context.ts";
import { checkOptions, type KnownOptions } from "../core/call/known_options.ts";
import { readPrincipal } from "../core/call/principal.ts";
import { isGranted } from "../core/call/scopes.ts";
import type { Service, ServiceEnd } from "../core/call/service.ts";

/** The options of {@linkcode fakeContext}. */
export interface FakeContextOptions {
  /**
   * The client's responses, by the key of the question. The key for `ctx.roots()` is `"roots"`. A response is the
   * result that a client sends, such as `{ action: "accept", content: { ok: true } }`, and is checked in the same way.
   */
  readonly answers?: Readonly<Record<string, unknown>>;
  /** The client. Defaults to a client with all capabilities that wants all log messages. */
  readonly client?: Partial<ClientFacts>;
  /** The caller. Defaults to an unauthenticated caller. */
  readonly principal?: Principal;
  /**
   * Fakes of the handler's services, by the names under which the handler uses them. Using a service without a fake
   * throws.
   */
  readonly services?: Readonly<Record<string, unknown>>;
  /** The parameters of the path, for `ctx.route()`. They are not checked. */
  readonly route?: Readonly<Record<string, unknown>>;
  /** The resources for `ctx.readResource`, as text or contents by URI. Other resources do not exist. */
  readonly resources?: Readonly<Record<string, string | readonly ResourceContents[]>>;
  /** The value that `ctx.session()` returns. */
  readonly session?: unknown;
  /** The method. Defaults to `tools/call`. */
  readonly method?: string;
  /** The parameters as the client sends them. */
  readonly params?: Meta;
  /** The HTTP request. */
  readonly http?: Request;
  /** The token of a tool that has an idempotency key. */
  readonly idempotencyToken?: string;
  /** Cancels the call when it is aborted. */
  readonly signal?: AbortSignal;
}

const OPTIONS: KnownOptions<keyof FakeContextOptions> = {
  names: {
    answers: true,
    client: true,
    principal: true,
    services: true,
    route: true,
    resources: true,
    session: true,
    method: true,
    params: true,
    http: true,
    idempotencyToken: true,
    signal: true,
  },
};

/** A context that records the work of a handler. */
export interface FakeContext extends Context<never> {
  /** The progress reports. Values that do not increase are dropped, as for a real client. */
  readonly progressed: readonly { readonly progress: number; readonly total?: number; readonly message?: string }[];
  /** The log messages. */
  readonly logged: readonly { readonly level: LogLevel; readonly data: unknown; readonly logger?: string }[];
  /** The changes that were announced with `ctx.server`. */
  readonly announced: readonly (
    | { readonly kind: "resource"; readonly uri: string }
    | ({ readonly kind: "list"; readonly list: ListName } & ListChangedOptions)
  )[];
  /** The questions, in the order in which the handler asked them. */
  readonly asked: readonly { readonly key: string; readonly method: string; readonly params: Meta }[];
  /** The functions that were passed to `defer`, in order. They run only if the test calls them. */
  readonly deferred: readonly ((end: ServiceEnd) => unknown)[];
  /** Cancels the call. */
  cancel(message?: string): void;
}

/**
 * Creates a context for `tool.run(input, ctx)`, and for the functions of resources and prompts.
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

/** The runs of a handler. This class has a single run, in which each question is answered at once. */
export class Rounds {
  /** Finds repeated work. */
  readonly reruns?: RerunWatch;

  readonly #made = new OnceValues({ limits: readLimits().calls });

  /** Called at the beginning of each run. */
  begin(_call: Call): void {}

  /** Returns the value that an earlier run made under this key. If there is no such value, creates the value. */
  once(key: string, make: () => unknown): Promise<unknown> {
    return this.#made.get(key, make);
  }

  /** Throws to end this run if the question is to be answered in the next run. */
  ask(_key: string, _question: Question): void | Promise<void> {}
}

/** Creates the context of one of several runs. */
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
  // Safe, because the test is responsible for the types of its fakes.
  const get = async <T>({ name }: Service<T>) => await (services[name] as T);
  // Define properties, because the call has getters of these names, which an assignment cannot replace.
  Object.defineProperties(call, { services: { value: services }, get: { value: get } });
  return Object.assign(call, { ...records, cancel: stop });
}

function toMessage(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason);
}

/** The lists of a fake context, which record the work of a handler. */
type Records = {
  readonly [Name in "progressed" | "logged" | "announced" | "asked" | "deferred"]: FakeContext[Name][number][];
};

/** The parts of a fake context. */
interface FakeParts {
  readonly options: FakeContextOptions;
  readonly rounds: Rounds;
  readonly records: Records;
}

/** A call that records what its handler does. */
class FakeCall extends Call {
  readonly #parts: FakeParts;

  constructor(parts: FakeParts, request: Message, client: ClientFacts) {
    const { options, rounds, records } = parts;
    // Safe, because the test is responsible for the type of its value.
    const session = () => () => options.session as never;
    super({ host: makeHost(options, rounds, records), session }, makeLink(options), request, client);
    this.#parts = parts;
  }

  notify(name: string, { progressToken: _token, ...rest }: Params): undefined {
    const { progressed, logged } = this.#parts.records;
    const sent = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
    // Safe, because `Call` creates the parameters of both methods.
    if (name === "notifications/progress") progressed.push(sent as FakeContext["progressed"][number]);
    else logged.push(sent as FakeContext["logged"][number]); // Safe, see above.
  }

  async askClient(key: string, question: Question): Promise<unknown> {
    const { records, rounds, options: { answers = {} } } = this.#parts;
    records.asked.push({ key, method: question.method, params: question.params });
    await rounds.ask(key, question);
    if (!Object.hasOwn(answers, key)) {
      throw new TypeError(`Cannot answer ${JSON.stringify(key)}: there is no such answer; add it to answers`);
    }
    const checked = await question.read(answers[key]);
    if (checked.problem === undefined) return checked.value;
    throw new TypeError(`Cannot answer ${JSON.stringify(key)}: ${checked.problem}; correct it in answers`);
  }

  makeOnce(key: string, make: () => unknown): Promise<unknown> {
    return this.#parts.rounds.once(key, make);
  }
}

function makeHost({ route, resources = {} }: FakeContextOptions, rounds: Rounds, records: Records): CallHost {
  // Safe, because the test is responsible for the type of its fake.
  const readFake = () => route as never;
  return {
    server: {
      resourceUpdated(uri) {
        checkUri(uri);
        records.announced.push({ kind: "resource", uri });
      },
      listChanged: (list, options) => void records.announced.push({ kind: "list", list, ...options }),
      handlers: { add() {}, remove() {}, list: () => [], get: () => undefined, enable() {}, disable() {} },
    },
    route: route && readFake,
    reruns: rounds.reruns,
    recheck: () => undefined,
    isGranted: (link, scopes) => isGranted({}, link, scopes),
    defer: (_call, run) => void records.deferred.push(run),
    // deno-lint-ignore require-await -- rejects where the real one does
    async readResource(_call, uri) {
      const found = Object.hasOwn(resources, uri) ? resources[uri] : undefined;
      if (found === undefined) throw McpError.resourceNotFound(uri);
      return typeof found === "string" ? [{ uri, text: found }] : found;
    },
  };
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

/** Wraps fakes, so that using a missing fake throws an error with its name. */
function toFakes(fakes: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
  return new Proxy({ ...fakes }, {
    get(fakes: Readonly<Record<PropertyKey, unknown>>, name) {
      if (Object.hasOwn(fakes, name) || typeof name === "symbol") return fakes[name];
      throw new TypeError(`Cannot use service ${quote(name)}: there is no fake; add it to services of fakeContext`);
    },
  });
}

const CLIENT: ClientFacts = {
  version: "2026-07-28",
  info: { name: "fake", version: "1.0.0" },
  capabilities: { elicitation: { form: {}, url: {} }, sampling: { context: {}, tools: {} }, roots: {} },
  logLevel: "debug",
};
