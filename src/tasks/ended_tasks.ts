/**
 * Caches tasks that have ended, and releases the reserved bytes of a task when the task expires.
 *
 * @module
 */
import type { Clock } from "../library.ts";
import type { Charge } from "./charge.ts";
import { isExpired, type TaskRecord } from "./task_record.ts";

/** A cache of the ended tasks of one server. */
export class Ended {
  readonly #clock: Clock;
  /** Records by id. The least recently used record comes first. */
  readonly #records = new Map<string, { readonly record: TaskRecord; readonly characters: number }>();
  readonly #charges = new Map<string, { readonly until: number; readonly charge: Charge }>();
  #characters = 0;
  #stop?: () => void;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Caches a task, unless the task is large. Evicts the least recently used tasks if the cache is full. */
  add(record: TaskRecord): void {
    const characters = 500 + JSON.stringify([record.result, record.error]).length;
    if (characters > MAX_CHARACTERS / 100) return;
    this.#drop(record.id);
    this.#records.set(record.id, { record, characters });
    this.#characters += characters;
    for (const id of this.#records.keys()) {
      if (this.#characters <= MAX_CHARACTERS) break;
      this.#drop(id);
    }
    this.#start();
  }

  /** Returns a cached task. Returns `undefined` if the task is not cached or has expired. */
  get(id: string): TaskRecord | undefined {
    const found = this.#records.get(id);
    if (!found) return;
    this.#records.delete(id);
    if (isExpired(found.record, this.#clock.date())) {
      this.#characters -= found.characters;
      return;
    }
    this.#records.set(id, found);
    return found.record;
  }

  /** Releases the charge within {@linkcode SWEEP_MS} milliseconds after the task has expired. */
  charge({ id, createdAt, ttlMs }: TaskRecord, charge: Charge): void {
    this.#charges.set(id, { until: createdAt + ttlMs, charge });
    this.#start();
  }

  /** Empties the cache and releases all charges. */
  close(): void {
    this.#stop?.();
    for (const { charge } of this.#charges.values()) charge.end();
    this.#charges.clear();
    this.#records.clear();
  }

  #drop(id: string): void {
    this.#characters -= this.#records.get(id)?.characters ?? 0;
    this.#records.delete(id);
  }

  #start(): void {
    this.#stop ??= this.#clock.start(
      () => {
        this.#stop = undefined;
        this.#sweep();
      },
      SWEEP_MS,
      { background: true },
    );
  }

  #sweep(): void {
    const now = this.#clock.date();
    for (const [id, { record }] of this.#records) if (isExpired(record, now)) this.#drop(id);
    for (const [id, { until, charge }] of this.#charges) {
      if (until >= now) continue;
      this.#charges.delete(id);
      charge.end();
    }
    if (this.#records.size || this.#charges.size) this.#start();
  }
}

/**
 * Maximum number of characters in the cache. A task that is larger than a hundredth of this maximum is not cached, so
 * each request for the task reads the store.
 */
const MAX_CHARACTERS = 8_388_608;

/** Interval in milliseconds at which expired tasks are removed. */
const SWEEP_MS = 10_000;
