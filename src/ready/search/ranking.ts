/**
 * Ranks tools by a query: BM25F with the fields of the index, and weighted by the part of the name that the query covers.
 *
 * @see https://doi.org/10.1561/1500000019 for BM25 and its fields
 */
import { findSynonyms } from "./synonyms.ts";
import { toCount, type ToolIndex, type ToolSet, toPairs } from "./tool_index.ts";
import { isStopWord, toStem, toWords } from "./words.ts";

/** How quickly more occurrences of a word count less. */
const K1 = 1.2;
/** By field, how much an occurrence counts: name, title and first sentence, the rest of the description, arguments. */
const WEIGHTS = [3, 2, 0.5, 0.5];
/** By field, how much its length counts, from 0 to 1. */
const B = [0.5, 0.5, 0.75, 0.75];
/** How much a synonym counts in comparison with the word itself. */
const SYNONYM = 0.6;
/** How much two words count that are one word in the name of a tool. */
const PAIR = 0.5;
/** How much it counts that a query has all words of a name. */
const COVERED = 1;

/** A tool matches only if its score is at least this part of the best score. Other tools share only a common word. */
const MIN_SCORE = 0.05;

/** Maximum number of different words of a query that count. */
const MAX_WORDS = 32;

export interface RankOptions {
  /** Whether synonyms count too. Defaults to `true`. */
  readonly synonyms?: boolean;
}

/** Returns the places of the matching tools in a set, the best first. Equal tools stay in the order of the set. */
export function rankTools(
  index: ToolIndex,
  set: ToolSet,
  query: string,
  { synonyms = true }: RankOptions = {},
): readonly number[] {
  const words = toWords(query);
  const telling = words.filter((word) => !isStopWord(word));
  const stems = new Set((telling.length ? telling : words).map(toStem));
  const scores = new Float64Array(set.tools.length);
  /** The stems of the query and their synonyms, each with its weight. */
  const matched = new Map<string, number>();
  const note = (stem: string, weight: number) => matched.set(stem, Math.max(matched.get(stem) ?? 0, weight));
  const weigh = (place: number, counts: number): number => {
    const { lengths } = set.tools[place];
    let weight = 0;
    for (let field = 0; field < WEIGHTS.length; field++) {
      const count = toCount(counts, field);
      if (count) weight += WEIGHTS[field] * count / (1 - B[field] + B[field] * lengths[field] / set.averages[field]);
    }
    return weight;
  };
  const toScore = (weight: number, rarity: number) => rarity * weight * (K1 + 1) / (weight + K1);

  for (const stem of [...stems].slice(0, MAX_WORDS)) {
    const gained = new Map<number, number>();
    const rarity = set.toRarity(set.countTools(stem));
    note(stem, 1);
    const weights = new Map<number, number>();
    index.visit(stem, set, (place, counts) => {
      const weight = weigh(place, counts);
      weights.set(place, weight);
      gained.set(place, toScore(weight, rarity));
    });
    const others = synonyms ? findSynonyms(stem).filter((each) => set.countTools(each)) : [];
    if (others.length) {
      const frequency = Math.max(...[stem, ...others].map((each) => set.countTools(each)));
      const shared = set.toRarity(frequency);
      for (const other of others) {
        note(other, SYNONYM);
        index.visit(other, set, (place, counts) => {
          weights.set(place, (weights.get(place) ?? 0) + SYNONYM * weigh(place, counts));
        });
      }
      for (const [place, weight] of weights) {
        gained.set(place, Math.max(gained.get(place) ?? 0, toScore(weight, shared)));
      }
    }
    for (const [place, gain] of gained) scores[place] += gain;
  }
  for (const pair of new Set(toPairs(words).slice(0, MAX_WORDS))) {
    const rarity = set.toRarity(set.countTools(pair));
    index.visit(pair, set, (place, counts) => {
      scores[place] += PAIR * toScore(weigh(place, counts), rarity);
    });
  }
  const found: { readonly place: number; readonly score: number }[] = [];
  const name = query.trim();
  scores.forEach((score, place) => {
    const tool = set.tools[place];
    if (tool.name === name) found.push({ place, score: Infinity });
    else if (score > 0) {
      found.push({ place, score: score * (1 + COVERED * toCoverage(set, tool.nameStems, matched)) });
    }
  });
  const best = found.reduce((best, { score }) => score < Infinity ? Math.max(best, score) : best, 0);
  return found.filter(({ score }) => score >= MIN_SCORE * best)
    .sort((a, b) => b.score - a.score || a.place - b.place)
    .map(({ place }) => place);
}

/** Returns the part of a name that a query covers, from 0 to 1. A rare word is a larger part than a common word. */
function toCoverage(set: ToolSet, stems: readonly string[], matched: ReadonlyMap<string, number>): number {
  let all = 0;
  let covered = 0;
  for (const stem of stems) {
    const rarity = set.toRarity(set.countTools(stem));
    all += rarity;
    covered += rarity * (matched.get(stem) ?? 0);
  }
  return all && covered / all;
}
