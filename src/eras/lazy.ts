/**
 * Loads an era with its first message, because a start should not wait for code that it does not need.
 *
 * @module
 */
import type { Incoming } from "../protocol/jsonrpc.ts";
import { Room } from "../protocol/room.ts";
import type { Era } from "../core/era.ts";
import type { Link, Reply } from "../core/call/link.ts";

/** An era that loads with its first message. */
export class LazyEra implements Era {
  readonly #room: Room<Era>;

  /** Creates an era without loading it. */
  constructor(load: () => Promise<Era>) {
    this.#room = new Room(load);
  }

  // The messages that wait are accepted in order, and so are immediate responses to them.
  accept(message: Incoming, link: Link): Reply | Promise<Reply> {
    const { loaded } = this.#room;
    return loaded ? loaded.accept(message, link) : this.#room.open().then((era) => era.accept(message, link));
  }

  async load(): Promise<void> {
    await this.#room.open();
  }

  rest(): void {
    this.#room.loaded?.rest?.();
  }

  /** Returns the era, and loads it if necessary. */
  protected open(): Promise<Era> {
    return this.#room.open();
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
