/**
 * Puts the layers of a server around each of its handlers.
 *
 * @module
 */
import type { HandlerSet } from "../core/call/context.ts";
import { INTERNALS } from "../core/call/internals.ts";
import type { Handler } from "../core/visibility/feature.ts";
import type { LayeredHandlers, LayeredOptions } from "../core/layers.ts";

type Layers = NonNullable<LayeredOptions["use"]>;

/** See {@linkcode LayeredHandlers}. */
export class ServedHandlers implements LayeredHandlers {
  readonly #layers: Layers;
  readonly #starters: readonly Handler[];
  /** The handlers within the layers, keyed by the handlers that the author has created. */
  readonly #served = new WeakMap<Handler, Handler>();
  /** The handlers that the author has created, keyed by the handlers within the layers. */
  readonly #own = new WeakMap<Handler, Handler>();

  /** `starters` are the internal handlers that start the layers. */
  constructor(layers: Layers, starters: readonly Handler[]) {
    this.#layers = layers;
    this.#starters = starters;
  }

  open(handlers: readonly Handler[]): readonly Handler[] {
    // The server of a concrete path gets the internal handlers from the server of the path with parameters.
    return [...this.#starters.filter((starter) => !handlers.includes(starter)), ...this.#serve(handlers)];
  }

  wrap(set: HandlerSet<Handler>): void {
    const plain = { ...set };
    Object.assign<HandlerSet<Handler>, Partial<HandlerSet<Handler>>>(set, {
      add: (...added) => plain.add(...this.#serve(added)),
      remove: (...removed) =>
        plain.remove(...removed.map((handler) => handler && (this.#served.get(handler) ?? handler))),
      list: () => plain.list().filter((handler) => !this.#starters.includes(handler)).map((each) => this.#toOwn(each)),
      get: (...selected) => {
        const found = plain.get(...selected);
        return found && this.#toOwn(found);
      },
    });
  }

  #serve(handlers: readonly Handler[]): readonly Handler[] {
    return handlers.map((handler) =>
      this.#own.has(handler) ? handler : this.#served.get(handler) ?? this.#make(handler)
    );
  }

  #toOwn(handler: Handler): Handler {
    return this.#own.get(handler) ?? handler;
  }

  #make(handler: Handler): Handler {
    const made = addLayers(handler, this.#layers);
    if (made === handler) return handler;
    this.#served.set(handler, made);
    this.#own.set(made, handler);
    return made;
  }
}

/** Creates a handler again within more layers. */
export function addLayers(handler: Handler, layers: Layers): Handler {
  const remake = Object.hasOwn(Object(handler), INTERNALS) ? handler[INTERNALS].remake : undefined;
  // An extension has no handler with steps, and an object that is not a handler is rejected when it is added.
  if (!remake || !layers.length) return handler;
  return remake((options) => ({ ...options, use: [...layers, ...options.use ?? []] }));
}
