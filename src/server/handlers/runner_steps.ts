/**
 * Puts the steps of layers around the whole call of a handler: `limit`, `enter`, `around` and `result`, and the layers of
 * extensions.
 */
import { quote } from "../../core/protocol/errors.ts";
import { isObject, type Result } from "../../core/protocol/jsonrpc.ts";
import { LazyModule } from "../../core/protocol/lazy_module.ts";
import { isPromiseLike, toHandled } from "../../core/protocol/promises.ts";
import type { Schema } from "../../core/schema/schema.ts";
import { compileSchema } from "../../core/schema/schema_compiler.ts";
import { INTERNALS } from "../../core/internals.ts";
import type { Call, PassedWork } from "../call/call.ts";
import type { CancelError } from "../call/cancel_error.ts";
import { show } from "../../core/known_options.ts";
import { compose, type Middleware } from "../call/middleware.ts";
import { lazyWireCheck } from "../call/lazy_wire_check.ts";
import type { Timeout } from "../../core/timers.ts";
import type { WrappedCall } from "../engine/extension.ts";
import type { AddedParts } from "../engine/added.ts";
import type { LayerEntry, LayerResult } from "../engine/layers.ts";
import type { Apply, Executor, Runner, RunWithin } from "../visibility/feature.ts";
import { type Bound, type CallParts, StepCall, toCore, type With, withState } from "./bound_layer.ts";
import type { WrappingLayer } from "./extension_call.ts";
import type { CompiledOptions } from "./handler_layers.ts";

/** Code that runs around a whole call, in addition to the steps of the layers. */
export interface Around {
  readonly options: CompiledOptions;
  /** Kind and name of the handler. */
  readonly place: string;
  /** Middleware from the step `around`. */
  readonly around: readonly Middleware[];
  /** Takes the arguments of layers out of the arguments of a call. */
  readonly open?: AddedParts["open"];
}

export function toApply(layers: readonly Bound[], { options, place, around, open }: Around): Apply {
  const limits = layers.filter((bound): bound is With<"limit"> => !!bound.steps.limit);
  const enters = layers.filter((bound): bound is With<"enter"> => !!bound.steps.enter);
  const results = layers.filter((bound): bound is With<"result"> => !!bound.steps.result).reverse();
  const times = layers.flatMap(({ steps: { timeoutMs } }) => timeoutMs ?? []);
  const timeoutMs = times.length ? Math.min(...times) : undefined;
  const outers = [
    ...open && enters.length
      ? [(call, { next, end }) => openBefore(open, (call) => next(call, end))(call)] satisfies Outer[]
      : [],
    ...enters.map(toEntering),
    ...toExtended(layers, options, place),
  ];
  const isWithin = outers.length > 0 || timeoutMs !== undefined;
  if (!limits.length && !isWithin && !results.length && !around.length) return (runner) => runner;
  const limited = limits.reduceRight<Runner["check"]>(withLimit, undefined);
  const check = limited && open ? openBefore(open, limited) : limited;
  return (runner) => {
    const run = compose(around, (call) => runner.run(call));
    const inner: Runner = { run: results.reduce(withResult, open && around.length ? openBefore(open, run) : run) };
    // Layers with `enter` learn when the handler has ended.
    const watched: Runner = { run: (call) => call.passed?.run(call, inner) ?? inner.run(call) };
    return {
      ...runner,
      ...inner,
      ...isWithin && { within: toWithin(outers, enters.length ? watched : inner, timeoutMs) },
      ...check && { check },
    };
  };
}

function withResult(inner: Runner["run"], bound: With<"result">): Runner["run"] {
  const { steps } = bound;
  const change = (result: Result, call: Call) => {
    let step: StepResult | undefined;
    const changed = withState(
      bound,
      call,
      (state) => steps.result(result, step = new StepResult({ call, bound, state, result })),
    );
    const finish = (changed: unknown) => {
      const checked = toChecked(changed, { result, call, bound });
      return step ? step.finish(checked) : checked;
    };
    return isPromiseLike(changed) ? Promise.resolve(changed).then(finish) : finish(changed);
  };
  return (call) => {
    const result = inner(call);
    return result instanceof Promise ? result.then((result) => change(result, call)) : change(result, call);
  };
}

/** The code that adds a member to structured content. It is loaded when a layer first sets a member. */
const lazyMember = /* @__PURE__ */ new LazyModule(() => import("./set_member.ts"));

class StepResult extends StepCall implements LayerResult<never> {
  readonly #result: Result;
  readonly #bound: Bound;
  /** The value of the member that the layer has set. */
  #set?: { readonly value: unknown };

  constructor({ result, ...parts }: CallParts & { readonly result: Result }) {
    super(parts);
    this.#result = result;
    this.#bound = parts.bound;
  }

  get set(): LayerResult["set"] {
    return (token, value) => {
      const { steps, shown, place } = this.#bound;
      if (token !== steps.member) {
        const state = `the layer ${quote(steps.name)} does not add it; set member in its steps`;
        throw new TypeError(`Cannot set the member ${quote(Object(token).name)} of ${place}: ${state}`);
      }
      const { structuredContent, isError } = this.#result;
      const hasPlace = isObject(structuredContent) && !Object.hasOwn(structuredContent, token.name) && !isError;
      if (!hasPlace || shown?.added?.get(token) === false) return false;
      this.#set = { value };
      return true;
    };
  }

  /** Returns the result that the step has returned, with the member. */
  finish(result: Result | Promise<Result>): Result | Promise<Result> {
    const given = this.#set;
    if (!given) return result;
    return lazyMember.load().then(async ({ setMember }) => setMember(await result, given.value, this.#bound));
  }
}

interface Received {
  readonly result?: Result;
  readonly call: Call;
  readonly bound: Bound;
}

/** Returns the result that a layer has received, or checks another result that the layer has returned. */
function toChecked(
  returned: unknown,
  { result, call, bound: { steps: { name } } }: Received,
): Result | Promise<Result> {
  if (result && (returned === undefined || returned === result)) return result;
  return lazyWireCheck.load().then((wire) => wire.checkResult(call, returned, `the layer ${show(name)}`));
}

function withLimit(inner: Runner["check"], bound: With<"limit">): Runner["check"] {
  return (call) => {
    // The call may have been cancelled while an outer layer decided.
    if (call.ended) throw call.endError;
    const returned: unknown = withState(
      bound,
      call,
      (state) => bound.steps.limit(new StepCall({ call, bound, state })),
    );
    if (isPromiseLike(returned)) {
      return Promise.resolve(returned).then((returned) => {
        requireNothing(returned, bound);
        return inner?.(call);
      });
    }
    requireNothing(returned, bound);
    return inner?.(call);
  };
}

/** Throws for a value such as `false`, whose author may expect that it refuses the call. */
function requireNothing(returned: unknown, { steps: { name } }: Bound): void {
  if (returned === undefined) return;
  throw new TypeError(
    `Cannot run the call: limit of the layer ${show(name)} returned ${
      show(returned)
    }; throw an error to refuse a call, and return nothing to allow it`,
  );
}

/** Passes a call on to inner steps and to the handler. `end` belongs to the innermost layer that the call has entered. */
type Pass = (call: Call, end?: HandlerEnd) => Result | Promise<Result>;

interface Inside {
  readonly next: Pass;
  readonly end?: HandlerEnd;
  readonly executor: Executor;
}

/** A step around a call with its slot, outside of the middleware of the server. */
type Outer = (call: Call, inside: Inside) => Result | Promise<Result>;

function toWithin(outers: readonly Outer[], runner: Runner, timeoutMs: number | undefined): RunWithin {
  return (call, _given, executor) => {
    if (timeoutMs !== undefined) call.limitTime(timeoutMs);
    return outers.reduceRight<Pass>(
      (next, step) => (call, end) => step(call, { next, end, executor }),
      (call) => executor.invoke ? executor.invoke(call, runner) : runner.run(call),
    )(call);
  };
}

/** The code for layers of extensions. It is loaded when a client first calls a handler with such a layer. */
const lazyExtensionCall = /* @__PURE__ */ new LazyModule(() => import("./extension_call.ts"));

function toExtended(layers: readonly Bound[], options: CompiledOptions, place: string): readonly Outer[] {
  const handler = toWrappedHandler(options, place);
  return layers.flatMap(({ layer: { [INTERNALS]: { extension } } }): Outer[] => {
    if (!extension?.around) return [];
    const wrapping: WrappingLayer = { ...extension, around: extension.around, handler };
    return [
      async (call, { next, executor }) =>
        await (await lazyExtensionCall.load()).runWrapped(call, wrapping, next, executor),
    ];
  });
}

function toWrappedHandler({ name, uri, input, output }: CompiledOptions, place: string): WrappedCall["handler"] {
  const toJsonSchema = (schema: Schema | undefined, use: "input" | "output") =>
    schema === undefined ? undefined : compileSchema(schema, { use, place }).json();
  return {
    name: uri ?? name ?? place,
    get inputSchema() {
      return toJsonSchema(input, "input");
    },
    get outputSchema() {
      return toJsonSchema(output, "output");
    },
  };
}

/** Takes the arguments of layers out of the arguments of a call before a step reads them. */
function openBefore<T>(
  open: NonNullable<AddedParts["open"]>,
  run: (call: Call) => T | Promise<T>,
): (call: Call) => T | Promise<T> {
  return (call) => {
    const opening = open(call);
    return opening ? opening.then(() => run(call)) : run(call);
  };
}

function toEntering(bound: With<"enter">): Outer {
  return async (call, { next: pass, end: outer }) => {
    const end = new HandlerEnd(call, outer);
    let passed: Result | undefined;
    const next = async () => {
      end.open();
      try {
        const result = pass(call, end);
        if (result instanceof Promise) end.limit();
        return passed = await result;
      } finally {
        end.close();
      }
    };
    try {
      const returned = await withState(
        bound,
        call,
        (state) =>
          bound.steps.enter(new StepEntry({ call, bound, state, ended: end.promise }), () => toHandled(next())),
      );
      const checked = toChecked(returned, { result: passed, call, bound });
      return checked instanceof Promise ? await checked : checked;
    } finally {
      end.leave();
    }
  };
}

class StepEntry extends StepCall implements LayerEntry<never> {
  readonly ended: Promise<void>;

  constructor({ ended, ...parts }: CallParts & Pick<LayerEntry, "ended">) {
    super(parts);
    this.ended = ended;
  }
}

/**
 * Finds out for one layer when a handler has ended, which may be after the response or after the cancellation of its
 * call. The handler has ended when nothing is open that runs the handler or can still start it: `next` of the layer, runs
 * of the handler, and what middleware and layers of extensions wait for, because they may respond earlier.
 */
class HandlerEnd implements PassedWork {
  readonly #ended = Promise.withResolvers<void>();
  readonly promise: Promise<void> = this.#ended.promise;
  readonly #outer?: HandlerEnd;
  /** The innermost call, which may outlive the call that has entered the layer. */
  #call: Call;
  #isInner = false;
  #open = 0;
  /** Whether the layer has passed the call on, so that a cancellation limits the time of the handler. */
  #isLimited = false;
  /** Whether `enter` of the layer has returned. */
  #hasLeft = false;
  #isOver = false;
  #timeout?: Timeout;

  constructor(call: Call, outer?: HandlerEnd) {
    this.#call = call;
    this.#outer = outer;
    call.watchPassed(this);
  }

  run(call: Call, handler: Pick<Runner, "run">): Result | Promise<Result> {
    // Do not start a handler for which a layer holds nothing any more.
    if (this.#isOver && call.ended) throw call.endError;
    const result = handler.run(call);
    if (result instanceof Promise) this.push(result);
    return result;
  }

  push(work: Promise<unknown>): void {
    this.open();
    const close = () => this.close();
    work.then(close, close);
  }

  open(): void {
    this.#open++;
    this.#outer?.open();
  }

  close(): void {
    this.#open--;
    this.#check();
    this.#outer?.close();
  }

  leave(): void {
    this.#hasLeft = true;
    this.#check();
  }

  moveTo(inner: Call): void {
    this.#call = inner;
    this.#isInner = true;
    this.limit();
    this.#outer?.moveTo(inner);
  }

  /** Limits the time for which the handler can continue after the cancellation of its call. */
  limit(): void {
    this.#isLimited = true;
    const { reason } = this.#call;
    if (reason) this.cancel(this.#call, reason);
  }

  cancel(call: Call, reason: CancelError): void {
    this.#outer?.cancel(call, reason);
    // A detached call goes on without the call that was cancelled.
    if (!this.#isLimited || call !== this.#call && !this.#call.ended) return;
    if (reason.name === "TimeoutError") this.#end();
    else this.#startTimeout();
  }

  #check(): void {
    if (!this.#open) this.#end();
    // No cancellation can follow the response.
    else if (this.#hasLeft && (this.#call.ended || !this.#isInner)) this.#startTimeout();
  }

  // Otherwise a handler that ignores its cancellation could use a place forever. Until its timeout it does, because
  // clients could start more handlers by cancelling calls.
  #startTimeout(): void {
    if (this.#isOver) return;
    const { ticker, limits: { calls } } = toCore(this.#call);
    this.#timeout ??= ticker.startTimeout(this.#call.timeoutMs ?? calls.timeoutMs, () => this.#end());
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#timeout) toCore(this.#call).ticker.cancel(this.#timeout);
    this.#ended.resolve();
  }
}
