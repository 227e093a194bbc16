/**
 * The queue of messages that a client has not read yet. All messages to the client pass through this queue.
 */
import type { Account } from "../capacity/account.ts";

/** The sizes of a queue above which the writer should wait. */
export interface OutboxOptions {
  /** Maximum number of texts without backpressure. */
  readonly texts: number;
  /** Maximum number of characters without backpressure. */
  readonly characters: number;
  /** Returns the account of the client. Called only when the queue grows large. */
  readonly account: () => Account;
}

/** A large queue is charged to the client. */
export class Outbox {
  /** The number of characters in the queue. */
  length = 0;
  readonly #options: OutboxOptions;
  /** Maximum length in characters of `#tail`, into which texts are joined. */
  readonly #joined: number;
  // Bound: `streams.waitingTexts`, and `memory.bytes` beyond it.
  #texts: string[] = [];
  /** The newest texts, joined into one string, because this is much faster than an array of texts. */
  #tail = "";
  /** The number of texts in the queue. Can be too high while a text is only partly taken. */
  #count = 0;
  /** The number of characters that have been taken from the first text. */
  #taken = 0;
  /** The number of bytes that are charged to the client. */
  #held = 0;
  #covered = FREE;
  #account?: Account;
  #room?: PromiseWithResolvers<void>;

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#joined = Math.min(options.characters, FREE);
  }

  /** Whether the writer should wait until the reader has taken more. */
  get isFull(): boolean {
    const { texts, characters } = this.#options;
    return this.length >= characters || this.#count >= texts;
  }

  /** `texts` is the number of joined texts. Returns `false` if the client exceeds its memory limit. */
  push(text: string, texts = 1): boolean {
    // Count the taken characters too, because a partly taken text is still in memory as a whole.
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

  untilRoom(): Promise<void> {
    return (this.#room ??= Promise.withResolvers<void>()).promise;
  }

  /** Takes about `max` characters: several whole texts, or the next part of a long text. */
  read(max: number): string {
    let piece = this.#tail;
    if (this.#texts.length || piece.length > max) piece = this.#readSome(max);
    else this.#tail = "";
    this.length -= piece.length;
    if (!this.length) this.#count = 0;
    if (this.#held || this.#room) this.#releaseRead();
    return piece;
  }

  /** Takes the next whole text. Works only if the limit `characters` is 1, because texts are then never joined. */
  next(): string | undefined {
    this.#endTail();
    const [text] = this.#texts.splice(0, 1);
    this.length -= text?.length ?? 0;
    this.#count = this.#texts.length;
    if (this.#held || this.#room) this.#releaseRead();
    return text;
  }

  /** Empties the queue, and ends the writer's wait. */
  clear(): void {
    this.#texts = [];
    this.#tail = "";
    this.length = this.#taken = this.#count = 0;
    this.#releaseRead();
    this.close();
  }

  /** Ends the writer's wait, because the reader takes no further texts. */
  close(): void {
    this.#room?.resolve();
    this.#room = undefined;
  }

  #endTail(): void {
    if (this.#tail) this.#texts.push(this.#tail);
    this.#tail = "";
  }

  #readSome(max: number): string {
    this.#endTail();
    let piece = "";
    let count = 0;
    while (count < this.#texts.length && piece.length < max) {
      const text = this.#texts[count];
      const end = toEnd(text, this.#taken + max);
      piece += this.#taken || end < text.length ? text.slice(this.#taken, end) : text;
      this.#taken = end < text.length ? end : 0;
      if (this.#taken) break;
      count++;
    }
    this.#texts.splice(0, count);
    return piece;
  }

  #releaseRead(): void {
    const held = this.length + this.#taken;
    if (2 * held <= this.#held - STEP) this.#hold(held);
    if (!this.isFull) this.close();
  }

  #hold(length: number): boolean {
    // Change the charge in steps of `STEP` bytes, because a new charge for each text would be slow.
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

/**
 * Length in characters up to which a queue is not charged, because even thousands of such queues take little memory.
 */
const FREE = 16_384;
/** Size in bytes of the steps in which the charge grows and shrinks. */
const STEP = 65_536;

// Moves the end of a piece if the end would split a surrogate pair. Otherwise the client would receive two invalid
// characters.
function toEnd(text: string, end: number): number {
  const code = text.charCodeAt(end - 1);
  return end < text.length && code >= 0xd800 && code < 0xdc00 ? end + 1 : end;
}
