/**
 * Ranks tools by a query: BM25F with the fields of the index, and weighted by the part of the name that the query covers.
 *
 * @see https://doi.org/10.1561/1500000019 for BM25 and its fields
 */
import { FIXED_LIMITS } from "../../server/capacity/fixed_limits.ts";
import { findSynonyms } from "./synonyms.ts";
import { toPairs } from "./tool_index.ts";
import { SYNONYM, type ToolSet, toScore } from "./tool_set.ts";
import { isStopWord, toStem, toWords } from "./words.ts";

/** How much two words count that are one word in the name of a tool. */
const PAIR = 0.5;
/** How much it counts that a query has all words of a name. */
const COVERED = 1;

/** A tool matches only if its score is at least this part of the best score. Other tools share only a common word. */
const MIN_SCORE = 0.05;

/** A score is near the best score if it is at least this part of it. A lower one may be of a tool of another API. */
const NEAR_SCORE = 0.6;

export interface RankOptions {
  readonly limit: number;
  /** Tests whether the tool at a place can be in the ranking. */
  readonly isWanted?: (place: number) => boolean;
}

export interface Ranking {
  /** The places of the matching tools in the set, the best first. Equal tools are in the order of the set. */
  readonly places: readonly number[];
  readonly total: number;
  /** Number of the first places whose scores are near the best score. */
  readonly near: number;
}

export function rankTools(set: ToolSet, query: string, options: RankOptions): Ranking {
  const { words: maxWords } = FIXED_LIMITS.search;
  const words = toWords(query);
  const telling = words.filter((word) => !isStopWord(word));
  const stems = [...new Set((telling.length ? telling : words).map(toStem))].slice(0, maxWords);
  const pairs = new Set(toPairs(words).slice(0, maxWords));
  const scores = new Float64Array(set.tools.length);
  for (const stem of stems) {
    const { places, scores: own } = set.score(stem);
    for (let at = 0; at < places.length; at++) scores[places[at]] += own[at];
  }
  for (const pair of pairs) {
    const { places, weights, rarity } = set.find(pair);
    places.forEach((place, at) => scores[place] += PAIR * toScore(weights[at], rarity));
  }
  const covered = sumCovered(set, stems);
  const name = query.trim();
  let best = 0;
  for (let place = 0; place < scores.length; place++) {
    if (set.tools[place].name === name) scores[place] = Infinity;
    else if (scores[place] > 0) {
      const all = covered[place] && set.sumRarities(place);
      if (all) scores[place] *= 1 + COVERED * covered[place] / all;
      best = Math.max(best, scores[place]);
    }
  }
  return select(scores, MIN_SCORE * best, options);
}

/** Returns, by place, the sum of the rarities of the words of the name that the query has, or of which it has a synonym. */
function sumCovered(set: ToolSet, stems: readonly string[]): Float64Array {
  /** The stems of the query and their synonyms, each with its weight. */
  const matched = new Map(stems.flatMap(findSynonyms).map((stem) => [stem, SYNONYM]));
  for (const stem of stems) matched.set(stem, 1);
  const covered = new Float64Array(set.tools.length);
  for (const [stem, weight] of matched) {
    const { inName, rarity } = set.find(stem);
    for (const place of inName) covered[place] += weight * rarity;
  }
  return covered;
}

/** Selects the best tools, without sorting all of them. */
function select(
  scores: Float64Array,
  least: number,
  { limit, isWanted = () => true }: RankOptions,
): Ranking {
  const places: number[] = [];
  let total = 0;
  for (let place = 0; place < scores.length; place++) {
    const score = scores[place];
    if (!score || score < least || !isWanted(place)) continue;
    total++;
    if (places.length === limit && score <= scores[places[limit - 1]]) continue;
    let at = places.length;
    while (at > 0 && scores[places[at - 1]] < score) at--;
    places.splice(at, 0, place);
    if (places.length > limit) places.pop();
  }
  // The score of a tool that the query names is infinite, so no other is near it.
  const near = places.filter((place) => scores[place] >= NEAR_SCORE * scores[places[0]]).length;
  return { places, total, near };
}
