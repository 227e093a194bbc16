/**
 * Records used ids in a limited amount of memory. A marked id does not become unmarked before it has expired.
 */
import { isObject } from "../../core/protocol/jsonrpc.ts";

/** An id that can be marked, with the client and the creation time. */
export interface Mark {
  /** Hash of the client for which the id was created, as returned by {@linkcode toClientHash}. */
  readonly client: string;
  /** Hash of the key with which the client has created the id. Each key of a client has its own marks and cut-off. */
  readonly key?: string;
  /** Time at which the id was created, in milliseconds since 1970. */
  readonly at: number;
  readonly id: string;
  /** Milliseconds from `at` after which the mark is dropped. Defaults to the time to live of the set. */
  readonly ttlMs?: number;
}

export interface MarkTime {
  /** The current time in milliseconds since 1970. */
  readonly date: number;
  /** Time to live of the set in milliseconds, for marks that have none of their own. */
  readonly ttlMs: number;
}

/**
 * The reason why an id counts as marked. Either the id itself was marked (`marked`), or the id was created at or before
 * the cut-off, or there is no room for a mark of its key (`cut-off`).
 */
export type Found = "marked" | "cut-off";

export interface Marking {
  /** The reason why the id counts as marked. `undefined` if the id does not count as marked. */
  readonly found?: Found;
  /** All ids of the client, or of its key, that were created at or before this time count as marked. */
  readonly cutoff: number;
}

interface Marks {
  readonly client: string;
  /** All ids of the client or the key that were created at or before this time count as marked. */
  cutoff: number;
  /** The marked ids, oldest first. */
  readonly ids: (readonly [at: number, id: string])[];
  /** The longest time to live of the marks, in milliseconds from the creation of their ids. */
  ttlMs: number;
}

/** Maximum number of marks per client. One of its keys may use half of what its other keys leave. */
const MARKS_PER_CLIENT = 512;
/** Number of keys and marks per set above which a cut-off replaces marks of the client with the most marks. */
const MARKS = 1024;

/**
 * A mark is dropped when its id has expired. When the set is full, a cut-off replaces a client's oldest marks. A
 * cut-off is a time: all ids of a client, or of a key of a client, that were created at or before this time count as
 * marked. The set may therefore contain ids that were not marked, but never loses a marked id that has not expired.
 */
export class MarkedIds {
  /** The marks by client and key. The key that least recently marked an id comes first. */
  // Bound: `MARKS`.
  readonly #marks = new Map<string, Marks>();
  /** For every client, all ids that were created at or before this time count as marked. */
  #cutoff: number;
  /** Number of keys plus number of marks. */
  #size = 0;

  /** Creates a set in which all ids that were created at or before `cutoff` count as marked. */
  constructor(cutoff = 0) {
    this.#cutoff = cutoff;
  }

  /**
   * Reads a set from the value that `toJSON` has returned. Returns `undefined` for any other value. `ttlMs` is the time
   * to live of marks for which the value contains none, because an earlier version has written them.
   */
  static read(value: unknown, ttlMs: number): MarkedIds | undefined {
    if (!isObject(value) || !isTime(value.cutoff) || !Array.isArray(value.clients)) return;
    const read = new MarkedIds(value.cutoff);
    for (const entry of value.clients) {
      if (!Array.isArray(entry)) return;
      const [name, cutoff, ids, ownMs = ttlMs]: readonly unknown[] = entry;
      if (typeof name !== "string" || !isTime(cutoff) || !Array.isArray(ids) || !ids.every(isEntry)) return;
      if (!isTime(ownMs)) return;
      read.#marks.set(name, { client: name.split(" ")[0], cutoff, ids, ttlMs: ownMs });
      read.#size += 1 + ids.length;
    }
    return read;
  }

  toJSON(): unknown {
    return {
      cutoff: this.#cutoff,
      clients: [...this.#marks].map(([name, { cutoff, ids, ttlMs }]) => [name, cutoff, ids, ttlMs]),
    };
  }

  find(mark: Mark): Marking {
    const cutoff = Math.max(this.toCutoff(mark.client), this.#marks.get(toName(mark))?.cutoff ?? 0);
    const isMarked = this.#marks.get(toName(mark))?.ids.some((entry) => entry[1] === mark.id);
    return { cutoff, found: isMarked ? "marked" : mark.at <= cutoff ? "cut-off" : undefined };
  }

  toCutoff(client: string): number {
    return Math.max(this.#cutoff, this.#marks.get(client)?.cutoff ?? 0);
  }

  /**
   * Marks an id unless it counts as marked, and returns its state before. If the client's other keys leave no room, the
   * id is not marked and counts as older than the cut-off.
   */
  mark(mark: Mark, time: MarkTime): Marking {
    const marking = this.find(mark);
    return marking.found || this.#add(mark, time) ? marking : { ...marking, found: "cut-off" };
  }

  #add(mark: Mark, { date, ttlMs: defaultMs }: MarkTime): boolean {
    this.#dropExpired(date);
    const { client, at, id, ttlMs = defaultMs } = mark;
    const name = toName(mark);
    const marks = this.#marks.get(name) ?? { client, cutoff: 0, ids: [], ttlMs };
    // Half of the room stays free for further keys, so that no key of the client can refuse the others.
    const max = Math.ceil((MARKS_PER_CLIENT - this.#countMarks(client) + marks.ids.length) / 2);
    if (max < 1) return false;
    if (!this.#marks.delete(name)) this.#size++;
    this.#marks.set(name, marks);
    marks.ttlMs = Math.max(marks.ttlMs, ttlMs);
    const after = marks.ids.findLastIndex((entry) => entry[0] <= at);
    marks.ids.splice(after + 1, 0, [at, id]);
    this.#size++;
    while (marks.ids.length > max) this.#dropOldest(marks);
    while (this.#size > MARKS) this.#makeRoom();
    return true;
  }

  // A cut-off has expired together with the newest mark that it replaces.
  #dropExpired(date: number): void {
    for (const [name, { cutoff, ids, ttlMs }] of this.#marks) {
      if (ids.length && ids[0][0] + ttlMs > date) continue;
      const first = ids.findIndex(([at]) => at + ttlMs > date);
      this.#size -= ids.splice(0, first < 0 ? ids.length : first).length;
      if (!ids.length && cutoff + ttlMs <= date && this.#marks.delete(name)) this.#size--;
    }
  }

  #countMarks(client: string): number {
    let count = 0;
    for (const marks of this.#marks.values()) if (marks.client === client) count += marks.ids.length;
    return count;
  }

  #dropOldest(marks: Marks): void {
    const [oldest] = marks.ids.splice(0, 1);
    marks.cutoff = Math.max(marks.cutoff, oldest[0]);
    this.#size--;
  }

  // Drops a mark of the client with the most marks, from the key with the most marks. If no client has more than one
  // mark, drops the key that least recently marked an id, and raises the cut-off for all clients.
  #makeRoom(): void {
    const counts = new Map<string, number>();
    for (const { client, ids } of this.#marks.values()) counts.set(client, (counts.get(client) ?? 0) + ids.length);
    let fullest: string | undefined;
    let most = 1;
    for (const [client, count] of counts) if (count > most) [fullest, most] = [client, count];
    if (fullest === undefined) {
      for (const entry of this.#marks) return void (this.#cutoff = this.#dropKey(...entry));
      return;
    }
    const keys = [...this.#marks].filter(([, { client }]) => client === fullest);
    const [name, marks] = keys.reduce((a, b) => a[1].ids.length < b[1].ids.length ? b : a);
    if (marks.ids.length > 1) this.#dropOldest(marks);
    else this.#raiseCutoff(marks, this.#dropKey(name, marks));
  }

  // Removes a key with its marks. Returns the cut-off for the keys among which it was.
  #dropKey(name: string, { cutoff, ids }: Marks): number {
    this.#marks.delete(name);
    this.#size -= 1 + ids.length;
    return Math.max(this.#cutoff, cutoff, ids.at(-1)?.[0] ?? 0);
  }

  // Raises the cut-off for all keys of a client.
  #raiseCutoff({ client, ttlMs }: Marks, cutoff: number): void {
    const marks = this.#marks.get(client) ?? { client, cutoff: 0, ids: [], ttlMs };
    if (!this.#marks.has(client)) this.#size++;
    this.#marks.set(client, marks);
    marks.cutoff = Math.max(marks.cutoff, cutoff);
    marks.ttlMs = Math.max(marks.ttlMs, ttlMs);
  }
}

// Hashes contain no space.
function toName({ client, key }: Pick<Mark, "client" | "key">): string {
  return key === undefined ? client : `${client} ${key}`;
}

/** All clients without a key share one hash, because these clients cannot be distinguished. */
export async function toClientHash(key: string | undefined): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key ?? ""));
  const hex = Array.from(new Uint8Array(digest, 0, 8), (byte) => byte.toString(16).padStart(2, "0")).join("");
  // Use different prefixes for principals and addresses, so that their marks are in different sets. Otherwise an
  // attacker with many addresses could raise the cut-off for principals.
  return (key?.startsWith("principal ") ? "p" : "a") + hex;
}

/**
 * Returns a hash of a caller that marks ids with `markUsed` of a server's handle. Two letters at the beginning distribute
 * these callers over 512 sets, apart from the sets of other clients. `former` is the hash that earlier versions use.
 */
export async function toOwnerHash(key: string): Promise<{ readonly client: string; readonly former: string }> {
  const hash = (await toClientHash(key)).slice(1);
  return { client: (parseInt(hash.slice(-1), 16) % 2 ? "e" : "f") + hash, former: `d${hash}` };
}

/** Returns the name of the set that contains a client's marks. There are 256 names for each first letter. */
export function toSetName({ client }: Pick<Mark, "client">): string {
  return client.slice(0, 3);
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && value >= 0;
}

function isEntry(value: unknown): value is readonly [number, string] {
  return Array.isArray(value) && value.length === 2 && isTime(value[0]) && typeof value[1] === "string";
}
