/**
 * Changes how clients see a handler: its name, description and arguments.
 */
import { toFrozen } from "../../core/kit/frozen.ts";
import { quote } from "../../core/protocol/errors.ts";
import { isObject } from "../../core/protocol/jsonrpc.ts";
import { isPromiseLike, isStrayPromise } from "../../core/protocol/promises.ts";
import { INTERNALS, LISTED } from "../../core/internals.ts";
import { checkOptions, type KnownOptions, show, withoutNulls } from "../../core/known_options.ts";
import { findSuggestion } from "../../core/kit/suggestions.ts";
import type { Checked, Schema, StandardSchema } from "../../core/schema/schema.ts";
import type { Issue, JsonSchema } from "../../core/schema/json_schema.ts";
import { gatherDefs, inlineRoot } from "../../core/schema/json_refs.ts";
import { compileSchema, presetSchema, toProblem } from "../../core/schema/schema_compiler.ts";
import { eachSubschema, followRef, toTokens } from "../../core/schema/walker.ts";
import type { Context } from "../call/context.ts";
import type { Call } from "../call/call.ts";
import type { ToolAnnotations } from "../../core/protocol/types.ts";
import { toCall } from "../call/find_call.ts";
import type { Middleware } from "../call/middleware.ts";
import type { Argument, GroupedOptions, Handler, ListedParts } from "../visibility/feature.ts";
import { toName } from "../visibility/registry.ts";
import type { Completer, Completers } from "./completion.ts";
import { addHidden } from "./hidden_values.ts";
import { toSkipped } from "./listed.ts";
import { ANNOTATIONS } from "./option_names.ts";
import type { Skipped } from "./listed_entry.ts";
import type { Prompt } from "./prompt.ts";
import type { Resource } from "./resource.ts";
import type { Tool } from "./tool.ts";
import type { ToolVariant } from "./variant.ts";

/** How clients see one argument of a handler. Members that are omitted stay as they are. */
export interface ArgumentChange {
  /** The name that clients use. */
  readonly name?: string;
  /** Description for the model. */
  readonly description?: string;
  /** JSON value of the argument if the client sends none. The argument is then optional. */
  readonly default?: unknown;
  /**
   * Hides the argument from clients, and sets its value: a JSON value, or a function that returns one for the call. A
   * client cannot set the argument. If the function throws, or returns a promise or a value that is not JSON, the call
   * fails. The value is validated like an argument of a client.
   */
  readonly value?:
    | ((ctx: Context) => unknown)
    | string
    | number
    | boolean
    | null
    | readonly unknown[]
    | { readonly [name: string]: unknown };
}

/** The changes of arguments, by the name that the handler uses. `Sent` is the type of the arguments. */
export type ArgumentChanges<Sent> = unknown extends Sent ? { readonly [name: string]: ArgumentChange }
  : { readonly [N in keyof Sent]?: ArgumentChange };

/** The type of the arguments that clients send after the changes `T`. */
export type ChangedArguments<Sent, T> = unknown extends Sent ? Sent
  :
    & {
      [
        N in keyof Sent as N extends keyof T
          ? T[N] extends { readonly value: unknown } | { readonly default: unknown } ? never
          : T[N] extends { readonly name: infer M extends string } ? M
          : N
          : N
      ]: Sent[N];
    }
    & {
      [
        N in keyof Sent as N extends keyof T
          ? T[N] extends { readonly default: unknown } ? T[N] extends { readonly name: infer M extends string } ? M : N
          : never
          : never
      ]?: Sent[N];
    };

/** The changes of a tool or prompt. All are optional. */
export interface TransformOptions<
  Name extends string,
  Input,
  S,
  Sent,
  T extends ArgumentChanges<Sent> = ArgumentChanges<Sent>,
> {
  /** Name for clients. Defaults to the name of the handler. */
  readonly name?: Name;
  /** Display name. */
  readonly title?: string;
  /** Description for the model. */
  readonly description?: string;
  /** Hints about a tool's behavior, which replace the tool's hints one by one. Only for tools. */
  readonly annotations?: ToolAnnotations;
  /**
   * What to use instead, such as `use find`. The description then begins with the sentence `Deprecated: use find.`, and
   * the `call` event of `observer` says `deprecated: true`, so that you see who still calls the handler.
   */
  readonly deprecated?: string;
  /** The changes of arguments, by the name that the handler uses. */
  readonly input?: T & (unknown extends Sent ? unknown : { readonly [N in Exclude<keyof T, keyof Sent>]: never });
  /**
   * Runs instead of the handler, with the validated input, in which the arguments have the names that the handler uses.
   * `next` runs the handler, with another input if you pass one.
   */
  readonly run?: (input: Input, ctx: Context<S>, next: (input?: Input) => Promise<unknown>) => unknown;
}

/** The changes of a resource or template. Its URIs stay the same. All are optional. */
export interface ResourceChanges<Input, S>
  extends Pick<TransformOptions<string, Input, S, unknown>, "name" | "title" | "description" | "deprecated"> {
  /** Reads instead of the resource. `next` reads the resource. */
  readonly run?: (input: Input, ctx: Context<S>, next: (input?: Input) => Promise<unknown>) => unknown;
}

const ARGUMENT: KnownOptions<keyof ArgumentChange> = {
  names: { name: "text", description: "text", default: true, value: true },
  hints: { fixed: "value", hide: "value", describe: "description" },
};

const COMMON = { name: "text", title: "text", description: "text", deprecated: "text", run: "function" } as const;

type Changeable = keyof TransformOptions<string, unknown, unknown, unknown>;

const CALLABLE = /* @__PURE__ */ Object.assign({ input: { each: ARGUMENT } }, COMMON);
const HINTS = { arguments: "input", args: "input", read: "run" } as const;

const PROMPT: KnownOptions<Exclude<Changeable, "annotations">> = {
  names: CALLABLE,
  hints: HINTS,
  elsewhere: { annotations: "only tools have hints" },
};

const TOOL: KnownOptions<Changeable> = {
  names: /* @__PURE__ */ Object.assign({}, CALLABLE, { annotations: ANNOTATIONS }),
  hints: /* @__PURE__ */ Object.assign({ hints: "annotations" } as const, HINTS),
};

const RESOURCE: KnownOptions<keyof ResourceChanges<unknown, unknown>> = {
  names: COMMON,
  hints: { read: "run" },
  elsewhere: {
    uri: "a transform cannot change URIs; create another resource that reads this one with ctx.readResource()",
    input: "a resource has no arguments; change the name and the description only",
  },
};

/**
 * Returns a tool, prompt, resource or template that clients see in another way: with another name, description or hints,
 * and with arguments that are renamed, described, optional or hidden. Everything else stays, such as `allow`, scopes, layers,
 * services and the output schema. Serve the returned handler instead of the original, or beside it.
 *
 * ```ts
 * import { transform, tool } from "@x/mcp";
 * import { z } from "zod";
 *
 * const search = tool({
 *   name: "search",
 *   input: z.object({ query: z.string(), tenant: z.string() }),
 *   run: ({ query, tenant }) => `${query} in ${tenant}`,
 * });
 *
 * // Clients see the tool `find` with the argument `q`.
 * const find = transform(search, {
 *   name: "find",
 *   input: { query: { name: "q", description: "Words to find" }, tenant: { value: (ctx) => ctx.principal?.id ?? "" } },
 * });
 * ```
 *
 * Also takes tools, prompts and resources of other servers, which `tool.from`, `prompt.from` and `resource.from` create.
 * For them, an argument that the other server does not describe can be changed too, because their lists may change. If
 * their argument has the new name of another argument, the handler is not served, and `observer.fault` gets the reason.
 *
 * @throws {TypeError} if an option is unknown or invalid, if an argument does not exist, or if two arguments would have
 * the same name.
 */
export function transform<
  const N extends string,
  Input,
  Output,
  S,
  Sent,
  const T extends ArgumentChanges<Sent>,
  const M extends string = N,
>(
  handler: Tool<N, Input, Output, S, Sent>,
  changes: TransformOptions<M, Input, S, Sent, T>,
): Tool<M, Input, Output, S, ChangedArguments<Sent, T>>;
/** Changes how clients see a prompt. See the first signature. */
export function transform<
  const N extends string,
  Input,
  S,
  Sent,
  const T extends ArgumentChanges<Sent>,
  const M extends string = N,
>(
  handler: Prompt<N, Input, S, Sent>,
  changes: TransformOptions<M, Input, S, Sent, T>,
): Prompt<M, Input, S, ChangedArguments<Sent, T>>;
/** Changes how clients see a resource or template. See the first signature. */
export function transform<Input, S, H extends Resource<Input, S>>(
  handler: H & Resource<Input, S>,
  changes: ResourceChanges<Input, S>,
): H;
export function transform(handler: Handler, changes: Changes): Handler {
  const internals = Object.hasOwn(Object(handler), INTERNALS) ? handler[INTERNALS] : undefined;
  const { feature: { name: feature } = { name: "" }, remake, foreign, definition } = internals ?? {};
  // `from` has created a handler that is not served, because of what another server lists. The cast is safe, because
  // only `toSkipped` creates handlers of this feature.
  const skipped = feature === "skipped" ? definition as Skipped : undefined;
  const kind = skipped ? skipped.kind.replace(/ .*|$/, "s") : feature;
  const isResource = kind === "resources";
  const isProvider = !!internals?.provide || isResource && /^provider |^[^:]*:$/.test(internals?.key ?? "");
  if (!remake || isProvider || !["tools", "prompts", "resources"].includes(kind)) {
    const remedy = isProvider
      ? "it is a provider; transform what its functions return"
      : "it is not a tool, a prompt or a resource; pass a handler of a function such as tool()";
    const given: unknown = handler;
    const subject = isObject(given) && "name" in given ? quote(given.name) : show(given);
    throw new TypeError(`Cannot transform ${subject}: ${remedy}`);
  }
  const place = skipped ? `a ${skipped.kind} of another server` : toName(handler);
  const action = `transform ${place}`;
  checkOptions(action, changes, isResource ? RESOURCE : kind === "tools" ? TOOL : PROMPT);
  if (changes.deprecated === "") throw new TypeError(`Cannot ${action}: deprecated is empty; say what to use instead`);
  const { name } = changes;
  if (name !== undefined && name !== null && !(kind === "tools" ? /^[\w.-]{1,128}$/ : /./).test(name)) {
    const remedy = kind === "tools" ? 'use 1 to 128 letters, digits, "_", "-" and "."' : "use a text";
    throw new TypeError(`Cannot ${action}: its new name is ${show(name)}; ${remedy}`);
  }
  if (skipped) return handler;
  const { inputs }: Pick<ListedParts, "inputs"> = Object(definition);
  const { input = {}, deprecated } = changes;
  const options = { action, inputs, isForeign: foreign !== undefined, isDeprecated: !!deprecated };
  const table = isResource || !changes.input && !deprecated ? undefined : new Table(input, options);
  const make = () => remake((own) => change(own, changes, table));
  if (!foreign) return make();
  try {
    return make();
  } catch (error) {
    return toSkipped({ kind: kind.slice(0, -1), listed: handler, error });
  }
}

type ArgumentValue = NonNullable<ArgumentChange["value"]> | null;

interface Changes extends Pick<ResourceChanges<never, never>, "name" | "title" | "description" | "deprecated"> {
  readonly annotations?: ToolAnnotations;
  readonly input?: Readonly<Record<string, ArgumentChange | undefined>>;
  readonly run?: (input: never, ctx: Context<never>, next: (input?: unknown) => Promise<unknown>) => unknown;
}

interface Own {
  readonly [LISTED]?: ListedParts;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly annotations?: ToolAnnotations;
  readonly input?: Schema;
  readonly complete?: Completers<string, never>;
  readonly use?: readonly unknown[];
  readonly forCaller?: (ctx: Context<never>) => ToolVariant | undefined | Promise<ToolVariant | undefined>;
  readonly run?: Run;
  readonly read?: Run;
}

type Run = (input: unknown, ctx: Context<never>) => unknown;

function change<O extends GroupedOptions>(options: O, changes: Changes, table: Table | undefined): O {
  const own = options as unknown as Own; // The cast is safe, because all kinds of handlers have these options.
  const { run, deprecated } = changes;
  const wrap = (inner: Run): Run => {
    if (!run) return inner;
    // The cast is safe, because the schema has validated the input.
    return (input, ctx) => run(input as never, ctx, async (next = input) => await inner(next, ctx));
  };
  const changed: Partial<Own> = {
    ...describe(own, changes),
    name: changes.name ?? own.name,
    ...changes.annotations && { annotations: changeHints(own.annotations, changes) },
    ...own.run && { run: wrap(own.run) },
    ...own.read && { read: wrap(own.read) },
    ...own.forCaller && { forCaller: toVariant(own.forCaller, changes, table) },
    ...deprecated && { use: [markDeprecated, ...own.use ?? []] },
    ...table?.apply(own),
  };
  return { ...options, ...changed };
}

/** `null` counts as absent, as in the protocol. */
function changeHints(own: ToolAnnotations | undefined, { annotations }: Changes): ToolAnnotations | undefined {
  return annotations ? { ...own, ...withoutNulls(annotations) } : own;
}

function describe(
  { title, description }: Pick<Own, "title" | "description">,
  changes: Changes,
): Pick<Own, "title" | "description"> {
  const text = changes.description ?? description;
  const { deprecated } = changes;
  const sentence = deprecated ? `Deprecated: ${deprecated}${/[.!?]$/.test(deprecated) ? "" : "."}` : undefined;
  return { title: changes.title ?? title, description: sentence && text ? `${sentence} ${text}` : sentence ?? text };
}

function toVariant(
  forCaller: NonNullable<Own["forCaller"]>,
  changes: Changes,
  table: Table | undefined,
): Own["forCaller"] {
  return async (ctx) => {
    const variant = await forCaller(ctx);
    if (!isObject(variant)) return variant;
    const { title, description, annotations, input } = variant as ToolVariant; // The cast is safe, because the tool checks the variant.
    const described = describe({ title, description }, changes);
    return {
      ...variant,
      ...(title ?? changes.title) !== undefined && { title: described.title },
      ...(description ?? changes.description) !== undefined && { description: described.description },
      ...annotations && { annotations: changeHints(annotations, changes) },
      ...input && table && { input: table.changeSchema(input) },
    };
  };
}

function noteDeprecated({ observed }: Pick<Call, "observed">): void {
  if (observed) observed.deprecated = true;
}

/** The middleware that notes calls of a deprecated handler whose arguments are valid. */
const markDeprecated: Middleware = (ctx, next) => {
  noteDeprecated(toCall(ctx, "report a deprecated handler"));
  return next();
};

interface TableOptions {
  /** What fails, for messages. */
  readonly action: string;
  readonly isForeign: boolean;
  /** The arguments of a prompt. */
  readonly inputs?: readonly Argument[];
  /** Whether to note calls with invalid arguments as calls of a deprecated handler. */
  readonly isDeprecated: boolean;
}

class Table {
  readonly #options: TableOptions;
  readonly #changes: ReadonlyMap<string, ArgumentChange>;
  /** The new names of renamed arguments, by old name, and their old names, by new name. */
  readonly #toNew = new Map<string, string>();
  readonly #toOld = new Map<string, string>();
  readonly #hidden = new Map<string, ArgumentValue>();
  /** The changed schemas, because the server compiles each schema object once. */
  readonly #schemas = new WeakMap<object, StandardSchema>();

  constructor(changes: NonNullable<Changes["input"]>, options: TableOptions) {
    this.#options = options;
    const all = Object.entries(changes).flatMap(([old, change]) => change ? [[old, change] as const] : []);
    this.#changes = new Map(all);
    for (const [old, change] of all) {
      const { name } = change;
      if (Object.hasOwn(change, "value")) {
        const other = Object.keys(change).find((key) => key !== "value");
        if (other) throw this.#refuse(old, `has value and ${other}; a hidden argument has only a value`);
        if (change.value === undefined) throw this.#refuse(old, "has the value undefined; set a value, or omit value");
        this.#hidden.set(
          old,
          typeof change.value === "function" ? change.value : this.#toJson(old, "value", change.value),
        );
      }
      if (Object.hasOwn(change, "default")) this.#toJson(old, "default", change.default);
      if (name === undefined || name === null || name === old) continue;
      if (!name) throw this.#refuse(old, "has an empty name; use another name");
      if (this.#toOld.has(name)) {
        throw this.#refuse(old, `has the name ${quote(name)} of another argument; use another name`);
      }
      this.#toNew.set(old, name);
      this.#toOld.set(name, old);
    }
  }

  apply({ input, complete, [LISTED]: listed }: Own): Partial<Own> {
    const { inputs } = this.#options;
    const changed = input === undefined ? undefined : this.changeSchema(input);
    if (!changed || inputs) this.#check(new Set(inputs?.map(({ name }) => name)));
    return {
      input: changed,
      ...complete && { complete: this.#changeCompleters(complete) },
      ...inputs && { [LISTED]: { ...listed, inputs: this.#changeInputs(inputs) } },
    };
  }

  /** Returns a schema that describes the changed arguments, and validates them with the original schema. */
  changeSchema(schema: Schema): StandardSchema {
    const known = this.#schemas.get(schema);
    if (known) return known;
    const { action } = this.#options;
    const original = compileSchema(schema, { use: "input", place: action });
    let json: JsonSchema | undefined;
    const toJson = () => json ??= toFrozen(this.#changeJson(original.json()));
    toJson();
    const changed: StandardSchema = {
      "~standard": {
        version: 1,
        vendor: "x-mcp",
        // Another copy of the library would validate the arguments without the call.
        validate() {
          throw new TypeError(`Cannot ${action}: another copy of the library serves it; import the library once`);
        },
        jsonSchema: { input: toJson, output: toJson },
      },
    };
    presetSchema(changed, "input", {
      json: toJson,
      validate: (value, call, format = toProblem) => {
        if (this.#options.isDeprecated && call) noteDeprecated(call as Call); // The cast is safe, because the caller passes the call.
        const mapped = this.#map(value, call);
        if (mapped.problem !== undefined) return mapped;
        return original.validate(mapped.value, call, (issues) => format(issues.map((issue) => this.#rename(issue))));
      },
    });
    this.#schemas.set(schema, changed);
    return changed;
  }

  /** Returns the arguments of a client with their old names, defaults, and the values of hidden arguments. */
  #map(value: unknown, call: object | undefined): Checked {
    if (!isObject(value)) return { value };
    const problems: string[] = [];
    const entries = new Map<string, unknown>();
    for (const [name, given] of Object.entries(value)) {
      const old = this.#toOld.get(name);
      if (old !== undefined) entries.set(old, given);
      else if (this.#toNew.has(name) || this.#hidden.has(name)) {
        const renamed = this.#toNew.get(name);
        problems.push(`${name}: unknown property; ${renamed === undefined ? "remove it" : `use ${renamed}`}`);
      } else entries.set(name, given);
    }
    if (problems.length) return { problem: problems.join("; ") };
    for (const [name, change] of this.#changes) {
      if (Object.hasOwn(change, "default") && entries.get(name) === undefined) {
        entries.set(name, structuredClone(change.default));
      }
    }
    const values = [...this.#hidden].map(([name, given]) => [name, this.#toValue(name, given, call)] as const);
    if (call && values.length) addHidden(call, values);
    return { value: Object.fromEntries([...entries, ...values]) };
  }

  #toValue(name: string, given: ArgumentValue, call: object | undefined): unknown {
    if (typeof given !== "function") return structuredClone(given);
    const refuse = (state: string) => this.#refuse(name, `${state}; return a value, or throw an error`);
    if (!call) throw refuse("has a value for a call, but there is no call");
    const value: unknown = given(call as Context); // The cast is safe, because the caller passes the call.
    if (isStrayPromise(value)) throw refuse("has a value that returned a promise");
    // Without a JSON text, the argument would be absent when it is sent to another server.
    if (!isJson(value)) throw refuse(`has a value that returned ${show(value)}, which is not JSON`);
    return value;
  }

  /** Returns an issue with the new name of the argument. Throws for a hidden argument, because no client can change it. */
  #rename(issue: Issue | StandardSchema.Issue): Issue | StandardSchema.Issue {
    const { path = [], message } = issue;
    if (typeof path === "string") {
      const is = (name: string) => path === name || [".", "["].some((next) => path.startsWith(name + next));
      const hidden = [...this.#hidden.keys()].find(is);
      if (hidden !== undefined) throw this.#refuse(hidden, `has an invalid value: ${message}`);
      const [old, name] = [...this.#toNew].find(([old]) => is(old)) ?? ["", ""];
      return { path: name + path.slice(old.length), message };
    }
    const [first, ...rest] = path;
    const key = String(typeof first === "object" ? first.key : first);
    if (path.length && this.#hidden.has(key)) throw this.#refuse(key, `has an invalid value: ${message}`);
    const name = this.#toNew.get(key);
    return path.length && name !== undefined ? { message, path: [name, ...rest] } : { message, path };
  }

  #changeInputs(inputs: readonly Argument[]): readonly Argument[] {
    return inputs.flatMap((input) => {
      if (this.#hidden.has(input.name)) return [];
      const change = this.#changes.get(input.name);
      if (!change) return input;
      const required = Object.hasOwn(change, "default") ? undefined : input.required;
      const { name = input.name, description = input.description } = change;
      return { ...input, name, description, required };
    });
  }

  #changeCompleters(completers: Completers<string, never>): Completers<string, never> {
    const all = Object.entries(completers).flatMap(([old, complete]): [string, Completer<never>][] => {
      if (this.#hidden.has(old) || !complete) return [];
      const changed: Completer<never> = (value, others, ctx) => complete(value, this.#toOldNames(others), ctx);
      return [[this.#toNew.get(old) ?? old, changed]];
    });
    return Object.fromEntries(all);
  }

  #toOldNames(others: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    return Object.fromEntries(
      Object.entries(others).flatMap(([name, value]) => {
        const old = this.#toOld.get(name);
        return old !== undefined || !this.#toNew.has(name) && !this.#hidden.has(name) ? [[old ?? name, value]] : [];
      }),
    );
  }

  #changeJson(given: JsonSchema): JsonSchema {
    if (!this.#changes.size) return given;
    const root = inlineRoot(gatherDefs(given));
    const changing: Changing = { root, names: new Set(), refs: new Map(), defs: new Map() };
    const changed: JsonSchema = Object(this.#changePart(root, changing));
    this.#check(changing.names);
    return keepDefs({ ...changed, $defs: { ...Object(root.$defs), ...Object.fromEntries(changing.defs) } });
  }

  /** Changes a schema that applies to the arguments themselves. Adds the names of the arguments to `names`. */
  #changePart(part: unknown, changing: Changing): unknown {
    if (!isObject(part)) return part;
    const next = (sub: unknown) => this.#changePart(sub, changing);
    const rename = (name: string) => this.#toNew.get(name) ?? name;
    const isShown = (name: unknown) => !this.#hidden.has(String(name));
    const toShown = (value: unknown, change = (each: unknown, _name: string) => each) => {
      if (!isObject(value)) return value;
      const shown = Object.entries(value).filter(([name]) => isShown(name));
      return Object.fromEntries(shown.map(([name, each]) => [rename(name), change(each, name)]));
    };
    const entries = Object.entries(part).flatMap(([key, value]): [string, unknown][] => {
      if (key === "$ref" && typeof value === "string") return [[key, this.#changeRef(value, changing)]];
      if (key === "properties" && isObject(value)) {
        for (const name of Object.keys(value)) changing.names.add(name);
        return [[key, toShown(value, (sub, name) => this.#describe(name, sub))]];
      }
      if (key === "required" && Array.isArray(value)) {
        const isRequired = (name: string) => isShown(name) && !Object.hasOwn(this.#changes.get(name) ?? {}, "default");
        return [[key, value.filter(isRequired).map(rename)]];
      }
      if (/^depend/.test(key)) {
        const toNew = (sub: unknown) => Array.isArray(sub) ? sub.filter(isShown).map(rename) : next(sub);
        return [[key, toShown(value, toNew)]];
      }
      // These keywords contain values of the arguments.
      if (/^(default|const)$/.test(key)) return [[key, toShown(value)]];
      if (/^(examples|enum)$/.test(key) && Array.isArray(value)) return [[key, value.map((each) => toShown(each))]];
      // These keywords count or match the old names.
      if (/^((min|max)Properties|propertyNames)$/.test(key)) return [];
      if (/^(not|if|then|else)$/.test(key)) return [[key, next(value)]];
      if (/^(all|any|one)Of$/.test(key) && Array.isArray(value)) return [[key, value.map(next)]];
      return [[key, value]];
    });
    return Object.fromEntries(entries);
  }

  /**
   * Returns a reference to the changed target of a reference. Changes each target only once, because a target that many
   * references name, or that contains itself, would otherwise make the schema too large.
   */
  #changeRef(ref: string, changing: Changing): string {
    const { root, refs, defs } = changing;
    const known = refs.get(ref);
    if (known !== undefined) return known;
    let name = `arguments_${defs.size + 1}`;
    while (Object.hasOwn(Object(root.$defs), name)) name += "_";
    const changed = `#/$defs/${name}`;
    refs.set(ref, changed);
    // Reserve the name, because the target may contain further references.
    defs.set(name, true);
    defs.set(name, this.#changePart(followRef(root, ref), changing));
    return changed;
  }

  #describe(name: string, part: unknown): unknown {
    const { description, default: value } = this.#changes.get(name) ?? {};
    if (description === undefined && value === undefined) return part;
    return {
      ...Object(part),
      ...typeof description === "string" && { description },
      ...value !== undefined && { default: value },
    };
  }

  /** Throws if an argument does not exist, or if a new name is the name of another argument. */
  #check(names: ReadonlySet<string>): void {
    const taken = [...this.#toOld].find(([name]) => names.has(name) && !this.#toNew.has(name));
    if (taken) throw this.#refuse(taken[1], `has the name ${quote(taken[0])} of another argument; use another name`);
    // The arguments of another server may change at any time.
    if (this.#options.isForeign) return;
    const unknown = [...this.#changes.keys()].find((name) => !names.has(name));
    if (unknown === undefined) return;
    const meant = findSuggestion(unknown, [...names]);
    const remedy = meant === undefined ? "remove it" : `did you mean ${meant}?`;
    throw this.#refuse(unknown, `does not exist; ${remedy}`);
  }

  #toJson<T>(name: string, member: string, value: T): T {
    if (!isPromiseLike(value) && isJson(value)) return structuredClone(value);
    throw this.#refuse(name, `has the ${member} ${show(value)}; use a JSON value`);
  }

  #refuse(name: string, state: string): TypeError {
    return new TypeError(`Cannot ${this.#options.action}: the argument ${quote(name)} ${state}`);
  }
}

/** Tests whether JSON has a text for a value. */
function isJson(value: unknown): boolean {
  try {
    return JSON.stringify(value) !== undefined && !(typeof value === "number" && !Number.isFinite(value));
  } catch {
    return false;
  }
}

interface Changing {
  readonly root: JsonSchema;
  /** Names of all arguments that were found. */
  readonly names: Set<string>;
  /** References to changed targets, by the old reference. */
  readonly refs: Map<string, string>;
  /** The changed targets, by their name in `$defs`. */
  readonly defs: Map<string, unknown>;
}

/** Removes the members of `$defs` to which no reference leads, because they may describe hidden arguments. */
function keepDefs({ $defs, ...schema }: JsonSchema): JsonSchema {
  const all: JsonSchema = Object($defs);
  const anchors = new Map<string, string>();
  for (const [name, part] of Object.entries(all)) {
    for (const [, anchor] of JSON.stringify(part).matchAll(ANCHOR)) anchors.set(`#${anchor}`, name);
  }
  const findName = (ref: unknown) => {
    const text = String(ref);
    return anchors.get(text) ?? toTokens(text)[1] ?? "";
  };
  const kept = new Map<string, unknown>();
  const visit = (part: unknown) => {
    if (!isObject(part)) return;
    for (const name of [part.$ref, part.$dynamicRef].map(findName)) {
      if (kept.has(name) || !Object.hasOwn(all, name)) continue;
      kept.set(name, all[name]);
      visit(all[name]);
    }
    eachSubschema(part, visit);
  };
  visit(schema);
  return kept.size ? { ...schema, $defs: Object.fromEntries(kept) } : schema;
}

const ANCHOR = /"\$(?:dynamicA|a)nchor":"([^"]*)"/g;
