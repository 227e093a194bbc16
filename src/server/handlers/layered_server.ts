/**
 * Puts the layers of a server around each of its handlers.
 */
import type { HandlerSet } from "../call/context.ts";
import { ADDED, INTERNALS } from "../../core/internals.ts";
import type { Handler } from "../visibility/feature.ts";
import { type LayeredHandlers, type LayeredOptions, withoutExtensions } from "../engine/layers.ts";

type Layers = NonNullable<LayeredOptions["use"]>;

/** See {@linkcode LayeredHandlers}. */
export class ServedHandlers implements LayeredHandlers {
  readonly #layers: Layers;
  readonly #starters: readonly Handler[];
  /** Increases when a layer has steps around a handler. */
  #layered = 0;
  /** The handlers within the layers, keyed by the handlers that the author has created. */
  readonly #served = new WeakMap<Handler, Handler>();
  /** The handlers that the author has created, keyed by the handlers within the layers. */
  readonly #own = new WeakMap<Handler, Handler>();

  /**
   * `toLayers` returns the layers, which call `onSteps` when they have steps around a handler. `starters` are the internal
   * handlers that start the layers, and `added` the handlers that the layers add to the server.
   */
  constructor(toLayers: (onSteps: () => void) => Layers, starters: readonly Handler[], added: readonly Handler[]) {
    this.#layers = toLayers(() => this.#layered++);
    this.#starters = [...starters, ...this.#serve(added, withoutExtensions(this.#layers))];
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

  #serve(handlers: readonly Handler[], layers: Layers = this.#layers): readonly Handler[] {
    return handlers.map((handler) =>
      this.#own.has(handler) ? handler : this.#served.get(handler) ?? this.#make(handler, layers)
    );
  }

  #toOwn(handler: Handler): Handler {
    return this.#own.get(handler) ?? handler;
  }

  #make(handler: Handler, layers: Layers): Handler {
    const remake = Object.hasOwn(Object(handler), INTERNALS) ? handler[INTERNALS].remake : undefined;
    // An extension has no handler with steps, and an object that is not a handler is rejected when it is added.
    if (!remake) return handler;
    const before = this.#layered;
    const made = remake((options) => ({
      ...options,
      [ADDED]: (added: Handler) => this.#serveAdded(options[ADDED]?.(added) ?? added),
      use: [...layers, ...options.use ?? []],
    }));
    if (this.#layered === before) return handler;
    this.#pair(handler, made);
    return made;
  }

  /** Remembers which handler is served instead of the author's handler, and the same of the members of a group. */
  #pair(own: Handler, served: Handler): void {
    this.#served.set(own, served);
    this.#own.set(served, own);
    const [members, inner]: readonly (readonly Handler[])[] = [own, served].map((each) => Object(each).handlers ?? []);
    for (const [at, member] of members.entries()) this.#pair(member, inner[at]);
  }

  #serveAdded(added: Handler): Handler {
    const [served] = this.#serve([added], withoutExtensions(this.#layers));
    // The handler that adds this handler must be changed too.
    if (served !== added) this.#layered++;
    return served;
  }
}
