/**
 * Creates layers, and sorts the steps of a handler's layers.
 */
import { ignoreRejections, isStrayPromise, toHandled } from "../../core/protocol/promises.ts";
import { LazyModule } from "../../core/protocol/lazy_module.ts";
import type { Account } from "../capacity/account.ts";
import { keep } from "../capacity/charges.ts";
import type { Call } from "../call/call.ts";
import type { Context } from "../call/context.ts";
import { toCall } from "../call/find_call.ts";
import { readPlan } from "../call/plans.ts";
import { ADDED, CALL, INTERNALS, LISTED } from "../../core/internals.ts";
import { checkOptions, isPlain, type KnownOptions, type OptionRule, show } from "../../core/known_options.ts";
import { type Middleware, onlyMethods, withName } from "../call/middleware.ts";
import type { Schema } from "../../core/schema/schema.ts";
import type { NoServices } from "../call/service.ts";
import type { GroupedOptions, Handler, HandlerLayers, ShownEntry } from "../visibility/feature.ts";
import type { FeatureParts } from "../visibility/feature_parts.ts";
import type { GuardSteps, HandlerGuards } from "../visibility/guards.ts";
import { withAlso } from "../visibility/registry.ts";
import type { AddedInternals } from "../engine/added.ts";
import type {
  ExtensionPart,
  HandlerInfo,
  KeepOptions,
  KeptValue,
  Layer,
  LayeredHandler,
  LayeredOptions,
  LayerRun,
  Steps,
  Unlayered,
} from "../engine/layers.ts";
import {
  type AnySteps,
  type Bound,
  type CallParts,
  StepCall,
  toCore,
  toStarter,
  toStarters,
  type With,
  withState,
} from "./bound_layer.ts";
import { type CompiledOptions, describeLayers, type Layered, toHandlerInfo, toMeta } from "./handler_layers.ts";
import type { IdempotentTool } from "./idempotent_tool.ts";
import { ServedHandlers } from "./layered_server.ts";
import { toApply } from "./runner_steps.ts";

/**
 * Creates a layer. `make` is called once for each handler that has the layer, and returns the layer's steps.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { layer } from "@x/mcp/layers";
 *
 * const timed = layer(({ key }) => ({
 *   name: "timed",
 *   run: async ({ server: { clock } }, next) => {
 *     const start = clock.now();
 *     const value = await next();
 *     console.error(key, clock.now() - start);
 *     return value;
 *   },
 * }));
 * const hello = tool({ name: "hello", use: [timed], run: () => "Hello!" });
 *
 * export default createServer({ name: "s", version: "1.0.0", handlers: [hello] });
 * ```
 */
export function layer<Input = unknown, Services = NoServices, State = undefined, Shared = NoServices>(
  make: (handler: HandlerInfo) => Steps<Input, Services, State, Shared>,
): Layer<Input, Services, Shared> {
  if (typeof make !== "function") {
    throw new TypeError(
      `Cannot create a layer: the argument is ${
        show(make)
      }; pass a function that returns the steps: layer(() => ({ … }))`,
    );
  }
  const made = (handler: HandlerInfo) => make(handler);
  // The cast is safe, because only the steps of the layer get the state that its `start` returns.
  return Object.assign(made, { [INTERNALS]: { apply } }) as unknown as Layer<Input, Services, Shared>;
}

export function extensionLayer(extension: ExtensionPart, steps: Omit<Steps, "name">): Layer {
  const { id } = extension;
  return Object.assign(() => ({ name: id, ...steps }), { [INTERNALS]: { apply, extension } });
}

const POSITIVE: OptionRule = { test: (ms) => typeof ms === "number" && ms > 0, remedy: "it must be a number above 0" };

const STEPS: KnownOptions<keyof AnySteps> = {
  names: {
    name: "text",
    start: "function",
    timeoutMs: POSITIVE,
    limit: "function",
    enter: "function",
    around: "function",
    methods: "texts",
    onInput: "function",
    inside: "function",
    key: "function",
    rerun: "boolean",
    ttlMs: POSITIVE,
    run: "function",
    rank: ["ask", "reuse", "repeat", "break"],
    onOutput: "function",
    result: "function",
    argument: true,
    member: true,
    list: true,
    requires: "list",
    handlers: "list",
    verify: "function",
    warn: "function",
  },
  hints: {
    before: "onInput",
    after: "onOutput",
    input: "onInput",
    wrap: "around",
    onCall: "around",
    check: "verify",
  },
};

/** The ranks of `run` steps, from the outermost. A step without a rank is inside of all of these. */
const RANKS: readonly (AnySteps["rank"])[] = ["ask", "reuse", "repeat", "break", undefined];

/** The members that belong to a step. */
const MEMBERS = [["methods", "around"], ["rerun", "key"], ["ttlMs", "key"], ["rank", "run"]] as const;

const OF_TOOLS = ["key", "run"] as const;

/** What the steps of a layer that adds an argument or a member do not have for other handlers than tools. */
const NO_TOOL = { key: undefined, rerun: undefined, ttlMs: undefined, run: undefined, rank: undefined };

/** The steps that a method of an extension has, and the steps that also stand around a completion. */
const METHOD: readonly string[] = ["name", "start", "timeoutMs", "limit", "enter", "result", "handlers"];
const COMPLETION = ["timeoutMs", "limit", "enter", "result"] as const;

/** The options of all kinds of handlers, of which each kind has some. */
interface Options
  extends Omit<LayeredOptions, "use">, Pick<GroupedOptions, typeof ADDED | typeof LISTED>, CompiledOptions {
  readonly use?: readonly Middleware[];
  readonly run?: Run;
  readonly layers?: HandlerLayers;
}

type AnyLayer = Bound["layer"];

function isLayer(item: unknown): item is AnyLayer {
  return INTERNALS in Object(item);
}

type Run = (input: never, ctx: Context<never>) => unknown;

function apply<O extends LayeredOptions>(options: O, about: LayeredHandler): Unlayered<O> {
  const handler = toHandlerInfo(about);
  const shown: ShownEntry = {};
  const items = (options.use ?? []).map((item, at): Middleware | Bound =>
    // The cast is safe, because the items of `use` that are not layers are middleware.
    isLayer(item) ? { ...bind(item, handler, at), shown } : item as Middleware
  );
  const layers = items.filter((item) => typeof item !== "function");
  const runs = layers.filter((bound): bound is With<"run"> => !!bound.steps.run)
    .sort((a, b) => RANKS.indexOf(a.steps.rank) - RANKS.indexOf(b.steps.rank));
  const applied = { handler, items, layers, runs, shown };
  const changed: LayeredOptions = handler.kind === "server"
    ? applyToServer(options, applied)
    // The cast is safe, because each of these options is an option of a kind of handler.
    : applyToHandler(options as Options, applied);
  // The cast is safe, because the changed options have all options of `options`.
  return changed as Unlayered<O>;
}

/** Reads the steps of the layer at the index `at` of `use`. Throws if the handler cannot have them. */
function bind(layer: AnyLayer, handler: HandlerInfo, at: number): Bound {
  const made: AnySteps = layer(handler);
  const { key, kind } = handler;
  if (isStrayPromise(made)) {
    throw new TypeError(`Cannot make ${key}: the function of a layer returned a promise; load what it needs in start`);
  }
  if (typeof made !== "object" || !made || !isPlain(made)) {
    throw new TypeError(`Cannot make ${key}: a layer returned ${show(made)}; return an object with its steps`);
  }
  const { around, handlers } = layer[INTERNALS].ofServer ?? {};
  const isForTools = made.argument !== undefined || made.member !== undefined;
  const steps = {
    ...made,
    // Groups and servers also have other handlers.
    ...isForTools && !["tool", "server", "method"].includes(kind) && NO_TOOL,
    // These steps belong to the whole server.
    ...around && { around: undefined, methods: undefined },
    ...handlers && { handlers: undefined },
  };
  checkOptions(`make ${key}: a layer has wrong steps`, steps, STEPS);
  const { name } = steps;
  const refuse = (state: string) => new TypeError(`Cannot make ${key}: the layer ${show(name)} ${state}`);
  if (typeof name !== "string" || !name) {
    throw new TypeError(`Cannot make ${key}: a layer has no name; return a name with its steps`);
  }
  const foreign = kind === "tool" || kind === "server" ? undefined : OF_TOOLS.find((step) => steps[step]);
  if (foreign) throw refuse(`has the step ${foreign}, which only a tool has; use it for tools only`);
  if (kind === "method") {
    if (layer[INTERNALS].extension) {
      throw refuse("belongs to an extension; use it for tools, resources and prompts only");
    }
    const other = Object.keys(steps).find((step) => !METHOD.includes(step) && Object(steps)[step] !== undefined);
    if (other) throw refuse(`has the step ${other}, which a method of an extension does not have; use another layer`);
  }
  for (const [member, step] of MEMBERS) {
    if (steps[member] === undefined || steps[step]) continue;
    throw refuse(`has ${member}, but no step ${step} to which it applies; omit ${member}`);
  }
  for (const kind of ["argument", "member"] as const) {
    const problem = findTokenProblem(kind, steps[kind]);
    if (problem) throw refuse(problem);
  }
  const { start } = steps;
  // The part has only the name of the layer. With the name of a handler, a new order of the handlers would lose its data.
  const part = `layer ${JSON.stringify(name)}`;
  if (start) layer[INTERNALS].starter ??= toStarter(start, { id: `${part} ${at + 1} of ${key}`, part });
  return { layer, steps, place: key };
}

/** Checks that a member of a layer's steps is a token of the same kind. Returns the problem. */
function findTokenProblem(kind: AddedInternals["kind"], token: unknown): string | undefined {
  const { kind: own }: Partial<AddedInternals> = Object(Object(token)[INTERNALS]);
  if (token === undefined || own === kind) return;
  return `has the ${kind} ${show(token)}; create it with ${kind}({ name, schema })`;
}

function applyToHandler(given: Options, applied: Layered): Options {
  const added = addTokens(given, applied);
  const options = { ...given, ...added?.schemas };
  const { handler, items, layers, runs, shown } = applied;
  const { run, [ADDED]: change = (added: Handler) => added } = options;
  const { key: place } = handler;
  const use = items.flatMap((item) => typeof item === "function" ? item : toMiddleware(item, item.steps.inside));
  const guards = toGuards(layers, use.length > 0);
  // Two layers of an extension register it once.
  const registers = new Map(
    layers.flatMap(({ layer: { [INTERNALS]: { extension } } }) =>
      extension?.register ? [[extension.id, extension.register]] : []
    ),
  );
  return {
    ...options,
    use: guards?.isWrapped ? [...use, noteResult] : use,
    ...run && runs.length && { run: wrapRun(run, runs) },
    _meta: toMeta(options, place, layers),
    layers: {
      ...describeLayers(options, applied, added?.problems),
      addArguments: added?.addArguments,
      report: added?.problems && ((core) => reportAbsent(added.problems, core)),
      shown,
      also: [
        ...layers.flatMap(({ layer, steps }) => [
          ...(steps.handlers ?? []).map(change).flatMap(withAlso),
          ...toStarters(layer, place),
        ]),
        ...[...registers.values()].map((register) => register(place)),
      ],
      guards,
      seesResults: layers.some(seesResult),
      keyed: toKeyed(layers, handler),
      apply: toApply(layers, {
        options,
        place,
        around: layers.flatMap((bound) => toMiddleware(bound, bound.steps.around)),
        open: added?.open,
      }),
      get completion() {
        return toCompletion(applied);
      },
    },
  };
}

/** Adds the arguments and members of the layers to the schemas of a tool. Returns `undefined` if there are none. */
function addTokens(options: Options, { handler: { kind, key: place }, layers, shown }: Layered) {
  if (kind !== "tool") return;
  const list = (kind: "argument" | "member") =>
    layers.flatMap(({ steps: { name: layer, [kind]: token } }) => token ? [{ token, layer }] : []);
  const tokens = { arguments: list("argument"), members: list("member") };
  const [first] = [...tokens.arguments, ...tokens.members];
  if (!first) return;
  const { input, output, [LISTED]: listed } = options;
  const isForeign = listed?.foreign !== undefined;
  const { add } = first.token[INTERNALS];
  const parts = add({ place, ...tokens, input, output, isForeign });
  const { absent, open } = parts;
  const all = [...tokens.arguments, ...tokens.members];
  shown.added = new Map(all.map(({ token }) => [token, !absent.has(token)]));
  const schemas = { ...parts.input && { input: parts.input }, ...parts.output && { output: parts.output } };
  const problems = [...absent.values()].map((state) => `Cannot change ${place}: ${state}`);
  const addArguments = (input: Schema) => add({ place, ...tokens, members: [], input, isForeign }).input ?? input;
  return { schemas, open, addArguments, problems: problems.length ? problems : undefined };
}

/** The key of the problems that were reported, which each server has once. */
const REPORTED = {};

/** Maximum number of problems that a server reports. */
const MAX_PROBLEMS = 20;

function reportAbsent(problems: readonly string[] = [], core: FeatureParts): void {
  // Bound: `MAX_PROBLEMS`.
  const reported = core.state.slot(REPORTED, () => new Set<string>());
  for (const problem of problems) {
    if (reported.has(problem) || reported.size >= MAX_PROBLEMS) continue;
    reported.add(problem);
    core.report(new TypeError(problem));
  }
}

/** Whether a layer gets the final result of each call. Only the user's consent does not depend on the result. */
function seesResult({ layer, steps: { around, key, run, rank, onOutput, result } }: Bound): boolean {
  return !!(layer[INTERNALS].extension?.around || around || key || run && rank !== "ask" || onOutput || result);
}

function toCompletion({ handler, items }: Layered): HandlerLayers["completion"] {
  const { key: place } = handler;
  const about: HandlerInfo = { ...handler, kind: "completion", key: `completion of ${place}` };
  const all = items.flatMap((item, at) =>
    typeof item !== "function" && COMPLETION.some((step) => item.steps[step] !== undefined)
      ? { ...bind(item.layer, about, at), place }
      : []
  );
  return all.length ? toApply(all, { options: {}, place, around: [] }) : undefined;
}

function applyToServer(
  options: LayeredOptions,
  { handler, items, layers }: Layered,
): Unlayered<LayeredOptions> {
  const use = items.flatMap((item) => {
    if (typeof item === "function") return item;
    const { steps: { around, methods } } = item;
    return toMiddleware(item, around).map((middleware) => methods ? onlyMethods(methods, middleware) : middleware);
  });
  const parts = layers.map(toPart);
  const starters = layers.flatMap(({ layer }) => toStarters(layer, handler.key));
  const added = layers.flatMap(({ steps }) => steps.handlers ?? []);
  return { ...options, use, [INTERNALS]: new ServedHandlers(parts, starters, added) };
}

/** Returns a layer of a server for its handlers. */
function toPart({ layer, steps: ofServer }: Bound): AnyLayer {
  return Object.assign((handler: HandlerInfo) => layer(handler), { [INTERNALS]: { ...layer[INTERNALS], ofServer } });
}

function toMiddleware(bound: Bound, wrap: AnySteps["inside"]): Middleware[] {
  if (!wrap) return [];
  return [withName((ctx, next) => withState(bound, ctx, (state) => wrap(ctx, next, state)), bound.steps.name)];
}

function isOfServer({ layer }: Bound): boolean {
  return !!layer[INTERNALS].ofServer;
}

/** The innermost middleware, which notes what the middleware gets from `next`. */
const noteResult: Middleware = async (ctx, next) => {
  const result = await next();
  toCall(ctx, "run middleware").guard?.noteResult(result);
  return result;
};

function toGuards(layers: readonly Bound[], hasMiddleware: boolean): HandlerGuards | undefined {
  if (!layers.some(({ steps: { onInput, onOutput } }) => onInput || onOutput)) return;
  const toSteps = (some: readonly Bound[]): GuardSteps => ({
    input: some.flatMap(toInputGuard),
    // The outermost layer gets the output last.
    output: some.flatMap(toOutputGuard).reverse(),
  });
  return {
    own: toSteps(layers.filter((bound) => !isOfServer(bound))),
    outer: toSteps(layers.filter(isOfServer)),
    isWrapped: hasMiddleware && layers.some(({ steps }) => steps.onOutput),
  };
}

function toInputGuard(bound: Bound): GuardSteps["input"] {
  const { onInput } = bound.steps;
  // The cast is safe, because the type of the handler requires layers of its input.
  return onInput ? [(input, ctx) => withState(bound, ctx, (state) => onInput(input as never, ctx, state))] : [];
}

function toOutputGuard(bound: Bound): GuardSteps["output"] {
  const { onOutput } = bound.steps;
  if (!onOutput) return [];
  const guard: GuardSteps["output"][number] = (output, ctx, part) =>
    withState(bound, ctx, (state) => onOutput(output, ctx, part, state));
  return [withName(guard, bound.steps.name)];
}

/** The code that runs calls with a key. It is loaded when a client first calls a tool with keys. */
const lazyIdempotentCall = /* @__PURE__ */ new LazyModule(() => import("./idempotent_call.ts"));

/** Milliseconds for which a key is remembered. */
const KEY_TTL_MS = 600_000;

function toKeyed(layers: readonly Bound[], { key: place, name }: HandlerInfo): HandlerLayers["keyed"] {
  const [bound, other] = layers.filter(({ steps }) => steps.key);
  if (other) {
    const names = `${bound.steps.name} and ${other.steps.name}`;
    throw new TypeError(`Cannot make ${place}: the layers ${names} both have the step key; use only one of them`);
  }
  const { key: read, rerun, ttlMs = KEY_TTL_MS } = bound?.steps ?? {};
  if (!read) return;
  const isGuarded = layers.some(({ steps }) => steps.onOutput);
  const key: IdempotentTool["key"] = (input, ctx) => withState(bound, ctx, (state) => read(input, ctx, state));
  return (invoke, services) => {
    const { isPlanned } = bound.layer[INTERNALS];
    const tool: IdempotentTool = { place, name, services, key, isGuarded, isPlanned, rerun, ttlMs };
    return async (...given) => (await lazyIdempotentCall.load()).runIdempotent(tool, invoke, given);
  };
}

/** Wraps a tool's `run` function in the steps, of which the first is the outermost. */
function wrapRun(run: Run, all: readonly With<"run">[]): Run {
  return (input, given) => {
    // Find the call only once, because the address of its client is unknown after the client has disconnected.
    const call = toCall(given, "run a layer");
    const runFrom = (at: number, ctx: Context<never>, consents = 0, outer?: Watched): unknown => {
      // A layer may call `next()` late.
      if (call.ended) throw call.endError;
      const bound = all[at];
      if (!bound) return run(input, ctx);
      // The answer to a step that asks for consent is not part of the run that other steps wrap.
      const watched = outer ?? watchRounds(ctx, call, consents);
      const before = countAsked(call);
      const next = () => {
        const value = bound.steps.rank === "ask"
          ? runFrom(at + 1, watched.ctx, consents + countAsked(call) - before)
          : runFrom(at + 1, watched.ctx, consents, watched);
        return value instanceof Promise ? toHandled(value) : value;
      };
      const parts = { bound, input, ctx, call, watched };
      return withState(bound, ctx, (state) => bound.steps.run(new StepRun({ ...parts, state }), next));
    };
    return runFrom(0, given);
  };
}

interface RunParts extends CallParts {
  readonly input: never;
  readonly ctx: Context<never>;
  readonly watched: Watched;
}

class StepRun extends StepCall implements LayerRun<never, never, never> {
  readonly #parts: RunParts;

  constructor(parts: RunParts) {
    super(parts);
    this.#parts = parts;
  }

  get input(): never {
    return this.#parts.input;
  }

  get plan(): unknown {
    return readPlan(this.#parts.call)?.changes;
  }

  override get ctx(): Context<never> {
    return this.#parts.ctx;
  }

  get timeoutMs(): number {
    const { call } = this.#parts;
    return call.timeoutMs ?? toCore(call).limits.calls.timeoutMs;
  }

  get usesRounds(): boolean {
    return this.#parts.watched.hasRounds();
  }

  get reads(): LayerRun["reads"] {
    return this.#parts.call.reads ?? [];
  }

  get keep(): LayerRun["keep"] {
    const { call } = this.#parts;
    return (bytes, options) => keepValue(bytes, options, { account: call.link.account, core: toCore(call) });
  }
}

interface KeptFor {
  readonly account: Account;
  readonly core: FeatureParts;
}

// The functions that live as long as the value are created here, and not in a method of the run. Otherwise they would
// keep the call and its request in memory.
function keepValue(
  bytes: number,
  { ttlMs, drop, limit }: KeepOptions,
  { account, core }: KeptFor,
): KeptValue | undefined {
  const share = limit.bytes / 4;
  const pot = account.pot({ name: "handler.cacheBytes", of: limit.of, total: limit.bytes, share, isCache: true });
  const amounts = [[account.memory, bytes], [pot, Math.max(bytes, limit.least)]] as const;
  const charge = keep(core, account, amounts, { ttlMs, drop: () => runDrop(drop, core) });
  return charge && { use: (ctx) => charge.use(toCall(ctx, "run a layer").link.account), end: () => charge.end() };
}

/**
 * Returns whether `drop` has released its value. If `drop` throws or returns no boolean, the value counts as in use
 * until it expires. Without the `try`, the error would fail the call of another client, or stop the timers of the
 * server.
 */
function runDrop(drop: () => boolean, core: FeatureParts): boolean {
  try {
    const released: unknown = drop();
    if (typeof released === "boolean") return released;
    ignoreRejections(released);
    throw new TypeError(
      `Cannot release a kept value: drop returned ${
        show(released)
      }; return true if drop has removed the value, or else false`,
    );
  } catch (error) {
    core.report(error);
    return false;
  }
}

/** A context that records whether the handler sends a request to the client or uses `ctx.once`. */
interface Watched {
  readonly ctx: Context<never>;
  readonly hasRounds: () => boolean;
}

/** The context methods that send a request to the client, or store a value for the next run of the handler. */
const ROUNDS: readonly unknown[] = ["elicit", "elicitUrl", "sample", "roots", "forward", "once"];

function countAsked({ askedTexts }: Call): number {
  return askedTexts?.size ?? 0;
}

/** `consents` is the number of questions that were asked for consent before. */
function watchRounds(ctx: Context<never>, call: Call, consents: number): Watched {
  let used = false;
  const note = (method: (...args: unknown[]) => unknown) => (...args: unknown[]) => {
    used = true;
    return method(...args);
  };
  const watched = new Proxy(ctx, {
    get(target, name) {
      if (name === CALL) return call;
      // Use `target` as the receiver, because the getters of a call use its private fields.
      const value: unknown = Reflect.get(target, name, target);
      return ROUNDS.includes(name) && typeof value === "function" ? note((...args) => value(...args)) : value;
    },
  });
  // Services, middleware and resources that they or the tool read may also ask, and the tool may use the answer.
  return { ctx: watched, hasRounds: () => used || countAsked(call) > consents };
}
