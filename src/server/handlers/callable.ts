/**
 * The entries of tools, prompts and resources in the registry, and how a call finds and runs them.
 */
import { INVALID_PARAMS, McpError, quote } from "../../core/protocol/errors.ts";
import type { Result } from "../../core/protocol/jsonrpc.ts";
import type { HeaderParam } from "../../core/schema/header_params.ts";
import type { Checked } from "../../core/schema/schema.ts";
import type { Call } from "../call/call.ts";
import {
  type Compiled,
  type Handler,
  type Invoke,
  revealTo,
  type Runner,
  toDefinitions,
  toMethod,
} from "../visibility/feature.ts";
import type { FeatureParts } from "../visibility/feature_parts.ts";
import type { Filter } from "../visibility/guards.ts";
import { createList, type Entry } from "../visibility/pagination.ts";
import type { Guarded } from "./guarded_run.ts";
import { runGuarded } from "./lazy_values.ts";

/** A handler in the registry, without type parameters, because its schemas validate the values at runtime. */
export interface Callable extends Omit<Entry, "vary">, Guarded {
  readonly scopes?: readonly string[];
  readonly requires?: readonly string[];
  readonly headers?: readonly HeaderParam[];
  readonly invoke: Invoke;
  /** Returns the result for an invalid input, or throws the error. */
  readonly refuse: (problem: string, call: Call) => Result;
}

/** Runs a handler with its checked input, within its guards and the encoders of the server. */
export function runChecked(
  definition: Callable,
  call: Call,
  checked: Checked,
  core: FeatureParts,
): Result | Promise<Result> {
  const { invoke, layers } = definition;
  if (checked.problem !== undefined) return definition.refuse(checked.problem, call);
  // Do not start the handler of a call that was cancelled during the validation.
  if (call.ended) throw call.endError;
  const { value } = checked;
  if (layers?.guards || core.encoders) {
    const next = (value: unknown, filter: Filter) => invoke(call, undefined, value, core, filter);
    return runGuarded(definition, { call, core, value, next });
  }
  if (!layers?.keyed) call.onRun?.();
  return invoke(call, undefined, value, core, undefined);
}

export interface NamedKind<D> {
  readonly kind: "tool" | "prompt";
  readonly method: "tools/call" | "prompts/get";
  readonly toRun: (definition: D, core: FeatureParts) => Runner["run"];
}

/** Returns the definition for one caller. Returns `undefined` if `forCaller` fails, after reporting its error. */
export type Vary<D> = (call: Call, core: FeatureParts) => Promise<D | undefined>;

export function compileNamed<D extends Callable & { readonly vary?: Vary<D> }>(
  { kind, method, toRun }: NamedKind<D>,
  handlers: readonly Handler[],
  core: FeatureParts,
): Compiled {
  const definitions = toDefinitions<D>(handlers);
  for (const { layers } of definitions) layers?.report?.(core);
  const toRunner = (definition: D) => {
    const { allow, headers, scopes, requires, vary, layers } = definition;
    const runner = { allow, headers, scopes, requires, vary, run: toRun(definition, core) };
    return layers?.apply(runner) ?? runner;
  };
  // The keys have the type `unknown`, because a client may send any value as a name.
  const byName = new Map<unknown, ReturnType<typeof toRunner>>(
    definitions.map((definition) => [definition.key, toRunner(definition)]),
  );
  const toUnknown = (name: unknown) => new McpError(INVALID_PARAMS, `Unknown ${kind}: ${quote(name)}`);
  const find = (call: Call) => {
    const { name } = call.params;
    const found = byName.get(name);
    const vary = found?.vary;
    if (found && !found.allow && !vary) return found;
    const revealed = revealTo(call, found, { core, refusal: () => toUnknown(name) });
    return vary ? toVariant(revealed, vary, call) : revealed;
  };
  const toVariant = async (revealed: unknown, vary: Vary<D>, call: Call) => {
    await revealed;
    const variant = await vary(call, core);
    if (!variant) throw toUnknown(call.params.name);
    return toRunner(variant);
  };
  const list = `${kind}s` as const;
  return {
    capabilities: { [list]: { listChanged: core.can.listChanged } },
    methods: {
      [`${list}/list`]: toMethod(createList(list, definitions, core), { list }),
      [method]: { subject: "name", asks: true, find },
    },
  };
}
