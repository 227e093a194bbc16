/**
 * The handlers of a server, compiled to methods.
 *
 * @module
 */
import { McpError, METHOD_NOT_FOUND, quote } from "../../protocol/errors.ts";
import { isObject, type Params } from "../../protocol/jsonrpc.ts";
import type { Changes } from "./changes.ts";
import type { HandlerSelector } from "../call/context.ts";
import type { FeatureParts } from "./feature_parts.ts";
import { compileEmpty } from "./declared_lists.ts";
import type { Compiled, Feature, Handler, Method } from "./feature.ts";
import type { ScopeComparison } from "../call/scopes.ts";
import { CHECK_HANDLER, INTERNALS } from "../call/internals.ts";

/** The parts of a server that its registry uses. */
export interface RegistryParts extends FeatureParts {
  readonly auth?: ScopeComparison & {
    /** Checks that some caller can use a handler. */
    [CHECK_HANDLER]?(name: string, scopes: readonly string[] | undefined): void;
  };
}

/** The handlers of a server. They are compiled when they change, never during a call. */
export class Registry {
  readonly #core: RegistryParts;
  readonly #changes: Changes;
  #handlers: readonly Handler[] = [];
  /** The handlers whose visibility is changed by rules, each with its replacement. */
  #ruled?: ReadonlyMap<Handler, Handler>;
  /** Applies the rules of `enable` and `disable`. Set with the first rule. */
  rule?: (handlers: readonly Handler[]) => ReadonlyMap<Handler, Handler>;
  /** Called after handlers were added or removed. */
  onChange?: () => void;
  #compiled = new Map<string, Compiled>();
  /** Compiled methods by name. The map is replaced as a whole when handlers change. */
  methods: ReadonlyMap<string, Method>;

  /** Creates a registry without handlers, which announces its changes through `changes`. */
  constructor(core: RegistryParts, changes: Changes) {
    this.#core = core;
    this.#changes = changes;
    for (const name of core.can.lists) this.#compiled.set(name, compileEmpty(name, core));
    this.methods = toMethods(this.#compiled);
  }

  /** Capabilities that the server declares. */
  get capabilities(): Record<string, Readonly<Record<string, unknown>>> {
    return Object.assign({}, ...[...this.#compiled.values()].map((compiled) => compiled.capabilities));
  }

  /** The handlers that were added, without handlers that were added only together with another handler. */
  get handlers(): readonly Handler[] {
    const also = new Set(this.#handlers.flatMap((handler) => withAlso(handler).slice(1)));
    return this.#handlers.filter((handler) => !also.has(handler));
  }

  /** Returns a compiled feature by its name. */
  compiled(feature: string): Compiled | undefined {
    return this.#compiled.get(feature);
  }

  /**
   * Tests whether the server has declared a list to clients.
   *
   * @throws {TypeError} if there is no list with this name.
   */
  hasList(name: string): boolean {
    if (!LISTS.includes(name)) {
      throw new TypeError(`Cannot announce that ${quote(name)} have changed: the lists are ${LISTS.join(", ")}`);
    }
    return !!this.#compiled.get(name)?.capabilities[name]?.listChanged;
  }

  /**
   * Adds handlers. If handlers conflict, throws and changes nothing. `isReported` is `false` for the handlers of a new
   * server.
   */
  add(handlers: readonly Handler[], isReported = false): void {
    const added = handlers.flatMap(withAlso);
    const known = new Set(this.#handlers.map(toName));
    for (const handler of added) {
      const name = toName(handler);
      if (known.has(name)) throw new TypeError(`Cannot add ${name}: it is registered already`);
      known.add(name);
      this.#core.auth?.[CHECK_HANDLER]?.(name, handler[INTERNALS].scopes);
    }
    this.#swap([...this.#handlers, ...added], added);
    if (isReported) this.#core.observer.handlers?.({ added: added.map(toName), removed: [] });
  }

  /** Removes the handlers with these kinds and names. Ignores unknown handlers. */
  remove(handlers: readonly (Handler | undefined)[]): void {
    const names = new Set(handlers.flatMap((handler) => handler ? withAlso(handler).map(toName) : []));
    const gone = this.#handlers.filter((handler) => names.has(toName(handler)));
    if (!gone.length) return;
    this.#swap(this.#handlers.filter((handler) => !gone.includes(handler)), gone);
    this.#core.observer.handlers?.({ added: [], removed: gone.map(toName) });
  }

  /** Finds a handler by its kind and its name. */
  find(kind: string, name: string): Handler | undefined {
    return this.#handlers.find((handler) => toName(handler) === `${kind} ${JSON.stringify(name)}`);
  }

  /** Returns the resource template or provider that serves a URI. */
  findPattern(uri: string): Handler | undefined {
    return this.#handlers.find((handler) => handler[INTERNALS].serves?.(uri));
  }

  /**
   * Returns the name of the tool or prompt, or the URI of the resource, to which a request refers. Returns `undefined`
   * for other requests.
   */
  findSubject({ method, params }: { readonly method: string; readonly params: Params }): string | undefined {
    const name = this.methods.get(method)?.subject;
    const subject = name === undefined ? undefined : params[name];
    return typeof subject === "string" ? subject : undefined;
  }

  /** Returns the handler that is served in place of a handler: changed by rules, or the handler itself. */
  toRuled(handler: Handler): Handler {
    return this.#ruled?.get(handler) ?? handler;
  }

  /** Applies changed rules to the handlers that they select. */
  toggle(changed: (handlers: readonly Handler[]) => readonly Handler[]): void {
    this.#compile(this.#handlers, changed(this.#handlers));
  }

  // Compare handlers by name and not by identity, because a package of handlers may import its own copy of the library.
  // A feature without handlers keeps its methods and an empty list, because clients already know the capability.
  #compile(handlers: readonly Handler[], changed: readonly Handler[]): void {
    for (const handler of handlers) handler[INTERNALS].extensions?.verify(handlers, toName(handler));
    const ruled = this.rule?.(handlers);
    const features = new Map<string, Feature>(changed.map(({ [INTERNALS]: { feature } }) => [feature.name, feature]));
    const compiled = new Map(this.#compiled);
    for (const [name, feature] of features) {
      const own = handlers.filter((handler) => isOf(handler, name));
      compiled.set(name, feature.compile(own.map((handler) => ruled?.get(handler) ?? handler), this.#core));
    }
    this.#handlers = handlers;
    this.#ruled = ruled;
    this.#compiled = compiled;
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

/** Creates the error for an unknown method. */
export function toUnknownMethod(name: string): McpError {
  return new McpError(METHOD_NOT_FOUND, `Cannot run ${quote(name)}: this server has no such method`);
}

/** Returns a handler, and the handlers that are added together with it. */
export function withAlso(handler: Handler): readonly Handler[] {
  // Require an own property, because an object that inherits from a handler would be served as that handler.
  if (handler && Object.hasOwn(handler, INTERNALS)) {
    const { also = [], extensions } = handler[INTERNALS];
    return [handler, ...also, ...extensions?.also ?? []];
  }
  throw new TypeError(
    "Cannot add a handler: it was not made by tool(), resource(), prompt() or extension(), or it is a copy; " +
      "give all options to the function that makes it",
  );
}

function isOf(handler: Handler, feature: string): boolean {
  return handler[INTERNALS].feature.name === feature;
}

/** Returns the kind and the name of a handler. */
export function toName(handler: Handler): string {
  const { feature, key } = handler[INTERNALS];
  return `${feature.name.replace(/s$/, "")} ${JSON.stringify(key)}`;
}

/**
 * Returns the key of a selection: the kind and the name of a handler, or a tag of several handlers.
 *
 * @throws {TypeError} if the selection is invalid.
 */
export function toSelectionKey(selected: Handler | HandlerSelector, registry: Registry): string {
  const refuse = (state: string) => new TypeError(`Cannot enable or disable ${state}`);
  // Check the value, because programs may run without type checks.
  const given: unknown = selected;
  if (!isObject(given)) {
    throw refuse('handlers: the selection is not an object; give a handler, or an object such as { tool: "add" }');
  }
  if (INTERNALS in selected) {
    // Reject extensions: their methods have no `allow`, so a rule would have no effect.
    if (selected[INTERNALS].feature.name !== "extensions") return toName(selected);
    throw refuse(`${toName(selected)}: it is an extension; add or remove it`);
  }
  const [[kind, name] = ["", ""], ...more] = Object.entries<unknown>(selected);
  if (!/^(tool|resource|prompt|group|tag)$/.test(kind) || more.length) {
    throw new TypeError(`Cannot select handlers by ${quote(kind)}: give one tool, resource, prompt, group or tag`);
  }
  // Reject the selection, because the rule would select no handler, and the intended handler would stay enabled.
  if (typeof name !== "string" || !name) {
    throw new TypeError(`Cannot select handlers by ${kind}: it is not a name; give one name as a string`);
  }
  // A template may be added later, so only reject the URI of a single resource that a known template serves.
  const isUri = kind === "resource" && !registry.find(kind, name) && !/[{}]/.test(name);
  const pattern = isUri && registry.findPattern(name);
  if (!pattern) return `${kind} ${JSON.stringify(name)}`;
  throw refuse(
    `${quote(name)}: it belongs to ${toName(pattern)}; select that handler, or hide resources with its allow`,
  );
}
