/** Random numbers for property tests. The same seed gives the same numbers on every runtime. */
export interface Random {
  /** Returns a whole number from 0 up to, but excluding, `end`. */
  below(end: number): number;
  /** Returns a random item. */
  pick<T>(items: ArrayLike<T>): T;
  /** Returns text of up to `max` characters from `alphabet`. */
  text(alphabet: ArrayLike<string>, max: number): string;
}

export function random(seed: number): Random {
  let state = seed >>> 0;
  // Mulberry32: 32 bits of state are enough to choose test cases.
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  const below = (end: number) => Math.floor(next() * end);
  const pick = <T>(items: ArrayLike<T>) => items[below(items.length)];
  return {
    below,
    pick,
    text: (alphabet, max) => Array.from({ length: below(max + 1) }, () => pick(alphabet)).join(""),
  };
}
