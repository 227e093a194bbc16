/** Returns the name that is most similar to `name`, or `undefined` if no name is similar. */
export function findSuggestion(name: string, names: readonly string[]): string | undefined {
  const closest =
    names.map((each) => ({ each, distance: countEdits(name.slice(0, 100).toLowerCase(), each.toLowerCase()) }))
      .sort((a, b) => a.distance - b.distance)[0];
  return closest && closest.distance <= Math.max(1, Math.floor(name.length / 3)) ? closest.each : undefined;
}

/** The Damerau-Levenshtein distance, in which a swap of adjacent characters counts as one edit. */
function countEdits(a: string, b: string): number {
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
