/**
 * The handlers of a server, compiled to methods.
 *
 * @module
 */
import { McpError, METHOD_NOT_FOUND, quote } from "../protocol/errors.ts";
import type { Changes } from "./changes.ts";
import type { Core } from "./core.ts";
import type { Compiled, Feature, Handler, Method } from "./feature.ts";
import { INTERNALS } from "./internals.ts";

/** The handlers of a server. They are compiled when they change, never during a call. */
export class Registry {
  readonly #core: Core;
  readonly #changes: Changes;
  #handlers: readonly Handler[] = [];
  #compiled = new Map<string, Compiled>();
  /** Compiled methods by name. The map is replaced as a whole when handlers change. */
  methods: ReadonlyMap<string, Method> = new Map();

  /** Creates an empty registry, which announces its changes through `changes`. */
  constructor(core: Core, changes: Changes) {
    this.#core = core;
    this.#changes = changes;
  }

  /** Capabilities that the server declares. */
  get capabilities(): Record<string, Readonly<Record<string, unknown>>> {
    return Object.assign({}, ...[...this.#compiled.values()].map((compiled) => compiled.capabilities));
  }

  /** Handlers that were added, without those that came along with another handler. */
  get handlers(): readonly Handler[] {
    const also = new Set(this.#handlers.flatMap((handler) => handler[INTERNALS].also ?? []));
    return this.#handlers.filter((handler) => !also.has(handler));
  }

  /** Returns a compiled feature by its name. */
  compiled(feature: string): Compiled | undefined {
    return this.#compiled.get(feature);
  }

  /**
   * Tests whether clients know of a list.
   *
   * @throws {TypeError} if no list has this name.
   */
  hasList(name: string): boolean {
    if (!LISTS.includes(name)) {
      throw new TypeError(`Cannot announce that ${quote(name)} have changed: the lists are ${LISTS.join(", ")}`);
    }
    return !!this.#compiled.get(name)?.capabilities[name]?.listChanged;
  }

  /** Adds handlers. If one of them is in conflict, throws and changes nothing. The first ones are not reported. */
  add(handlers: readonly Handler[], isReported = false): void {
    const added = handlers.flatMap(withAlso);
    const known = new Set(this.#handlers.map(toName));
    for (const handler of added) {
      const name = toName(handler);
      if (known.has(name)) throw new TypeError(`Cannot add ${name}: it is registered already`);
      known.add(name);
    }
    this.#swap([...this.#handlers, ...added], added);
    if (isReported) this.#core.observer.handlers?.({ added: added.map(toName), removed: [] });
  }

  /** Removes the handlers of these kinds and names. Unknown ones are ignored. */
  remove(handlers: readonly Handler[]): void {
    const names = new Set(handlers.flatMap(withAlso).map(toName));
    const gone = this.#handlers.filter((handler) => names.has(toName(handler)));
    if (!gone.length) return;
    this.#swap(this.#handlers.filter((handler) => !gone.includes(handler)), gone);
    this.#core.observer.handlers?.({ added: [], removed: gone.map(toName) });
  }

  // Compares by name and not by identity, because a package of handlers may import its own copy of the library. A
  // feature without handlers keeps its methods and an empty list, because clients already know the capability.
  #swap(handlers: readonly Handler[], changed: readonly Handler[]): void {
    for (const handler of handlers) handler[INTERNALS].extensions?.verify(handlers, toName(handler));
    const features = new Map<string, Feature>(changed.map(({ [INTERNALS]: { feature } }) => [feature.name, feature]));
    const compiled = new Map(this.#compiled);
    for (const [name, feature] of features) {
      compiled.set(name, feature.compile(handlers.filter((handler) => isOf(handler, name)), this.#core));
    }
    this.#handlers = handlers;
    this.#compiled = compiled;
    this.methods = new Map([...compiled.values()].flatMap(({ methods }) => Object.entries(methods)));
    for (const [name, { capabilities }] of compiled) {
      if (!features.has(name) || !capabilities[name]?.listChanged) continue;
      const handlers = changed.filter((handler) => isOf(handler, name));
      this.#changes.emit({ kind: "list", feature: name, handlers });
    }
  }
}

const LISTS: readonly string[] = ["tools", "resources", "prompts"];

/** Creates the error for an unknown method. */
export function toUnknownMethod(name: string): McpError {
  return new McpError(METHOD_NOT_FOUND, `Cannot run ${quote(name)}: this server has no such method`);
}

function withAlso(handler: Handler): readonly Handler[] {
  const internals = handler?.[INTERNALS];
  if (!internals) {
    throw new TypeError("Cannot add a handler: it was not made by tool(), resource(), prompt() or extension()");
  }
  return [handler, ...internals.also ?? []];
}

function isOf(handler: Handler, feature: string): boolean {
  return handler[INTERNALS].feature.name === feature;
}

function toName(handler: Handler): string {
  const { feature, key } = handler[INTERNALS];
  return `${feature.name.replace(/s$/, "")} ${JSON.stringify(key)}`;
}
