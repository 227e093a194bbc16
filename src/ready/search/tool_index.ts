/**
 * An index of tools by the words of their names, descriptions and arguments. All callers share the index, but each search
 * counts only the tools that its caller can see, because counts of all tools would tell what the hidden tools are about.
 */
import { isStopWord, toStem, toWords } from "./words.ts";

/** The texts of a tool by which it is found. */
export interface ToolText {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  /** The author's words for the tool. */
  readonly about: readonly string[];
  /** Names and descriptions of the arguments. */
  readonly args: readonly (readonly [name: string, description: string])[];
}

/** A tool in the index. */
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
interface Postings {
  readonly tools: number[];
  readonly counts: number[];
}

/** Number of fields of a tool: its name, its title and first sentence, the rest of its description, its arguments. */
const FIELDS = 4;
/** Number of bits of the count in one field. */
const BITS = 7;
const MAX_COUNT = 2 ** BITS - 1;

/** Maximum number of characters of a name, a title and so on that are indexed. Later words seldom matter. */
const MAX_NAME = 256;
const MAX_DESCRIPTION = 1000;
const MAX_ARGUMENT = 80;
/** Maximum number of arguments that are indexed. */
const MAX_ARGS = 40;
/** Maximum number of the author's words that are indexed. */
const MAX_ABOUT = 50;

/** The index. */
export class ToolIndex {
  readonly #tools = new Map<string, IndexedTool>();
  readonly #postings = new Map<string, Postings>();
  #size = 0;

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
    for (const [stem, packed] of counts) {
      let postings = this.#postings.get(stem);
      if (!postings) this.#postings.set(stem, postings = { tools: [], counts: [] });
      postings.tools.push(id);
      postings.counts.push(packed);
    }
    const nameStems = new Set(words[0].filter((word) => !isStopWord(word)).map(toStem));
    const lengths = words.map(({ length }) => length);
    const tool = { id, name: text.name, nameStems: [...nameStems], size: counts.size, lengths };
    this.#tools.set(key, tool);
    this.#size += counts.size;
    return tool;
  }

  /** Calls `visit` for each tool of a set that has the stem, with its place in the set and its counts by field. */
  visit(stem: string, set: ToolSet, visit: (place: number, counts: number) => void): void {
    const postings = this.#postings.get(stem);
    if (!postings) return;
    const { tools, counts } = postings;
    for (let at = 0; at < tools.length; at++) {
      const place = set.findPlace(tools[at]);
      if (place >= 0) visit(place, counts[at]);
    }
  }
}

/** Returns the count in a field from the counts in all fields. */
export function toCount(counts: number, field: number): number {
  return (counts >> (field * BITS)) & MAX_COUNT;
}

/** The tools that a caller can see, with their statistics. */
export class ToolSet {
  readonly tools: readonly IndexedTool[];
  /** Number of occurrences of all tools. */
  readonly size: number;
  /** The average number of words of each field. */
  readonly averages: readonly number[];
  readonly #index: ToolIndex;
  /** By id, the place in the set plus 1, or 0. */
  readonly #places: Int32Array;
  readonly #frequencies = new Map<string, number>();

  /** `tools` are in the order of the list. */
  constructor(index: ToolIndex, tools: readonly IndexedTool[]) {
    this.#index = index;
    this.tools = tools;
    this.size = tools.reduce((sum, { size }) => sum + size, 0);
    this.#places = new Int32Array(tools.reduce((max, { id }) => Math.max(max, id + 1), 0));
    tools.forEach(({ id }, place) => this.#places[id] = place + 1);
    this.averages = Array.from({ length: FIELDS }, (_, field) => {
      const sum = tools.reduce((sum, { lengths }) => sum + lengths[field], 0);
      return sum / tools.length || 1;
    });
  }

  /** Returns the place of a tool in the set, or -1. */
  findPlace(id: number): number {
    return (this.#places[id] ?? 0) - 1;
  }

  /** Returns how rare a stem is among the tools of the set. */
  toRarity(frequency: number): number {
    return Math.log(1 + (this.tools.length - frequency + 0.5) / (frequency + 0.5));
  }

  /** Returns the number of tools of the set that have a stem. */
  countTools(stem: string): number {
    const known = this.#frequencies.get(stem);
    if (known !== undefined) return known;
    let frequency = 0;
    this.#index.visit(stem, this, () => frequency++);
    // Clients can search for any number of other words.
    if (frequency) this.#frequencies.set(stem, frequency);
    return frequency;
  }
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
