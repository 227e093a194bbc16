/**
 * Completion of prompt arguments and of variables in resource templates.
 *
 * @see specification/2026-07-28/server/utilities/completion
 */
import type { FeatureParts, MapError } from "../visibility/feature_parts.ts";
import { INVALID_PARAMS, McpError, quote } from "../../core/protocol/errors.ts";
import { isObject, type Result } from "../../core/protocol/jsonrpc.ts";
import type { Call } from "../call/call.ts";
import type { Binding } from "../call/container.ts";
import type { Allow, Context } from "../call/context.ts";
import {
  type Apply,
  type Compiled,
  type Feature,
  type Handler,
  revealTo,
  type Runner,
  toDefinitions,
} from "../visibility/feature.ts";
import { INTERNALS } from "../../core/internals.ts";
import type { NoServices } from "../call/service.ts";
import { attempt } from "./attempt.ts";
import type { Listing, Owns } from "./source_list.ts";
import { LazyModule } from "../../core/protocol/lazy_module.ts";
import { lazyWireCheck } from "../call/lazy_wire_check.ts";

/**
 * Suggestions, best first: an array of all suggestions, or an object with some of the suggestions. The server sends at
 * most 100 suggestions.
 */
export type Suggestions = readonly string[] | {
  readonly values: readonly string[];
  /** Number of all suggestions, including suggestions that are not in `values`. */
  readonly total?: number;
  /** Whether more suggestions exist. */
  readonly hasMore?: boolean;
};

/**
 * Suggests values for one argument. `value` is the user's input so far. `others` contains the other arguments that
 * already have a value. `S` is the type of the handler's services.
 *
 * The library does not filter the suggestions by `value`, so that you can choose prefixes, fuzzy matches or synonyms.
 */
export type Completer<S = NoServices> = (
  value: string,
  others: Readonly<Record<string, string>>,
  ctx: Context<S>,
) => Suggestions | Promise<Suggestions>;

/** Completers by argument name. */
export type Completers<Name extends string = string, S = NoServices> = { readonly [N in Name]?: Completer<S> };

export interface CompletionOptions {
  /** Location for error messages, such as `prompt "review"`. */
  readonly place: string;
  /** `provider` if the templates are those that a resource provider lists. Clients cannot refer to the provider itself. */
  readonly type: "ref/prompt" | "ref/resource" | "provider";
  /** Name of the prompt, text of the template, or key of the provider. */
  readonly name: string;
  /** Names of all arguments or variables. */
  readonly names: readonly string[];
  readonly complete?: Completers<string, never>;
  readonly allow?: Allow;
  readonly scopes?: readonly string[];
  /** The steps of the layers of the prompt or template that stand around completion. */
  readonly apply?: Apply;
  readonly services?: Binding;
  readonly mapError?: MapError;
  /** Matches a URI against the template. Returns `undefined` if the URI does not match. */
  readonly match?: (uri: string) => unknown;
  /** Set if the type is `provider`. */
  readonly ofTemplates?: CompletedTemplates;
}

/** The templates of a resource provider. */
export interface CompletedTemplates {
  readonly key: string;
  /** Distinguishes the provider from other providers of its scheme. */
  readonly id?: string;
  readonly templates: Listing;
  readonly owns?: Owns;
  readonly listMs?: number;
  readonly suggest?: (
    asked: {
      readonly template: string;
      readonly name: string;
      readonly value: string;
      readonly others: Readonly<Record<string, string>>;
    },
    ctx: Context<never>,
  ) => Suggestions | Promise<Suggestions>;
}

// The protocol allows at most 100 values in a response.
const MAX_VALUES = 100;

/**
 * Creates the completion handler of a prompt or template. A prompt or template without completers needs this handler
 * too, so that clients get an empty list instead of an error.
 *
 * @throws {TypeError} if a completer is not a function, or is for an argument that does not exist.
 */
export function completion(definition: CompletionOptions): Handler {
  const { place, type, name, names, complete = {} } = definition;
  for (const [argument, completer] of Object.entries(complete)) {
    if (completer !== undefined && typeof completer !== "function") {
      throw new TypeError(`Cannot make ${place}: complete.${argument} is not a function`);
    }
    if (!names.includes(argument)) {
      const remedy = names.length ? `use ${names.join(" or ")}` : `remove complete.${argument}`;
      throw new TypeError(
        `Cannot make ${place}: complete.${argument} is for an argument that does not exist; ${remedy}`,
      );
    }
  }
  const { allow } = definition;
  return { name, allow, [INTERNALS]: { feature: completions, key: `${type} ${name}`, definition } };
}

/** An argument that is `null` counts as missing. Throws if an argument is not a string. */
export function readArguments(given: unknown, place: string): Readonly<Record<string, string>> {
  if (!isObject(given)) throw new McpError(INVALID_PARAMS, `${place}: arguments is not an object`);
  const wrong = Object.keys(given).find((name) => typeof given[name] !== "string");
  if (wrong === undefined) return given as Record<string, string>; // The cast is safe, because all values are strings.
  if (given[wrong] !== null) throw new McpError(INVALID_PARAMS, `${place}: argument ${quote(wrong)} is not a string`);
  return readArguments(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null)), place);
}

export const completions: Feature = {
  name: "completions",
  compile(handlers, core): Compiled {
    const byKey = new Map(
      toDefinitions<CompletionOptions>(handlers).map((each) => [`${each.type} ${each.name}`, each]),
    );
    const some = [...byKey.values()].some(({ complete = {}, ofTemplates }) =>
      ofTemplates?.suggest || Object.values(complete).some(Boolean)
    );
    if (!some || !core.can.completions) return { capabilities: {}, methods: {} };
    return {
      capabilities: { completions: {} },
      methods: { "completion/complete": { find: (call) => findCompleter(byKey, call, core) } },
    };
  },
};

async function answer(definition: CompletionOptions, call: Call, core: FeatureParts): Promise<Result> {
  const { argument } = call.params;
  const context = call.params.context ?? {};
  if (!isObject(argument) || typeof argument.name !== "string" || typeof argument.value !== "string") {
    throw refuse("argument.name or argument.value is not a string");
  }
  if (!isObject(context)) throw refuse("context is not an object");
  const others = readArguments(context.arguments ?? {}, "Cannot read the context of the completion");
  const { name, value } = argument;
  const { complete = {}, place, name: subject, services, mapError } = definition;
  const completer = Object.hasOwn(complete, name) ? complete[name] : undefined;
  if (!completer) return { completion: { values: [], total: 0, hasMore: false } };
  const run = async (call: Call, ctx: Context<never> = call) => {
    const completed = call.startHandler(() => completer(value, others, ctx));
    const completion = toCompletion(await completed, `${quote(name)} of ${place}`);
    const { checkResult } = await lazyWireCheck.load();
    return checkResult(call, { completion }, `the completer of ${quote(name)} of ${place}`);
  };
  return await attempt({ core, call, subject, mapError }, () => (services?.inject(run) ?? run)(call));
}

/** A client can refer to a template by its text, or by a URI that matches the template. */
export function findCompleter(
  byKey: ReadonlyMap<string, CompletionOptions>,
  call: Call,
  core: FeatureParts,
): Runner | Promise<Runner> {
  const { ref } = call.params;
  if (!isObject(ref)) throw refuse("ref is not an object");
  const { type } = ref;
  const key = type === "ref/prompt" ? "name" : type === "ref/resource" ? "uri" : undefined;
  if (!key) throw refuse(`ref.type is ${quote(type)}; use ref/prompt or ref/resource`);
  const name = ref[key];
  if (typeof name !== "string") throw refuse(`ref.${key} is not a string`);
  const found = byKey.get(`${type} ${name}`) ??
    [...byKey.values()].find((definition) => definition.type === type && definition.match?.(name));
  const kind = key === "name" ? "prompt" : "resource template";
  const listed = found || key === "name" ? [] : [...byKey.values()].filter(({ ofTemplates }) => ofTemplates);
  const refusal = () => new McpError(INVALID_PARAMS, `Unknown ${kind}: ${quote(name)}`);
  const toRunner = (definition: CompletionOptions | undefined): Runner => {
    if (!definition) throw refusal();
    const { scopes, apply } = definition;
    const runner: Runner = { scopes, run: (call) => answer(definition, call, core) };
    return apply?.(runner) ?? runner;
  };
  if (listed.length) return findListed(listed, name, { call, core }).then(toRunner);
  const revealed = revealTo(call, found, { core, refusal });
  return revealed instanceof Promise ? revealed.then(toRunner) : toRunner(revealed);
}

interface ListedOptions {
  readonly call: Call;
  readonly core: FeatureParts;
}

/** Finds the template of a provider by its text, or by a URI that matches the template. */
async function findListed(
  all: readonly CompletionOptions[],
  ref: string,
  { call, core }: ListedOptions,
): Promise<CompletionOptions | undefined> {
  const { findTemplate } = await lazyOpenProviders.load();
  const candidates = all.flatMap(({ ofTemplates, allow, mapError }, at) =>
    ofTemplates ? { ...ofTemplates, allow, mapError, at } : []
  );
  const found = await findTemplate(candidates, { uri: ref, call, core, isRequest: true });
  if (!found) return;
  const { provider: { at, suggest }, template: { template, variables } } = found;
  const toCompleter = (name: string): Completer<never> | undefined =>
    suggest && ((value, others, ctx) => suggest({ template, name, value, others }, ctx));
  return {
    ...all[at],
    name: template,
    place: `resource ${quote(template)}`,
    complete: Object.fromEntries(variables.map((name) => [name, toCompleter(name)])),
  };
}

/** Loaded on demand, because few servers have providers without a scheme, or with templates. */
export const lazyOpenProviders: LazyModule<typeof import("./open_providers.ts")> = /* @__PURE__ */ new LazyModule(() =>
  import("./open_providers.ts")
);

function toCompletion(given: Suggestions, place: string): Result {
  const { values: all, total, hasMore }: Partial<Exclude<Suggestions, readonly string[]>> = isList(given)
    ? { values: given }
    : given ?? {};
  if (!all || !isList(all)) {
    throw new Error(`Cannot complete ${place}: the completer did not return an array of strings; return strings`);
  }
  const values = all.slice(0, MAX_VALUES);
  const count = total ?? (hasMore ? undefined : all.length);
  return { values, total: count, hasMore: hasMore || Number(count) > values.length };
}

function isList(given: unknown): given is readonly string[] {
  return Array.isArray(given) && given.every((value) => typeof value === "string");
}

function refuse(state: string): McpError {
  return new McpError(INVALID_PARAMS, `Cannot complete: ${state}`);
}
