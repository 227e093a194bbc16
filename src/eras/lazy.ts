/**
 * Loads an era with its first message, because a start should not wait for code that it does not need.
 *
 * @module
 */
import type { Incoming } from "../protocol/jsonrpc.ts";
import { lazy } from "../protocol/promises.ts";
import type { Era } from "../core/era.ts";
import type { Link, Reply } from "../core/call/link.ts";

/** An era that loads with its first message. */
export class LazyEra implements Era {
  /** Returns the era, and loads it if necessary. */
  protected readonly open: () => Promise<Era>;
  /** The era, once it is loaded and has accepted the messages that waited for it. */
  #ready?: Era;

  /** Creates an era without loading it. */
  constructor(load: () => Promise<Era>) {
    this.open = lazy(load);
  }

  // The messages that wait are accepted in order, and so are immediate responses to them.
  accept(message: Incoming, link: Link): Reply | Promise<Reply> {
    return this.#ready?.accept(message, link) ?? this.open().then((era) => (this.#ready = era).accept(message, link));
  }

  async load(): Promise<void> {
    await this.open();
  }

  rest(): void {
    this.#ready?.rest?.();
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
