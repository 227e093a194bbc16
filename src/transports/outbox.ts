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
  /** Characters that wait. */
  length = 0;
  readonly #options: OutboxOptions;
  /** Characters up to which texts are joined. */
  readonly #joined: number;
  #texts: string[] = [];
  /** The newest texts, joined: an engine joins as it adds, in a fraction of the time that a list of texts takes. */
  #tail = "";
  /** How many texts wait, or some more while a part of them was taken. */
  #count = 0;
  /** Characters of the first text that have been taken. */
  #taken = 0;
  /** Bytes that the client is charged with, and the characters that they cover. */
  #held = 0;
  #covered = FREE;
  #account?: Account;
  #room?: PromiseWithResolvers<void>;

  /** Nothing waits yet. */
  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#joined = Math.min(options.characters, FREE);
  }

  /** Whether the producer should wait. */
  get isFull(): boolean {
    const { texts, characters } = this.#options;
    return this.length >= characters || this.#count >= texts;
  }

  /** Adds a text, or several that are joined, unless the client holds too much already. */
  push(text: string, texts = 1): boolean {
    // A text of which a part was taken is in memory as a whole.
    const held = this.length + this.#taken + text.length;
    if (held > this.#covered && !this.#hold(held)) return false;
    if (this.#tail.length + text.length <= this.#joined) this.#tail += text;
    else {
      this.#endTail();
      this.#texts.push(text);
    }
    this.length += text.length;
    this.#count += texts;
    return true;
  }

  /** Settles when there is room. */
  untilRoom(): Promise<void> {
    return (this.#room ??= Promise.withResolvers<void>()).promise;
  }

  /** Takes whole texts that are ready, or the next piece of a long one: about `most` characters. */
  take(most: number): string {
    let piece = this.#tail;
    if (this.#texts.length || piece.length > most) piece = this.#takeSome(most);
    else this.#tail = "";
    this.length -= piece.length;
    if (!this.length) this.#count = 0;
    if (this.#held || this.#room) this.#settle();
    return piece;
  }

  /** Takes the next whole text; nothing was joined if one character makes the producer wait. */
  next(): string | undefined {
    this.#endTail();
    const [text] = this.#texts.splice(0, 1);
    this.length -= text?.length ?? 0;
    this.#count = this.#texts.length;
    if (this.#held || this.#room) this.#settle();
    return text;
  }

  /** Drops what waits. */
  clear(): void {
    this.#texts = [];
    this.#tail = "";
    this.length = this.#taken = this.#count = 0;
    this.#settle();
    this.close();
  }

  /** Lets the producer go on: nothing more will be read. */
  close(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }

  #endTail(): void {
    if (this.#tail) this.#texts.push(this.#tail);
    this.#tail = "";
  }

  #takeSome(most: number): string {
    this.#endTail();
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
    this.#texts.splice(0, count);
    return piece;
  }

  #settle(): void {
    const held = this.length + this.#taken;
    if (2 * held <= this.#held - STEP) this.#hold(held);
    if (!this.isFull) this.close();
  }

  #hold(length: number): boolean {
    // In steps, because a client is charged for each text otherwise.
    const bytes = length > FREE ? Math.ceil(2 * length / STEP) * STEP : 0;
    if (bytes <= this.#held) this.#account?.free(this.#held - bytes);
    else {
      this.#account ??= this.#options.account();
      if (!this.#account.hold(bytes - this.#held)) return false;
    }
    this.#held = bytes;
    this.#covered = Math.max(FREE, bytes / 2);
    return true;
  }
}

/** Characters that may wait for free: a few thousand outboxes with so much are no danger. */
const FREE = 16_384;
/** Bytes by which what a client is charged with grows and shrinks. */
const STEP = 65_536;

// A surrogate pair that is cut would arrive as two unreadable characters.
function toEnd(text: string, end: number): number {
  const code = text.charCodeAt(end - 1);
  return end < text.length && code >= 0xd800 && code < 0xdc00 ? end + 1 : end;
}
