/**
 * Records messages as lines of text that are the same on every run.
 *
 * @module
 */
/** The headers that a transcript shows. The other headers are the same on every request. */
const SHOWN = /^(mcp-(?!session-id).*|authorization|last-event-id)$/;

/** Headers whose values are replaced by names. */
const NAMED = new Map([["authorization", "token"], ["last-event-id", "event"]]);

/**
 * Records what a connection sends (`→`) and receives (`←`). Names such as `<session 1>` replace values that are secret
 * or differ from run to run: session ids, request states, ids of errors and events. A value always has the same name.
 */
export class Transcript {
  /** The lines so far. */
  readonly lines: string[] = [];
  readonly #names = new Map<string, string>();
  readonly #values = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  /** Records the head of an HTTP request. */
  request(method: string, headers: Headers): void {
    const session = headers.get("mcp-session-id");
    const shown = [...headers].filter(([name]) => SHOWN.test(name)).map(([name, value]) => {
      const kind = NAMED.get(name);
      return `${name}: ${kind ? this.name(kind, value) : value}`;
    });
    if (session !== null) shown.push(`mcp-session-id: ${this.name("session", session)}`);
    this.lines.push([`→ ${method}`, ...shown].join(" | "));
  }

  /** Records the head of an HTTP response. */
  response({ status, headers }: Response): void {
    const session = headers.get("mcp-session-id");
    const shown = [`← ${status}`];
    if (headers.has("content-type")) shown.push(`content-type: ${headers.get("content-type")}`);
    if (session !== null) shown.push(`mcp-session-id: ${this.name("session", session)}`);
    this.lines.push(shown.join(" | "));
  }

  /** Records a sent message. */
  sent(message: unknown): void {
    this.lines.push(`→ ${this.toText(message)}`);
  }

  /** Records a received message. */
  received(message: unknown): void {
    this.lines.push(`← ${this.toText(message)}`);
  }

  /** Records a body that is not a message. */
  other(text: string): void {
    if (text) this.lines.push(`← ${text}`);
  }

  /** Returns a message as JSON, with names in place of values that differ from run to run. */
  toText(message: unknown): string {
    return JSON.stringify(message, (key, value) => {
      if (typeof value !== "string") return value;
      if (key === "requestState") return this.name("state", value);
      if (key === "errorId") return this.name("error", value);
      // In the result of a tool, the id of an error is part of the text, and must be replaced there.
      return value.replace(/(?<=Internal error \()[0-9a-f]{8}(?=\)$)/, (id) => this.name("error", id));
    });
  }

  /** The number of names in use. */
  get size(): number {
    return this.#names.size;
  }

  /** Returns a text in which names are replaced by their values. */
  reveal(text: string): string {
    return text.replace(/<\w+ \d+>/g, (name) => this.#values.get(name) ?? name);
  }

  /** Returns the stable name of a value. */
  name(kind: string, value: string): string {
    const known = this.#names.get(`${kind} ${value}`);
    if (known) return known;
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    const name = `<${kind} ${count}>`;
    this.#names.set(`${kind} ${value}`, name);
    this.#values.set(name, value);
    return name;
  }
}
