/**
 * What waits to be read by one client: everything that is sent passes through an outbox.
 *
 * @module
 */
import type { Account } from "../core/account.ts";

/** How much may wait before the producer has to. */
export interface OutboxOptions {
  /** Texts that may wait. */
  readonly texts: number;
  /** Characters that may wait. */
  readonly characters: number;
  /** The client that is charged with what waits. Not looked up before there is much. */
  readonly account: () => Account;
}

/** Texts that wait for one reader, in order. What they take is charged to the client as long as it is much. */
export class Outbox {
  readonly #options: OutboxOptions;
  #texts: string[] = [];
  /** Characters of the first text that have been taken. */
  #taken = 0;
  #length = 0;
  #held = 0;
  #account?: Account;
  #room?: PromiseWithResolvers<void>;

  /** Nothing waits yet. */
  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** Whether nothing waits. */
  get isEmpty(): boolean {
    return !this.#length;
  }

  /** Whether so little waits that it can be handed over in one piece. */
  get isShort(): boolean {
    return this.#length <= FREE;
  }

  /** Adds a text, unless the client holds too much already. */
  push(text: string): boolean {
    const length = this.#length + text.length;
    if (length > FREE && !this.#hold(length)) return false;
    this.#texts.push(text);
    this.#length = length;
    return true;
  }

  /** A promise if the producer should wait for room. */
  untilRoom(): Promise<void> | undefined {
    const { texts, characters } = this.#options;
    if (this.#texts.length < texts && this.#length < characters) return;
    return (this.#room ??= Promise.withResolvers<void>()).promise;
  }

  /** Takes whole texts that are ready, or the next piece of a long one: about `most` characters. */
  take(most: number): string {
    let piece = "";
    let count = 0;
    while (count < this.#texts.length && piece.length < most) {
      const text = this.#texts[count];
      const end = toEnd(text, this.#taken + most);
      piece += this.#taken || end < text.length ? text.slice(this.#taken, end) : text;
      this.#taken = end < text.length ? end : 0;
      if (this.#taken) break;
      count++;
    }
    if (count) this.#texts.splice(0, count);
    this.#length -= piece.length;
    this.#settle();
    return piece;
  }

  /** Takes the next whole text. */
  next(): string | undefined {
    const [text] = this.#texts.splice(0, 1);
    this.#length -= text?.length ?? 0;
    this.#settle();
    return text;
  }

  /** Drops what waits. */
  clear(): void {
    this.#texts = [];
    this.#length = this.#taken = 0;
    this.#settle();
    this.close();
  }

  /** Lets the producer go on: nothing more will be read. */
  close(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }

  #settle(): void {
    if (this.#held) this.#hold(this.#length);
    const { texts, characters } = this.#options;
    if (this.#texts.length < texts && this.#length < characters) this.close();
  }

  #hold(length: number): boolean {
    const bytes = length > FREE ? 2 * length : 0;
    if (bytes <= this.#held) this.#account?.free(this.#held - bytes);
    else {
      this.#account ??= this.#options.account();
      if (!this.#account.hold(bytes - this.#held)) return false;
    }
    this.#held = bytes;
    return true;
  }
}

/** Characters that may wait for free: a few thousand outboxes with so much are no danger. */
const FREE = 16_384;

// A surrogate pair that is cut would arrive as two unreadable characters.
function toEnd(text: string, end: number): number {
  const code = text.charCodeAt(end - 1);
  return end < text.length && code >= 0xd800 && code < 0xdc00 ? end + 1 : end;
}
