/**
 * The tools that a caller can see, with their statistics. Each search counts only these tools, because counts of all tools
 * would tell what the hidden tools are about.
 */
import { findSynonyms } from "./synonyms.ts";
import {
  BITS,
  FIELDS,
  type IndexedTool,
  type Matches,
  MAX_COUNT,
  NAME_BIT,
  type Scores,
  type ToolIndex,
} from "./tool_index.ts";

/** How quickly more occurrences of a word count less. */
const K1 = 1.2;
/** How much a synonym counts in comparison with the word itself. */
export const SYNONYM = 0.6;

let lastId = 0;

export class ToolSet {
  /** Differs from the ids of other sets. */
  readonly id: number = ++lastId;
  readonly tools: readonly IndexedTool[];
  /** Number of occurrences of all tools. */
  readonly size: number;
  readonly #index: ToolIndex;
  /** By id, the place in the set plus 1, or 0. */
  readonly #places: Int32Array;
  /** For each place, how much an occurrence counts in each field. */
  readonly #factors: Float64Array;
  /** By place, the sum of the rarities of the stems of the name, or `NaN` if it is not known. */
  readonly #names: Float64Array;
  /** What no tool has. */
  readonly #none: Matches & Scores;

  /** `tools` are in the order of the list. */
  constructor(index: ToolIndex, tools: readonly IndexedTool[]) {
    this.#index = index;
    this.tools = tools;
    this.size = tools.reduce((sum, { size }) => sum + size, 0);
    this.#places = new Int32Array(tools.reduce((max, { id }) => Math.max(max, id + 1), 0));
    tools.forEach(({ id }, place) => this.#places[id] = place + 1);
    const empty = new Int32Array();
    const none = new Float64Array();
    this.#none = { places: empty, weights: none, scores: none, inName: empty, rarity: this.#toRarity(0) };
    this.#names = new Float64Array(tools.length).fill(NaN);
    this.#factors = new Float64Array(tools.length * FIELDS.length);
    FIELDS.forEach(({ weight, b }, field) => {
      const average = tools.reduce((sum, { lengths }) => sum + lengths[field], 0) / tools.length || 1;
      tools.forEach(({ lengths }, place) => {
        this.#factors[place * FIELDS.length + field] = weight / (1 - b + b * lengths[field] / average);
      });
    });
  }

  find(stem: string): Matches {
    return this.#remember(this.#index.memoryOf(this).matches, stem, () => this.#match(stem));
  }

  /** Returns the scores of the tools that have a word with this stem, or a synonym of it. */
  score(stem: string): Scores {
    return this.#remember(this.#index.memoryOf(this).scores, stem, () => this.#addSynonyms(stem));
  }

  sumRarities(place: number): number {
    const known = this.#names[place];
    if (!Number.isNaN(known)) return known;
    return this.#names[place] = this.tools[place].nameStems.reduce((sum, stem) => sum + this.find(stem).rarity, 0);
  }

  #remember<T extends Pick<Matches, "places">>(kept: Map<string, T>, stem: string, make: () => T): T {
    const known = kept.get(stem);
    if (known) return known;
    const made = make();
    // Clients can search for any number of other words.
    if (made.places.length) {
      kept.set(stem, made);
      this.#index.keep(made.places.length);
    }
    return made;
  }

  #match(stem: string): Matches {
    const { tools, counts } = this.#index.find(stem);
    if (!tools.length) return this.#none;
    const places: number[] = [];
    const weights: number[] = [];
    const inName: number[] = [];
    for (let at = 0; at < tools.length; at++) {
      const place = (this.#places[tools[at]] ?? 0) - 1;
      if (place < 0) continue;
      let weight = 0;
      for (let field = 0, packed = counts[at]; field < FIELDS.length; field++, packed >>= BITS) {
        weight += (packed & MAX_COUNT) * this.#factors[place * FIELDS.length + field];
      }
      places.push(place);
      weights.push(weight);
      if (counts[at] & NAME_BIT) inName.push(place);
    }
    return {
      places: new Int32Array(places),
      weights: new Float64Array(weights),
      inName: new Int32Array(inName),
      rarity: this.#toRarity(places.length),
    };
  }

  #toRarity(frequency: number): number {
    return Math.log(1 + (this.tools.length - frequency + 0.5) / (frequency + 0.5));
  }

  #addSynonyms(stem: string): Scores {
    const own = this.find(stem);
    const others = findSynonyms(stem).map((other) => this.find(other)).filter(({ places }) => places.length);
    if (!own.places.length && !others.length) return this.#none;
    // A word and its synonyms together are as rare as the most common of them.
    const shared = others.reduce((least, { rarity }) => Math.min(least, rarity), own.rarity);
    const sums = new Map<number, number>();
    own.places.forEach((place, at) => sums.set(place, own.weights[at]));
    for (const { places, weights } of others) {
      places.forEach((place, at) => sums.set(place, (sums.get(place) ?? 0) + SYNONYM * weights[at]));
    }
    const scores = new Map([...sums].map(([place, sum]) => [place, toScore(sum, shared)]));
    own.places.forEach((place, at) => {
      scores.set(place, Math.max(scores.get(place) ?? 0, toScore(own.weights[at], own.rarity)));
    });
    return { places: Int32Array.from(scores.keys()), scores: Float64Array.from(scores.values()) };
  }
}

/** Returns the score of a word with this weight and rarity. */
export function toScore(weight: number, rarity: number): number {
  return rarity * weight * (K1 + 1) / (weight + K1);
}
