/**
 * Records messages as lines of text that do not differ between runs.
 */
import { replaceErrorId } from "./error_id.ts";
import { isObject } from "./json.ts";

/** Matches the headers that a transcript shows. */
const SHOWN = /^(mcp-(?!session-id).*|authorization|last-event-id)$/;

/** Headers whose values are replaced by names, with the kind of each name. */
const NAMED = new Map([["authorization", "token"], ["last-event-id", "event"]]);

/** Number of characters that a name counts in addition to its value. */
const NAME_WEIGHT = 200;

/**
 * Records what a connection sends (`→`) and receives (`←`). Names such as `<session 1>` replace values that are secret
 * or differ between runs: session ids, request states, error ids and event ids. A value has the same name each time it
 * occurs.
 */
export class Transcript {
  readonly lines: string[] = [];
  /** The names of values, by kind and value. */
  readonly #names = new Map<string, Map<string, string>>();
  readonly #values = new Map<string, string>();
  #weight = 0;

  request(method: string, headers: Headers): void {
    const session = headers.get("mcp-session-id");
    const shown = [...headers].filter(([name]) => SHOWN.test(name)).map(([name, value]) => {
      const kind = NAMED.get(name);
      return `${name}: ${kind ? this.name(kind, value) : value}`;
    });
    if (session !== null) shown.push(`mcp-session-id: ${this.name("session", session)}`);
    this.lines.push([`→ ${method}`, ...shown].join(" | "));
  }

  response({ status, headers }: Response): void {
    const session = headers.get("mcp-session-id");
    const shown = [`← ${status}`];
    if (headers.has("content-type")) shown.push(`content-type: ${headers.get("content-type")}`);
    if (session !== null) shown.push(`mcp-session-id: ${this.name("session", session)}`);
    this.lines.push(shown.join(" | "));
  }

  sent(message: unknown): void {
    this.lines.push(`→ ${this.toText(message)}`);
  }

  received(message: unknown): void {
    this.lines.push(`← ${this.toText(message)}`);
  }

  /** Records a received body that is not a JSON-RPC message. */
  other(text: string): void {
    if (text) this.lines.push(`← ${text}`);
  }

  /** Returns a message as JSON, in which names replace secret values and values that differ between runs. */
  toText(message: unknown): string {
    const toErrorName = (id: string) => this.name("error", id);
    const failedBlocks = new Set<unknown>();
    const toNamed = (key: string, value: unknown, holder: unknown) => {
      // The text in the result of a failed tool can contain an error id.
      if (isObject(value) && value.isError === true) [value.content].flat().forEach((block) => failedBlocks.add(block));
      if (typeof value !== "string") return value;
      if (key === "requestState") return this.name("state", value);
      if (key === "errorId") return toErrorName(value);
      if (/^(id|requestId)$/.test(key) && value.startsWith("ask-")) return this.name("question", value);
      return key === "text" && failedBlocks.has(holder) ? replaceErrorId(value, toErrorName) : value;
    };
    return JSON.stringify(message, function (key, value) {
      return toNamed(key, value, this);
    });
  }

  /** The number of characters that the names and their values keep in memory. */
  get weight(): number {
    return this.#weight;
  }

  /** Replaces the names in a text with their values. */
  reveal(text: string): string {
    return text.replace(/<\w+ \d+>/g, (name) => this.#values.get(name) ?? name);
  }

  /** Returns the name of a value, such as `<session 1>`. The first call with a value creates its name. */
  name(kind: string, value: string): string {
    const names = this.#names.get(kind) ?? new Map<string, string>();
    const known = names.get(value);
    if (known) return known;
    // Copy the value, because a match can keep the whole text that contained it in memory.
    const copy: string = JSON.parse(JSON.stringify(value));
    const name = `<${kind} ${names.size + 1}>`;
    this.#names.set(kind, names.set(copy, name));
    this.#values.set(name, copy);
    this.#weight += copy.length + NAME_WEIGHT;
    return name;
  }
}
