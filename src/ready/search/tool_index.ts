/**
 * An index of tools by the words of their names, descriptions and arguments. All callers share the index.
 */
import { isStopWord, toStem, toWords } from "./words.ts";

export interface ToolText {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly about: readonly string[];
  /** Names and descriptions of the arguments. */
  readonly args: readonly (readonly [name: string, description: string])[];
}

export interface IndexedTool {
  readonly id: number;
  readonly name: string;
  /** The different stems of the name and of the author's words, without stop words. */
  readonly nameStems: readonly string[];
  /** Number of different stems. */
  readonly size: number;
  /** The number of words of each field. */
  readonly lengths: readonly number[];
}

/** The occurrences of a stem: the ids of the tools, and for each of them the counts in all fields, as one number. */
export interface Postings {
  readonly tools: number[];
  readonly counts: number[];
}

/** A field of a tool. */
interface Field {
  /** How much an occurrence counts. */
  readonly weight: number;
  /** How much the length of the field counts, from 0 to 1. */
  readonly b: number;
}

/** The fields of a tool: its name, its title and first sentence, the rest of its description, its arguments. */
export const FIELDS: readonly Field[] = [
  { weight: 3, b: 0.5 },
  { weight: 2, b: 0.5 },
  { weight: 0.5, b: 0.75 },
  { weight: 0.5, b: 0.75 },
];
/** Number of bits of the count in one field. */
export const BITS = 7;
export const MAX_COUNT: number = 2 ** BITS - 1;
/** The bit of a stem that is one of the tool's `nameStems`. */
export const NAME_BIT: number = 2 ** (FIELDS.length * BITS);

/** Maximum number of characters of a name, a title and so on that are indexed. Later words seldom matter. */
const MAX_NAME = 256;
const MAX_DESCRIPTION = 1000;
const MAX_ARGUMENT = 80;
/** Maximum number of matches that all sets keep, each with 12 to 16 bytes. */
const MAX_KEPT = 300_000;
/** A list of matches takes as much memory as this number of matches, in addition to its matches. */
const LIST = 40;
/** Maximum number of arguments, and of the author's words, of a tool that are indexed. */
const MAX_ARGS = 40;
const MAX_ABOUT = 50;

/** The tools of a set that have a stem. */
export interface Matches {
  readonly places: Int32Array;
  /** For each place, how much the occurrences count, each in its field and by the length of this field. */
  readonly weights: Float64Array;
  /** The places of the tools that have the stem in their names. */
  readonly inName: Int32Array;
  /** How rare the stem is among the tools of the set. A stem that no tool has is the rarest. */
  readonly rarity: number;
}

/** The tools of a set that have a word or a synonym of it. */
export interface Scores {
  readonly places: Int32Array;
  readonly scores: Float64Array;
}

/** The results of earlier queries in one set, by stem. */
export interface Memory {
  readonly matches: Map<string, Matches>;
  readonly scores: Map<string, Scores>;
}

// Bound: the owner starts again when `size` is too large.
export class ToolIndex {
  readonly #tools = new Map<string, IndexedTool>();
  readonly #postings = new Map<string, Postings>();
  #size = 0;
  readonly #maxKept: number;
  #kept = 0;
  /** The results of earlier queries, by set. */
  #memories = new WeakMap<object, Memory>();

  constructor(maxKept: number = MAX_KEPT) {
    this.#maxKept = maxKept;
  }

  /** Number of occurrences, which is proportional to the memory that the index uses. */
  get size(): number {
    return this.#size;
  }

  /** Returns a tool in the index. Adds the tool if the index does not have a tool with the same texts. */
  add(text: ToolText): IndexedTool {
    const key = JSON.stringify(toFields(text));
    const known = this.#tools.get(key);
    if (known) return known;
    // The words must not refer to the texts from which they were cut, which may be much longer.
    const fields: ReturnType<typeof toFields> = JSON.parse(key);
    const id = this.#tools.size;
    const words = fields.map((field) => field.flatMap(toWords));
    const counts = new Map<string, number>();
    words.forEach((words, field) => {
      for (const word of words) {
        // A name can consist of stop words, such as `who_am_i`.
        if (field > 0 && isStopWord(word)) continue;
        count(counts, toStem(word), field);
      }
    });
    // Two words of a name also match when they are written as one word.
    for (const pair of toPairs(words[0])) count(counts, pair, 0);
    const nameStems = new Set(words[0].filter((word) => !isStopWord(word)).map(toStem));
    for (const [stem, packed] of counts) {
      let postings = this.#postings.get(stem);
      if (!postings) this.#postings.set(stem, postings = { tools: [], counts: [] });
      postings.tools.push(id);
      postings.counts.push(packed + (nameStems.has(stem) ? NAME_BIT : 0));
    }
    const lengths = words.map(({ length }) => length);
    const tool = { id, name: text.name, nameStems: [...nameStems], size: counts.size, lengths };
    this.#tools.set(key, tool);
    this.#size += counts.size;
    return tool;
  }

  memoryOf(set: object): Memory {
    let memory = this.#memories.get(set);
    if (!memory) this.#memories.set(set, memory = { matches: new Map(), scores: new Map() });
    return memory;
  }

  /** Counts the matches that a set keeps. If there are too many, all sets drop their matches, even sets no longer in use. */
  keep(matches: number): void {
    this.#kept += matches + LIST;
    if (this.#kept <= this.#maxKept) return;
    this.#kept = 0;
    this.#memories = new WeakMap();
  }

  find(stem: string): Postings {
    return this.#postings.get(stem) ?? NONE;
  }
}

const NONE: Postings = { tools: [], counts: [] };

/** Returns the count in a field from the counts in all fields. */
function toCount(counts: number, field: number): number {
  return (counts >> (field * BITS)) & MAX_COUNT;
}

/** Returns each word of a list joined with the next word. */
export function toPairs(words: readonly string[]): readonly string[] {
  return words.slice(1).map((word, at) => toStem(words[at] + word));
}

function count(counts: Map<string, number>, stem: string, field: number): void {
  const packed = counts.get(stem) ?? 0;
  if (toCount(packed, field) < MAX_COUNT) counts.set(stem, packed + 2 ** (field * BITS));
}

function toFields({ name, title = "", description = "", about, args }: ToolText): readonly (readonly string[])[] {
  const text = description.slice(0, MAX_DESCRIPTION);
  const end = text.search(/[.!?\n](\s|$)/) + 1 || text.length;
  return [
    [name, ...about.slice(0, MAX_ABOUT)].map((text) => text.slice(0, MAX_NAME)),
    [title.slice(0, MAX_NAME), text.slice(0, end)],
    [text.slice(end)],
    args.slice(0, MAX_ARGS).flatMap((texts) => texts.map((text) => text.slice(0, MAX_ARGUMENT))),
  ];
}
