/**
 * Splits bytes into lines, for newline-delimited JSON.
 *
 * @see specification/2026-07-28/basic/transports/stdio
 */

export type Line = { readonly text: string } | { readonly problem: "long" | "encoding" };

/**
 * Splits bytes into lines before decoding them. Splitting bytes is safe, because in UTF-8 the byte of a line feed is
 * never part of another character.
 */
export class LineSplitter {
  readonly #limit: number;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  // Bound: `request.lineBytes`.
  #parts: Uint8Array[] = [];
  #size = 0;
  #skips = false;
  #isStart = true;

  /** `limit` is the maximum length of a line in bytes. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Returns the lines that are now complete. */
  push(bytes: Uint8Array): Line[] {
    const lines: Line[] = [];
    const end = bytes.lastIndexOf(10) + 1;
    let from = end && (this.#size || this.#skips) ? this.#cut(bytes, 0, lines) : 0;
    // Fast path: decode all whole lines together, unless a line is invalid.
    const isRead = end - from <= this.#limit && this.#read(bytes.subarray(from, end), lines);
    while (!isRead && from < end) from = this.#cut(bytes, from, lines);
    if (end < bytes.length) this.#append(bytes.slice(end));
    return lines;
  }

  /** Returns the last line if it has no line feed. */
  end(): Line[] {
    const lines: Line[] = [];
    if (this.#size || this.#skips) this.#complete(lines);
    return lines;
  }

  /** Adds the bytes up to the next line feed to the current line. Returns the index at which the next line starts. */
  #cut(bytes: Uint8Array, from: number, lines: Line[]): number {
    const at = bytes.indexOf(10, from);
    this.#append(bytes.subarray(from, at));
    this.#complete(lines);
    return at + 1;
  }

  #append(part: Uint8Array): void {
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
    else if (!this.#read(join(this.#parts, this.#size), lines)) lines.push({ problem: "encoding" });
    this.#parts = [];
    this.#size = 0;
    this.#skips = false;
  }

  /** Returns `false` if the bytes are not UTF-8. */
  #read(bytes: Uint8Array, lines: Line[]): boolean {
    try {
      const text = this.#decoder.decode(bytes);
      // Some programs, such as PowerShell, begin their output with a byte order mark.
      const start = this.#isStart && text.startsWith("\uFEFF") ? 1 : 0;
      if (text) this.#isStart = false;
      // Skip empty lines, including lines that contain only the CR of a CRLF.
      for (const line of text.slice(start).split("\n")) if (line.trim()) lines.push({ text: line });
      return true;
    } catch {
      return false;
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
