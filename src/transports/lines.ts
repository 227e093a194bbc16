/**
 * Bytes to lines: newline-delimited JSON, however the bytes are cut.
 *
 * @see specification/2026-07-28/basic/transports/stdio
 * @module
 */

/** One line of input, or why it cannot be one. */
export type Line = { readonly text: string } | { readonly problem: "long" | "encoding" };

/** Cuts bytes into lines. Split on bytes, not on text: a byte of value 10 is never part of another character. */
export class LineSplitter {
  readonly #limit: number;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  #parts: Uint8Array[] = [];
  #size = 0;
  #skips = false;

  /** A splitter for lines of at most `limit` bytes. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The lines that these bytes complete. */
  push(bytes: Uint8Array): Line[] {
    const lines: Line[] = [];
    let from = 0;
    for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, from)) {
      this.#take(bytes.subarray(from, at));
      this.#complete(lines);
      from = at + 1;
    }
    if (from < bytes.length) this.#take(bytes.slice(from));
    return lines;
  }

  /** The last line, if the input ended without a line break. */
  end(): Line[] {
    const lines: Line[] = [];
    if (this.#size || this.#skips) this.#complete(lines);
    return lines;
  }

  #take(part: Uint8Array): void {
    if (this.#skips) return;
    this.#size += part.length;
    this.#parts.push(part);
    if (this.#size <= this.#limit) return;
    this.#skips = true;
    this.#parts = [];
    this.#size = 0;
  }

  #complete(lines: Line[]): void {
    if (this.#skips) lines.push({ problem: "long" });
    else if (this.#size) this.#decode(lines);
    this.#parts = [];
    this.#size = 0;
    this.#skips = false;
  }

  #decode(lines: Line[]): void {
    try {
      const text = this.#decoder.decode(this.#parts.length === 1 ? this.#parts[0] : join(this.#parts, this.#size));
      // Empty lines and the CR of a CRLF are no messages.
      if (text.trim()) lines.push({ text });
    } catch {
      lines.push({ problem: "encoding" });
    }
  }
}

function join(parts: readonly Uint8Array[], size: number): Uint8Array {
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
