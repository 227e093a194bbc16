/**
 * Runs the guards and encoders around a handler. Loaded with the first call that needs it, by `value_room.ts`.
 *
 * @module
 */
import { isToolError, ToolError } from "../protocol/errors.ts";
import { isObject, type Result } from "../protocol/jsonrpc.ts";
import type { Call } from "../core/call/call.ts";
import type { Binding } from "../core/call/container.ts";
import type { Context } from "../core/call/context.ts";
import type { FeatureParts } from "../core/visibility/feature_parts.ts";
import type { Encoder, Filter, HandlerGuards } from "../core/visibility/guards.ts";
import { readSyncVerdict } from "../core/call/verdict.ts";

/** A handler that may have guards. */
export interface Guarded {
  readonly guards?: HandlerGuards;
  /** Services of the handler. */
  readonly services?: Binding;
  /** Set if a later check decides whether the handler starts. */
  readonly idempotency?: object;
}

/** One run of a handler. */
export interface FilteredRun {
  readonly call: Call;
  readonly core: FeatureParts;
  /** The validated input. */
  readonly value: unknown;
  /** Runs the handler with a guarded input. */
  readonly next: (value: unknown, filter: Filter) => Result | Promise<Result>;
}

/** A guard, without type parameters. */
type Guard = (value: unknown, ctx: Context<never>) => unknown;

/** Runs a handler between its guards. Those of the server are the outermost. */
export async function runFiltered({ guards, services, idempotency }: Guarded, run: FilteredRun): Promise<Result> {
  const { call, core: { filters }, next } = run;
  const input = await pass(run.value, { guards: filters?.guards, side: "input", ctx: call });
  const passOwn = async (_call: Call, ctx: Context<never> = call) => await pass(input, { guards, side: "input", ctx });
  const guarded = guards?.input?.length ? await (services?.share(passOwn) ?? passOwn)(call) : input;
  // A cancelled call does not start its handler.
  if (call.ended) throw call.reason;
  if (!idempotency) call.onRun?.();
  const filter: Filter = async (returns, ctx) => {
    const leave = async (value: unknown) => {
      const own = await pass(value, { guards, side: "output", ctx });
      return await pass(own, { guards: filters?.guards, side: "output", ctx: call });
    };
    let value;
    try {
      value = await returns();
    } catch (error) {
      throw isToolError(error) ? toError(await leave({ content: error.content, isError: true })) : error;
    }
    const left = await leave(value);
    return filters?.encoders?.length ? new OwnEncoder(filters.encoders).encode(left) : left;
  };
  return await next(guarded, filter);
}

/** The guards of one side, and the context that they get. */
interface Passing {
  readonly guards: HandlerGuards | undefined;
  readonly side: "input" | "output";
  readonly ctx: Context<never>;
}

async function pass(given: unknown, { guards, side, ctx }: Passing): Promise<unknown> {
  let value = given;
  // The types of the handler say that its guards take its input and its output.
  for (const guard of (guards?.[side] ?? []) as readonly Guard[]) {
    const passed = await guard(value, ctx);
    // A guard that decides by true or false would let every call pass, with that as its input.
    if (typeof passed === "boolean" && typeof value !== "boolean" && side === "input") {
      const remedy = "throw a ToolError to refuse the call, or return nothing to let it pass";
      throw new TypeError(`Cannot guard the input: a guard returned ${passed}; ${remedy}`);
    }
    // `null` is a value like any other, by which a guard may replace a secret.
    if (passed !== undefined) value = passed;
  }
  return value;
}

function toError(left: unknown): ToolError {
  if (typeof left === "string") return new ToolError(left);
  // A result has content blocks, which are checked before they are sent.
  if (isObject(left) && Array.isArray(left.content)) return new ToolError(left.content);
  throw new TypeError("Cannot send an error: an output guard returned no content for it; return a string or a result");
}

// As deep as the built-in encoders go.
const MAX_DEPTH = 128;

/** Replaces values of the server's own types in one result. */
class OwnEncoder {
  readonly #encoders: readonly Encoder[];
  /** Parents of the value that is being encoded. */
  readonly #open = new Set<object>();

  constructor(encoders: readonly Encoder[]) {
    this.#encoders = encoders;
  }

  /** Returns the value itself if nothing in it is replaced. */
  encode(value: unknown): unknown {
    if (value === null || ["string", "number", "boolean", "undefined"].includes(typeof value)) return value;
    const encoder = this.#encoders.find((each) => readSyncVerdict(each.test(value), "test of an encoder"));
    // The encoder has tested the value. Its result is not tested again, but the parts of the result are.
    const made = encoder ? encoder.encode(value as never) : value;
    if (typeof made !== "object" || made === null) return made;
    // The built-in encoders refuse what is too deep or holds itself.
    if (this.#open.has(made) || this.#open.size > MAX_DEPTH) return made;
    this.#open.add(made);
    const encoded = this.#encodeParts(made);
    this.#open.delete(made);
    return encoded;
  }

  #encodeParts(value: object): unknown {
    if (Array.isArray(value)) return this.#encodeAll(value) ?? value;
    if (value instanceof Map) {
      const entries = this.#encodeAll([...value].flat());
      return entries ? new Map(value.size ? toPairs(entries) : []) : value;
    }
    if (value instanceof Set) {
      const items = this.#encodeAll([...value]);
      return items ? new Set(items) : value;
    }
    if (value instanceof ReadableStream) {
      if (value.locked) return value;
      return value.pipeThrough(
        new TransformStream<unknown, unknown>({ transform: (chunk, to) => to.enqueue(this.encode(chunk)) }),
      );
    }
    // Values with a toJSON() method convert themselves.
    // The built-in encoders read streams of Node.js as bodies.
    if ("toJSON" in value || "pipe" in value || ArrayBuffer.isView(value)) return value;
    if (Symbol.asyncIterator in value) return this.#iterate(value as AsyncIterable<unknown>); // as just seen
    const tag = Object.prototype.toString.call(value);
    if (tag === "[object Generator]") return this.#iterateNow(value as Iterable<unknown>); // as the tag says
    if (tag !== "[object Object]") return value;
    const keys = Object.keys(value);
    const parts = this.#encodeAll(Object.values(value));
    return parts ? Object.fromEntries(keys.map((key, i) => [key, parts[i]])) : value;
  }

  /** Returns `undefined` if nothing is replaced. */
  #encodeAll(parts: readonly unknown[]): unknown[] | undefined {
    let encoded: unknown[] | undefined;
    for (const [i, part] of parts.entries()) {
      const made = this.encode(part);
      if (made !== part) (encoded ??= [...parts])[i] = made;
    }
    return encoded;
  }

  async *#iterate(items: AsyncIterable<unknown>): AsyncGenerator<unknown, void, undefined> {
    for await (const item of items) yield this.encode(item);
  }

  *#iterateNow(items: Iterable<unknown>): Generator<unknown, void, undefined> {
    for (const item of items) yield this.encode(item);
  }
}

function toPairs(flat: readonly unknown[]): [unknown, unknown][] {
  return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i], flat[2 * i + 1]]);
}
