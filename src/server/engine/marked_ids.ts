/**
 * Records used ids in a limited amount of memory. A marked id never becomes unmarked.
 */
import { isObject } from "../../core/protocol/jsonrpc.ts";

/** An id that can be marked, with the client and the creation time. */
export interface Mark {
  /** Hash of the client for which the id was created, as returned by {@linkcode toClientHash}. */
  readonly client: string;
  /** Time at which the id was created, in milliseconds since 1970. */
  readonly at: number;
  readonly id: string;
}

/**
 * The reason why an id counts as marked. Either the id itself was marked (`marked`), or the id was created at or before
 * the cut-off (`cut-off`).
 */
export type Found = "marked" | "cut-off";

export interface Marking {
  /** The reason why the id counts as marked. `undefined` if the id does not count as marked. */
  readonly found?: Found;
  /** All of the client's ids that were created at or before this time count as marked. In milliseconds since 1970. */
  readonly cutoff: number;
}

interface Marks {
  /** All of the client's ids that were created at or before this time count as marked. */
  cutoff: number;
  /** The marked ids, oldest first. */
  readonly ids: (readonly [at: number, id: string])[];
}

/** Number of marks per client above which a cut-off replaces the client's oldest marks. */
export const MARKS_PER_CLIENT = 256;
/** Number of clients and marks per set above which a cut-off replaces marks of the client with the most marks. */
const MARKS = 512;

/**
 * A set of marked ids with a maximum size. When the set is full, a cut-off replaces a client's oldest marks. A cut-off
 * is a time: all of the client's ids that were created at or before this time count as marked. The set may therefore
 * contain ids that were not marked, but never loses a marked id.
 */
export class MarkedIds {
  /** The marks by client hash. The client that least recently marked an id comes first. */
  readonly #clients = new Map<string, Marks>();
  /** For every client, all ids that were created at or before this time count as marked. */
  #cutoff: number;
  /** Number of clients plus number of marks. */
  #size = 0;

  /** Creates a set in which all ids that were created at or before `cutoff` count as marked. */
  constructor(cutoff = 0) {
    this.#cutoff = cutoff;
  }

  /** Reads a set from the value that `toJSON` has returned. Returns `undefined` for any other value. */
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

  /** Returns the set as a JSON value. See {@linkcode MarkedIds.read}. */
  toJSON(): unknown {
    return {
      cutoff: this.#cutoff,
      clients: [...this.#clients].map(([client, { cutoff, ids }]) => [client, cutoff, ids]),
    };
  }

  /** Returns whether an id counts as marked, and the client's cut-off. */
  find({ client, at, id }: Mark): Marking {
    const cutoff = this.toCutoff(client);
    const isMarked = this.#clients.get(client)?.ids.some((entry) => entry[1] === id);
    return { cutoff, found: isMarked ? "marked" : at <= cutoff ? "cut-off" : undefined };
  }

  toCutoff(client: string): number {
    return Math.max(this.#cutoff, this.#clients.get(client)?.cutoff ?? 0);
  }

  /** Marks an id. If the set is full, drops the oldest mark of the client with the most marks. */
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

  // Drops a mark of the client with the most marks. If no client has more than one mark, drops the client that least
  // recently marked an id, and raises the cut-off for all clients.
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
 * Returns a hash of a client's key, such as its principal or its address. All clients without a key share one hash,
 * because these clients cannot be distinguished.
 */
export async function toClientHash(key: string | undefined): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key ?? ""));
  const hex = Array.from(new Uint8Array(digest, 0, 8), (byte) => byte.toString(16).padStart(2, "0")).join("");
  // Use different prefixes for principals and addresses, so that their marks are in different sets. Otherwise an
  // attacker with many addresses could raise the cut-off for principals.
  return (key?.startsWith("principal ") ? "p" : "a") + hex;
}

/** Returns the name of the set that contains a client's marks. There are 512 names. */
export function toSetName({ client }: Pick<Mark, "client">): string {
  return client.slice(0, 3);
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && value >= 0;
}

function isEntry(value: unknown): value is readonly [number, string] {
  return Array.isArray(value) && value.length === 2 && isTime(value[0]) && typeof value[1] === "string";
}
