/** Estimates the size of a value in memory, as two bytes per character of its JSON. */
export function toBytes(value: unknown): number {
  return 2 * (JSON.stringify(value)?.length ?? 0);
}
