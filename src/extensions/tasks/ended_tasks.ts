/**
 * Caches tasks that have ended.
 */
import type { Clock } from "../../library.ts";
import { isExpired, type TaskRecord } from "./task_record.ts";

/** Caches the ended tasks of one server. */
export class EndedTasks {
  readonly #clock: Clock;
  /** Records by id. The least recently used record comes first. */
  // Bound: `MAX_CHARACTERS`.
  readonly #records = new Map<string, { readonly record: TaskRecord; readonly characters: number }>();
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

  close(): void {
    this.#stop?.();
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
    if (this.#records.size) this.#start();
  }
}

/**
 * Maximum number of characters in the cache. A task that is larger than a hundredth of this maximum is not cached, so
 * each request for the task reads the store.
 */
const MAX_CHARACTERS = 8_388_608;

/** Interval in milliseconds at which expired tasks are removed. */
const SWEEP_MS = 10_000;
