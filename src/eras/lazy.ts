/**
 * Loads an era with its first message, because a start should not wait for code that it does not need.
 *
 * @module
 */
import type { Incoming } from "../protocol/jsonrpc.ts";
import { lazy } from "../protocol/promises.ts";
import type { Era } from "../core/era.ts";
import type { Link, Reply } from "../core/link.ts";

/** An era that loads with its first message. */
export class LazyEra implements Era {
  /** Returns the era, and loads it if necessary. */
  protected readonly open: () => Promise<Era>;
  /** The era, once it is loaded and no message waits for it. */
  #ready?: Era;
  /** Settles when all earlier messages have been accepted. */
  #before: Promise<void> = Promise.resolve();

  /** Creates an era without loading it. */
  constructor(load: () => Promise<Era>) {
    this.open = lazy(load);
  }

  accept(message: Incoming, link: Link): Reply | Promise<Reply> {
    return this.#ready ? this.#ready.accept(message, link) : this.#acceptLater(message, link);
  }

  async load(): Promise<void> {
    await this.open();
  }

  rest(): void {
    this.#ready?.rest?.();
  }

  // Messages that arrive while the era loads are accepted in order. Each waits some microtasks after the previous one,
  // so that an immediate response to that one is written first.
  async #acceptLater(message: Incoming, link: Link): Promise<Reply> {
    const { promise: accepted, resolve } = Promise.withResolvers<void>();
    const before = this.#before;
    this.#before = accepted;
    let reply;
    try {
      const era = await this.open();
      await before;
      reply = era.accept(message, link);
      if (this.#before === accepted) this.#ready = era;
    } finally {
      this.#passOn(resolve);
    }
    return await reply;
  }

  async #passOn(resolve: () => void): Promise<void> {
    for (let turns = 8; turns; turns--) await undefined;
    resolve();
  }
}

/** An era with sessions and standalone streams. It loads with its first message or stream. */
export class LazySessionEra extends LazyEra {
  async attach(link: Link): Promise<Reply> {
    return await (await this.open()).attach?.(link) ?? {};
  }

  async detach(link: Link): Promise<Reply> {
    return await (await this.open()).detach?.(link) ?? {};
  }
}
