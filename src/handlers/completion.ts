/**
 * Completions: what a user may mean while typing an argument of a prompt or a variable of a resource template.
 *
 * @see specification/2026-07-28/server/utilities/completion
 * @module
 */
import { INVALID_PARAMS, McpError, quote } from "../protocol/errors.ts";
import { isObject, type Result } from "../protocol/jsonrpc.ts";
import type { Call } from "../core/call.ts";
import type { Context } from "../core/context.ts";
import type { Core } from "../core/core.ts";
import {
  type Allow,
  type Compiled,
  type Feature,
  type Handler,
  revealTo,
  type Runner,
  toDefinitions,
} from "../core/feature.ts";
import { INTERNALS } from "../core/internals.ts";
import { attempt } from "./attempt.ts";

/** Suggestions, the best first: all there are, or some of them with their number. Clients are sent 100 at most. */
export type Completion = readonly string[] | {
  readonly values: readonly string[];
  /** How many there are, sent or not. */
  readonly total?: number;
  /** Whether there are more than these. */
  readonly hasMore?: boolean;
};

/**
 * Suggests values for one argument. `value` is what the user has typed so far, `others` are the arguments that have a
 * value already. What it returns is sent as it is: the library filters nothing by `value`, because what fits is the
 * author's to say (a prefix, a fuzzy match, a nickname).
 */
export type Completer = (
  value: string,
  others: Readonly<Record<string, string>>,
  ctx: Context,
) => Completion | Promise<Completion>;

/** Completers by the name of their argument. */
export type Completers<Name extends string = string> = { readonly [N in Name]?: Completer };

/** What can be completed, and by whom. */
interface Definition {
  /** Of the place, such as `prompt "review"`, for errors. */
  readonly place: string;
  readonly type: "ref/prompt" | "ref/resource";
  /** The prompt's name, or the template's text. */
  readonly name: string;
  /** Names of all arguments. */
  readonly names: readonly string[];
  readonly complete?: Completers;
  readonly allow?: Allow;
  /** Whether a URI is one of the template's: it answers something, or nothing. */
  readonly match?: (uri: string) => unknown;
}

// More are forbidden on the wire.
const MAX_VALUES = 100;

/**
 * Makes the part of a prompt or a template that answers completions. One that completes nothing is made too: a client
 * that asks about it gets an empty answer, not an error.
 *
 * @throws {TypeError} if a completer is none, or is for an argument that does not exist.
 */
export function completion(definition: Definition): Handler {
  const { place, type, name, names, complete = {} } = definition;
  for (const [argument, completer] of Object.entries(complete)) {
    if (completer !== undefined && typeof completer !== "function") {
      throw new TypeError(`Cannot make ${place}: complete.${argument} is not a function`);
    }
    if (!names.includes(argument)) {
      const known = names.length ? `complete one of ${names.join(", ")}` : "it has none to complete";
      throw new TypeError(
        `Cannot make ${place}: complete.${argument} is for an argument that does not exist; ${known}`,
      );
    }
  }
  const { allow } = definition;
  return { name, allow, [INTERNALS]: { feature: completions, key: `${type} ${name}`, definition } };
}

/** Arguments as clients give them: strings by name. Throws the first that is something else. */
export function readArguments(given: unknown, place: string): Readonly<Record<string, string>> {
  if (!isObject(given)) throw new McpError(INVALID_PARAMS, `${place}: arguments is not an object`);
  const wrong = Object.keys(given).find((name) => typeof given[name] !== "string");
  if (wrong !== undefined) throw new McpError(INVALID_PARAMS, `${place}: argument ${quote(wrong)} is not a string`);
  // Every value was seen to be a string.
  return given as Record<string, string>;
}

/** The feature that all completers belong to. It is there only if somebody completes something. */
const completions: Feature = {
  name: "completions",
  compile(handlers, core): Compiled {
    const byKey = new Map(toDefinitions<Definition>(handlers).map((each) => [`${each.type} ${each.name}`, each]));
    const some = [...byKey.values()].some(({ complete = {} }) => Object.values(complete).some(Boolean));
    if (!some) return { capabilities: {}, methods: {} };
    return {
      capabilities: { completions: {} },
      methods: { "completion/complete": { find: (call) => findCompleter(byKey, call, core) } },
    };
  },
};

async function answer(definition: Definition, call: Call, core: Core): Promise<Result> {
  const { argument, context = {} } = call.params;
  if (!isObject(argument) || typeof argument.name !== "string" || typeof argument.value !== "string") {
    throw refuse("argument has no name and value that are strings");
  }
  if (!isObject(context)) throw refuse("context is not an object");
  const others = readArguments(context.arguments ?? {}, "Cannot complete: context");
  const { name, value } = argument;
  const { complete = {}, place, name: subject } = definition;
  const completer = Object.hasOwn(complete, name) ? complete[name] : undefined;
  if (!completer) return { completion: { values: [], total: 0, hasMore: false } };
  return await attempt({ core, call, subject }, async () => ({
    completion: toCompletion(await completer(value, others, call), `${quote(name)} of ${place}`),
  }));
}

// A client may point at a template by its text, or by a URI that it matches.
function findCompleter(
  byKey: ReadonlyMap<string, Definition>,
  call: Call,
  core: Core,
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
  const refusal = () => new McpError(INVALID_PARAMS, `Unknown ${kind}: ${quote(name)}`);
  const toRunner = (definition: Definition): Runner => ({ run: (call) => answer(definition, call, core) });
  const revealed = revealTo(call, found, { core, refusal });
  return revealed instanceof Promise ? revealed.then(toRunner) : toRunner(revealed);
}

function toCompletion(given: Completion, place: string): Result {
  const { values: all, total, hasMore }: Partial<Exclude<Completion, readonly string[]>> = isList(given)
    ? { values: given }
    : given ?? {};
  if (!all || !isList(all)) throw new Error(`Cannot complete ${place}: the values are not an array of strings`);
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
