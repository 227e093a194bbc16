/** Returns a duration in milliseconds as text, such as `20 ms` or `1.5 s`. */
export function toDuration(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${ms / 1000} s`;
}
