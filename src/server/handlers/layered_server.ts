/**
 * Puts the layers of a server around each of its handlers.
 */
import { ADDED, INTERNALS } from "../../core/internals.ts";
import type { Handler } from "../visibility/feature.ts";
import { type LayeredHandlers, type LayeredOptions, withoutExtensions } from "../engine/layers.ts";

type Layers = NonNullable<LayeredOptions["use"]>;

export class ServedHandlers implements LayeredHandlers {
  readonly #layers: Layers;
  readonly first: readonly Handler[];
  readonly served = new WeakMap<Handler, Handler>();
  readonly own = new WeakMap<Handler, Handler>();

  /** `starters` are the internal handlers that start the layers, and `added` the handlers that the layers add. */
  constructor(layers: Layers, starters: readonly Handler[], added: readonly Handler[]) {
    this.#layers = layers;
    this.first = [...starters, ...added.map((each) => this.serve(each, withoutExtensions(layers)))];
  }

  serve(handler: Handler, layers: Layers = this.#layers): Handler {
    const served = this.own.has(handler) ? handler : this.served.get(handler);
    const remake = Object.hasOwn(Object(handler), INTERNALS) ? handler[INTERNALS].remake : undefined;
    // An extension has no handler with steps, and an object that is not a handler is rejected when it is added.
    if (served || !remake) return served ?? handler;
    const made = remake((options) => ({
      ...options,
      [ADDED]: (added: Handler) => this.serve(options[ADDED]?.(added) ?? added, withoutExtensions(this.#layers)),
      use: [...layers, ...options.use ?? []],
    }));
    this.#pair(handler, made);
    return made;
  }

  /** Remembers which handler is served instead of the author's handler, and the same of the members of a group. */
  #pair(own: Handler, served: Handler): void {
    this.served.set(own, served);
    this.own.set(served, own);
    const [members, inner]: readonly (readonly Handler[])[] = [own, served].map((each) => Object(each).handlers ?? []);
    for (const [at, member] of members.entries()) this.#pair(member, inner[at]);
  }
}
