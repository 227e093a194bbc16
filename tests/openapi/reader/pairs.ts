// Matches name-value pairs, as in a query, a form or cookies, with the pairs that parameters may be written as.

import { decodePercent, type Decoding, matchesPieces, type Piece, showPieces } from "./text.ts";

/** A pair that must be there. */
export interface Pair {
  readonly name: string;
  readonly value: readonly Piece[];
  /** Some values, such as null, may be written or left out. */
  readonly isOptional: boolean;
}

/** A parameter, with every list of pairs that is right for its value. */
export interface PairSource {
  readonly label: string;
  readonly alternatives: readonly (readonly Pair[])[];
  /** How the values of this parameter may be decoded, if not as all others. */
  readonly decodings?: readonly Decoding[];
}

/** A pair as it was written. The name is decoded, the value is not. */
export interface WrittenPair {
  readonly name: string;
  readonly value: string;
}

export function readPairs(text: string): readonly WrittenPair[] {
  return text.split("&").filter((part) => part !== "").map((part) => {
    // A name without `=` has an empty value in form encoding.
    const end = part.indexOf("=");
    const [name, value] = end < 0 ? [part, ""] : [part.slice(0, end), part.slice(end + 1)];
    return { name: decodePercent(name, true), value };
  });
}

interface Progress {
  readonly used: ReadonlySet<number>;
}

/** Takes the pairs of one alternative. Pairs of one name keep their order. */
function take(
  pairs: readonly Pair[],
  written: readonly WrittenPair[],
  decodings: readonly Decoding[],
  start: Progress,
): Progress | undefined {
  const used = new Set(start.used);
  const lastOf = new Map<string, number>();
  for (const pair of pairs) {
    const after = lastOf.get(pair.name) ?? -1;
    const found = written.findIndex((one, index) =>
      index > after && !used.has(index) && one.name === pair.name &&
      decodings.some((decoding) => matchesPieces(one.value, decoding, pair.value))
    );
    if (found < 0) {
      if (pair.isOptional) continue;
      return undefined;
    }
    used.add(found);
    lastOf.set(pair.name, found);
  }
  return { used };
}

/** Returns a sentence for every parameter that is not written as it must be, and for every pair that is left over. */
export function comparePairs(
  where: string,
  written: readonly WrittenPair[],
  sources: readonly PairSource[],
  decodings: readonly Decoding[],
): readonly string[] {
  const solve = (index: number, progress: Progress): boolean => {
    const source = sources[index];
    if (source === undefined) return progress.used.size === written.length;
    return source.alternatives.some((pairs) => {
      const next = take(pairs, written, source.decodings ?? decodings, progress);
      return next !== undefined && solve(index + 1, next);
    });
  };
  if (solve(0, { used: new Set() })) return [];

  const differences: string[] = [];
  let progress: Progress = { used: new Set() };
  for (const source of sources) {
    // The alternative that takes the most pairs leaves the fewest to complain about.
    const taken = source.alternatives.map((pairs) => take(pairs, written, source.decodings ?? decodings, progress))
      .filter((one) => one !== undefined).sort((left, right) => right.used.size - left.used.size)[0];
    if (taken === undefined) {
      const shown = source.alternatives[0]?.map((pair) => `${pair.name}=${showPieces(pair.value)}`).join(" & ");
      differences.push(`${source.label} must be sent in the ${where} as ${shown}, but it was not.`);
    } else progress = taken;
  }
  for (const [index, pair] of written.entries()) {
    if (!progress.used.has(index)) {
      differences.push(`The ${where} has the pair ${pair.name}=${pair.value}, which no argument explains.`);
    }
  }
  return differences.length > 0 ? differences : [`The pairs of the ${where} cannot all be explained at once.`];
}
