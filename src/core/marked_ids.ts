/**
 * Remembers which ids have ended or were used, in a bounded space that never forgets a mark.
 *
 * @module
 */
import { isObject } from "../protocol/jsonrpc.ts";

/** An id to mark. */
export interface Mark {
  /** The client that the id was made for, as {@linkcode toClientHash} returns it. */
  readonly client: string;
  /** Time at which the id was made, in milliseconds since 1970. */
  readonly at: number;
  readonly id: string;
}

/** Whether an id is marked itself, or older than marks that were dropped. */
export type Found = "marked" | "cut off";

/** What is known of an id. */
export interface Marking {
  /** Whether the id counts as marked, and why. */
  readonly found?: Found;
  /** Time at or before which all ids of its client count as marked. */
  readonly cutoff: number;
}

/** The marks of one client. */
interface Marks {
  /** Every id of the client that was made at or before this time counts as marked. */
  cutoff: number;
  /** The marked ids, oldest first. */
  readonly ids: (readonly [at: number, id: string])[];
}

/** Number of marks that one client may have before a cut-off replaces its oldest. */
export const MARKS_PER_CLIENT = 256;
/** Number of clients and marks of one set, before a cut-off replaces those of its fullest client. */
const MARKS = 512;

/**
 * A set of marked ids of bounded size. When it is full, a cut-off replaces the oldest marks: from then on every id of
 * that client that is as old counts as marked. So the set can contain too much, and never too little.
 */
export class MarkedIds {
  /** Marks by client. The client that marked an id least recently is first. */
  readonly #clients = new Map<string, Marks>();
  /** Every id of any client that was made at or before this time counts as marked. */
  #cutoff: number;
  /** Number of clients and marks. */
  #size = 0;

  /** Creates a set in which every id that was made at or before `cutoff` counts as marked. */
  constructor(cutoff = 0) {
    this.#cutoff = cutoff;
  }

  /** Reads a set from its JSON value. Returns `undefined` for any other value. */
  static read(value: unknown): MarkedIds | undefined {
    if (!isObject(value) || !isTime(value.cutoff) || !Array.isArray(value.clients)) return;
    const read = new MarkedIds(value.cutoff);
    for (const entry of value.clients) {
      if (!Array.isArray(entry)) return;
      const [client, cutoff, ids]: readonly unknown[] = entry;
      if (typeof client !== "string" || !isTime(cutoff) || !Array.isArray(ids) || !ids.every(isEntry)) return;
      read.#clients.set(client, { cutoff, ids });
      read.#size += 1 + ids.length;
    }
    return read;
  }

  /** Returns the JSON value of the set. */
  toJSON(): unknown {
    return {
      cutoff: this.#cutoff,
      clients: [...this.#clients].map(([client, { cutoff, ids }]) => [client, cutoff, ids]),
    };
  }

  /** Returns what is known of an id. */
  find({ client, at, id }: Mark): Marking {
    const cutoff = this.toCutoff(client);
    const isMarked = this.#clients.get(client)?.ids.some((entry) => entry[1] === id);
    return { cutoff, found: isMarked ? "marked" : at <= cutoff ? "cut off" : undefined };
  }

  /** Returns the time at or before which all ids of a client count as marked. */
  toCutoff(client: string): number {
    return Math.max(this.#cutoff, this.#clients.get(client)?.cutoff ?? 0);
  }

  /** Marks an id. */
  add({ client, at, id }: Mark): void {
    const marks = this.#clients.get(client) ?? { cutoff: 0, ids: [] };
    if (!this.#clients.delete(client)) this.#size++;
    this.#clients.set(client, marks);
    const after = marks.ids.findLastIndex((entry) => entry[0] <= at);
    marks.ids.splice(after + 1, 0, [at, id]);
    this.#size++;
    if (marks.ids.length > MARKS_PER_CLIENT) this.#dropOldest(marks);
    while (this.#size > MARKS) this.#makeRoom();
  }

  #dropOldest(marks: Marks): void {
    const [oldest] = marks.ids.splice(0, 1);
    marks.cutoff = Math.max(marks.cutoff, oldest[0]);
    this.#size--;
  }

  // The fullest client pays first. Among many clients with one mark each, the least recent one is dropped whole, which
  // moves the cut-off of all.
  #makeRoom(): void {
    let fullest: Marks | undefined;
    for (const marks of this.#clients.values()) {
      if (marks.ids.length > (fullest?.ids.length ?? 1)) fullest = marks;
    }
    if (fullest) return this.#dropOldest(fullest);
    for (const [client, { cutoff, ids }] of this.#clients) {
      this.#cutoff = Math.max(this.#cutoff, cutoff, ids.at(-1)?.[0] ?? 0);
      this.#clients.delete(client);
      this.#size -= 1 + ids.length;
      return;
    }
  }
}

/**
 * Returns a hash that stands for the client with this key, such as its principal or its address. Clients without a key
 * cannot be distinguished, so they share one hash.
 */
export async function toClientHash(key: string | undefined): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key ?? ""));
  const hex = Array.from(new Uint8Array(digest, 0, 8), (byte) => byte.toString(16).padStart(2, "0")).join("");
  // Anybody has many addresses, but nobody has many principals. So addresses never move the cut-off of principals.
  return (key?.startsWith("principal ") ? "p" : "a") + hex;
}

/** Returns the name of the set in which the marks of a client are: one of 512. */
export function toSetName({ client }: Pick<Mark, "client">): string {
  return client.slice(0, 3);
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && value >= 0;
}

function isEntry(value: unknown): value is readonly [number, string] {
  return Array.isArray(value) && value.length === 2 && isTime(value[0]) && typeof value[1] === "string";
}
