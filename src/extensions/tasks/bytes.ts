/**
 * Estimates the memory that tasks need, which is counted against the limits of their clients.
 */
import type { TaskRecord } from "./task_record.ts";

/** Estimates the size of a value in memory, as two bytes per character of its JSON. */
export function toBytes(value: unknown): number {
  return 2 * (JSON.stringify(value)?.length ?? 0);
}

/** Estimates the size of a record with the objects that the server needs for the task. */
export function toRecordBytes(record: TaskRecord): number {
  return RECORD_BYTES + toBytes(record);
}

/**
 * Bytes that a task needs in addition to its record, for its charge, its entry in the store and its entry in the cache
 * of ended tasks. Measured on both runtimes.
 */
const RECORD_BYTES = 1024;
