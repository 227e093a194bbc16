/**
 * Which name was probably meant.
 *
 * @module
 */

/** The name that one was probably meant to be; nothing if none is near. */
export function findSuggestion(name: string, names: readonly string[]): string | undefined {
  const near = names.map((each) => ({ each, distance: measure(name.slice(0, 100).toLowerCase(), each.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)[0];
  return near && near.distance <= Math.max(1, Math.floor(name.length / 3)) ? near.each : undefined;
}

/** How many letters must be put in, taken out, changed, or swapped with the next one. */
function measure(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, i) => i)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row[j] = Math.min(
        row[j - 1] + 1,
        rows[i - 1][j] + 1,
        rows[i - 1][j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1),
        isSwapped ? rows[i - 2][j - 2] + 1 : Infinity,
      );
    }
    rows.push(row);
  }
  return rows[a.length][b.length];
}
