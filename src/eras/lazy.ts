/**
 * Loads an era when the first client needs it.
 *
 * @module
 */
import type { Incoming } from "../protocol/jsonrpc.ts";
import type { Era } from "../core/era.ts";
import type { Link, Reply } from "../core/link.ts";

/** An era that is loaded with its first message. */
export function lazyEra(load: () => Promise<Era>): Era {
  return new LazyEra(load);
}

class LazyEra implements Era {
  readonly #load: () => Promise<Era>;
  #loading?: Promise<Era>;
  /** The era, once it is loaded and nothing waits for it any more. */
  #ready?: Era;
  /** Settles when the messages that came before have been accepted. */
  #before: Promise<void> = Promise.resolve();

  constructor(load: () => Promise<Era>) {
    this.#load = load;
  }

  accept(message: Incoming, link: Link): Reply | Promise<Reply> {
    return this.#ready ? this.#ready.accept(message, link) : this.#acceptLater(message, link);
  }

  async attach(link: Link): Promise<Reply> {
    return await (await this.#open()).attach?.(link) ?? {};
  }

  async detach(link: Link): Promise<Reply> {
    return await (await this.#open()).detach?.(link) ?? {};
  }

  // What arrives while the era is loading is accepted in order: each message some turns after the one before, so that an
  // answer that is ready at once is written first.
  async #acceptLater(message: Incoming, link: Link): Promise<Reply> {
    const { promise: accepted, resolve } = Promise.withResolvers<void>();
    const before = this.#before;
    this.#before = accepted;
    const era = await this.#open();
    await before;
    const reply = era.accept(message, link);
    this.#passOn(resolve);
    if (this.#before === accepted) this.#ready = era;
    return await reply;
  }

  async #passOn(resolve: () => void): Promise<void> {
    for (let turns = 8; turns; turns--) await undefined;
    resolve();
  }

  #open(): Promise<Era> {
    return this.#loading ??= this.#load();
  }
}
