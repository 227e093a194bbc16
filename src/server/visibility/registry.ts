/**
 * Stores a server's handlers, and compiles them to methods.
 */
import { toFrozen } from "../../core/kit/frozen.ts";
import { McpError, METHOD_NOT_FOUND, quote } from "../../core/protocol/errors.ts";
import { isObject, type Params } from "../../core/protocol/jsonrpc.ts";
import type { Changes } from "./changes.ts";
import type { HandlerSelector } from "../call/context.ts";
import type { FeatureParts } from "./feature_parts.ts";
import { compileEmpty } from "./declared_lists.ts";
import type { Compiled, Feature, Handler, Method } from "./feature.ts";
import type { ScopeComparison } from "../call/scopes.ts";
import { INTERNALS } from "../../core/internals.ts";

export interface RegistryParts extends FeatureParts {
  readonly auth?: ScopeComparison & {
    checkHandler?(name: string, scopes: readonly string[] | undefined): void;
  };
}

/** Handlers are compiled when they change, never during a call. */
export class Registry {
  readonly #core: RegistryParts;
  readonly #changes: Changes;
  #handlers: readonly Handler[] = [];
  /** The handlers that were passed to `add`, although another handler may bring them too. */
  // Bound: the handlers.
  readonly #added = new WeakSet<Handler>();
  /** The handlers to which rules apply, each with the handler that is served instead. */
  #ruled?: ReadonlyMap<Handler, Handler>;
  /**
   * Applies the rules that `enable` and `disable` have set. `undefined` until the first rule is set. `isFound` says that
   * a provider has found the handlers, which are not in the registry.
   */
  rule?: (handlers: readonly Handler[], isFound?: boolean) => ReadonlyMap<Handler, Handler>;
  onChange?: () => void;
  #compiled = new Map<string, Compiled>();
  #capabilities?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Compiled methods by name. A new map replaces this map when handlers change. */
  methods: ReadonlyMap<string, Method>;

  /** The registry announces changed lists through `changes`. */
  constructor(core: RegistryParts, changes: Changes) {
    this.#core = core;
    this.#changes = changes;
    for (const name of core.can.lists) this.#compiled.set(name, compileEmpty(name, core));
    this.methods = toMethods(this.#compiled);
  }

  /** The capabilities, frozen, because middleware sees them in the results of several callers. */
  get capabilities(): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
    return this.#capabilities ??= toFrozen(
      Object.assign({}, ...[...this.#compiled.values()].map((compiled) => compiled.capabilities)),
    );
  }

  /** The handlers that were passed to `add`, except for handlers that another handler adds too. */
  get handlers(): readonly Handler[] {
    const also = new Set(this.#handlers.flatMap((handler) => withAlso(handler).slice(1)));
    return this.#handlers.filter((handler) => !also.has(handler));
  }

  /** Returns `undefined` if the server does not have the feature. */
  compiled(feature: string): Compiled | undefined {
    return this.#compiled.get(feature);
  }

  /**
   * Tests whether the server has declared that it notifies clients of changes to a list.
   *
   * @throws {TypeError} if no list has this name.
   */
  hasList(name: string): boolean {
    if (!LISTS.includes(name)) {
      throw new TypeError(`Cannot announce a changed list: ${quote(name)} is not a list; use ${LISTS.join(", ")}`);
    }
    return !!this.#compiled.get(name)?.capabilities[name]?.listChanged;
  }

  /** If handlers conflict, throws and changes nothing. `isReported` is `false` for the handlers of a new server. */
  add(handlers: readonly Handler[], isReported = false): void {
    // Several handlers may bring the same handler, which is then added with the first and removed with the last of them.
    const brought = new Set([...this.#handlers, ...handlers]);
    const isNew = (also: Handler) => !brought.has(also) && !!brought.add(also);
    const added = handlers.flatMap((handler) => withAlso(handler).filter((each) => each === handler || isNew(each)));
    const known = new Set(this.#handlers.map(toId));
    // The names of another server's handlers may change at any time, so a name that is taken must not stop a server.
    const foreign = new Set(added.filter((each) => each[INTERNALS].foreign !== undefined).flatMap(withAlso));
    const doubles = new Set<Handler>();
    for (const handler of added.toSorted((a, b) => Number(foreign.has(a)) - Number(foreign.has(b)))) {
      const name = toId(handler);
      if (known.has(name)) {
        const error = toTaken(name);
        if (!foreign.has(handler)) throw error;
        if (!doubles.size) this.#core.report(error);
        doubles.add(handler);
        continue;
      }
      known.add(name);
      this.#core.auth?.checkHandler?.(name, handler[INTERNALS].scopes);
    }
    this.#swap([...this.#handlers, ...added.filter((each) => !doubles.has(each))], added);
    for (const handler of handlers) this.#added.add(handler);
    if (isReported) this.#core.observer.handlers?.({ added: added.map(toName), removed: [] });
  }

  /**
   * Removes all handlers that have the kind and name of a given handler. Ignores unknown handlers, and handlers of other
   * servers that were not added because their name was taken.
   */
  remove(handlers: readonly (Handler | undefined)[]): void {
    const given = handlers.filter((handler) => handler !== undefined).filter((handler) =>
      handler[INTERNALS]?.foreign === undefined || this.#handlers.includes(handler)
    );
    const named = new Set(given.map(toId));
    const names = new Set(given.flatMap(withAlso).map(toId));
    // The handlers that other handlers also bring stay, unless they are named themselves.
    const brought = new Set(this.#handlers.filter((handler) => !names.has(toId(handler))).flatMap(withAlso));
    const gone = this.#handlers.filter((handler) => {
      const name = toId(handler);
      return named.has(name) || names.has(name) && !brought.has(handler) && !this.#added.has(handler);
    });
    if (!gone.length) return;
    this.#swap(this.#handlers.filter((handler) => !gone.includes(handler)), gone);
    for (const handler of gone) this.#added.delete(handler);
    this.#core.observer.handlers?.({ added: [], removed: gone.map(toName) });
  }

  /** Finds a handler by its kind and name. The name of a resource is its URI. */
  find(kind: string, name: string): Handler | undefined {
    return this.#handlers.find((handler) => toName(handler) === `${kind} ${JSON.stringify(name)}`);
  }

  findPattern(uri: string): Handler | undefined {
    return this.#handlers.find((handler) => handler[INTERNALS].serves?.(uri));
  }

  /** Returns the name or URI in a request, or `undefined` if the request does not refer to a handler. */
  findSubject({ method, params }: { readonly method: string; readonly params: Params }): string | undefined {
    const name = this.methods.get(method)?.subject;
    const subject = name === undefined ? undefined : params[name];
    return typeof subject === "string" ? subject : undefined;
  }

  /** Returns the handler with rules applied, or the handler itself if no rule applies. */
  toRuled(handler: Handler): Handler {
    return this.#ruled?.get(handler) ?? handler;
  }

  /** `changed` returns the handlers to which the changed rules apply. */
  toggle(changed: (handlers: readonly Handler[]) => readonly Handler[]): void {
    this.#compile(this.#handlers, changed(this.#handlers));
  }

  // Compares features by name and not by identity, because a package with handlers may import another copy of the
  // library. A feature that has lost all handlers still serves its methods and an empty list, because clients already
  // know the capability.
  #compile(handlers: readonly Handler[], changed: readonly Handler[]): void {
    for (const handler of handlers) handler[INTERNALS].layers?.verify(handlers, toName(handler));
    const ruled = this.rule?.(handlers);
    // The extensions that a changed handler brings depend on its visibility.
    const features = new Map<string, Feature>(
      changed.flatMap(withAlso).map(({ [INTERNALS]: { feature } }) => [feature.name, feature]),
    );
    const compiled = new Map(this.#compiled);
    const all = handlers.map((handler) => ruled?.get(handler) ?? handler);
    for (const [name, feature] of features) {
      const own = all.filter((handler) => isOf(handler, name));
      const { provide = feature.compile } = own.find((each) => each[INTERNALS].provide)?.[INTERNALS] ?? {};
      let made = provide(own, this.#core, all, (found) => this.rule?.(found, true));
      for (const { [INTERNALS]: { narrow } } of own) made = narrow?.(made, own, this.#core) ?? made;
      compiled.set(name, made);
    }
    this.#handlers = handlers;
    this.#ruled = ruled;
    this.#compiled = compiled;
    this.#capabilities = undefined;
    this.methods = toMethods(compiled);
  }

  #swap(handlers: readonly Handler[], changed: readonly Handler[]): void {
    const before = this.#ruled;
    this.#compile(handlers, changed);
    this.onChange?.();
    for (const [name, { capabilities }] of this.#compiled) {
      const handlers = changed.filter((handler) => isOf(handler, name));
      if (!handlers.length || !capabilities[name]?.listChanged) continue;
      const ruled = handlers.map((handler) => before?.get(handler) ?? this.toRuled(handler));
      this.#changes.emit({ kind: "list", feature: name, handlers: ruled });
    }
  }
}

function toMethods(compiled: ReadonlyMap<string, Compiled>): ReadonlyMap<string, Method> {
  return new Map([...compiled.values()].flatMap(({ methods }) => Object.entries(methods)));
}

const LISTS: readonly string[] = ["tools", "resources", "prompts"];

export function toUnknownMethod(name: string): McpError {
  return new McpError(METHOD_NOT_FOUND, `Cannot run ${quote(name)}: this server has no such method`);
}

/** Returns a handler, followed by the handlers that are added together with this handler. */
export function withAlso(handler: Handler): readonly Handler[] {
  // Require an own property. Otherwise an object that inherits from a handler would be served as this handler.
  if (handler && Object.hasOwn(handler, INTERNALS)) {
    const { also = [], layers } = handler[INTERNALS];
    return [handler, ...also, ...layers?.also ?? []];
  }
  throw new TypeError(
    "Cannot add a handler: it was not created by a function such as tool(), or it is a copy; " +
      "pass all options to the function that creates the handler",
  );
}

/**
 * Leaves out handlers with a rank that are not served. `all` are all handlers of the server.
 *
 * @throws {TypeError} if the author has added two handlers of one kind and key.
 */
export function withoutSpares(handlers: readonly Handler[], all: readonly Handler[]): readonly Handler[] {
  const ranked = handlers.filter((handler) => handler[INTERNALS].rank !== undefined);
  if (ranked.length < 2) return handlers;
  const toOrder = (handler: Handler) => 2 * (handler[INTERNALS].rank ?? 0) + Number(isBroughtByOther(handler, all));
  const served = new Map<string, Handler>();
  for (const handler of ranked) {
    const known = served.get(toName(handler));
    if (known && !isBroughtByOther(known, all) && !isBroughtByOther(handler, all)) throw toTaken(toName(handler));
    if (!known || toOrder(handler) < toOrder(known)) served.set(toName(handler), handler);
  }
  return handlers.filter((handler) => !ranked.includes(handler) || served.get(toName(handler)) === handler);
}

/** Whether another handler brings a handler. */
export function isBroughtByOther(handler: Handler, all: readonly Handler[]): boolean {
  const id = toId(handler);
  return all.some((each) => withAlso(each).slice(1).some((also) => toId(also) === id));
}

function toTaken(name: string): TypeError {
  return new TypeError(`Cannot add ${name}: it is already registered; choose another name or URI`);
}

function isOf(handler: Handler, feature: string): boolean {
  return handler[INTERNALS].feature.name === feature;
}

function toId(handler: Handler): string {
  return handler[INTERNALS].id ?? toName(handler);
}

/** Returns the handler's kind and name, such as `tool "add"`. */
export function toName(handler: Handler): string {
  const { feature, key } = handler[INTERNALS];
  return `${feature.name.replace(/ies$/, "y").replace(/s$/, "")} ${JSON.stringify(key)}`;
}

/**
 * Returns the key of a selection, which is the kind and name of a handler, or a tag.
 *
 * @throws {TypeError} if the selection is invalid.
 */
export function toSelectionKey(selected: Handler | HandlerSelector, registry: Registry): string {
  const refuse = (state: string) => new TypeError(`Cannot enable or disable ${state}`);
  // Check the type, because programs may run without type checks.
  const given: unknown = selected;
  if (!isObject(given)) {
    throw refuse('handlers: the selection is not an object; pass a handler, or an object such as { tool: "add" }');
  }
  if (INTERNALS in selected) {
    // Reject an extension. A rule would have no effect, because an extension's methods have no `allow`.
    if (selected[INTERNALS].feature.name !== "extensions") return toName(selected);
    throw refuse(`${toName(selected)}: add or remove the extension instead`);
  }
  const [[kind, name] = ["", ""], ...more] = Object.entries<unknown>(selected);
  if (!/^(tool|resource|prompt|group|tag)$/.test(kind) || more.length) {
    throw new TypeError(
      `Cannot select handlers by ${quote(kind)}: a selection has exactly one of tool, resource, prompt, group and tag`,
    );
  }
  // Reject the selection. Otherwise the rule would select no handler, and the intended handler would still be enabled.
  if (typeof name !== "string" || !name) {
    throw new TypeError(`Cannot select handlers by ${kind}: the value is not a name; pass one name as a string`);
  }
  // Reject the URI only if a known template or provider serves the URI. An unknown URI is accepted, because its
  // resource may be added later.
  const isUri = kind === "resource" && !registry.find(kind, name) && !/[{}]/.test(name);
  const pattern = isUri && registry.findPattern(name);
  if (!pattern) return `${kind} ${JSON.stringify(name)}`;
  throw refuse(
    `${quote(name)}: ${toName(pattern)} serves this URI; select that handler, or hide single resources with its allow`,
  );
}
