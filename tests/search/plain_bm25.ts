// A plain BM25 ranking, the floor for the ranking of a tool search. It is the formula of Okapi BM25 with the parameters,
// the words and the text of a tool that FastMCP uses (server/transforms/search/bm25.py), written afresh. Unlike FastMCP,
// it reads titles, because the summaries of operations are in titles.
import type { CatalogueTool } from "./catalogues.ts";
import type { Search } from "./measure.ts";

/** How quickly more occurrences of a word count less. */
const K1 = 1.5;
/** How much the length of a text counts, from 0 to 1. */
const B = 0.75;

/** A tool in which a word occurs, and how often the word occurs. */
interface Posting {
  readonly tool: number;
  readonly count: number;
}

/** Returns a search that ranks tools. Tools of the same score stay in their order; tools without a score are left out. */
export function plainBm25(tools: readonly CatalogueTool[]): Search {
  const postings = new Map<string, Posting[]>();
  const lengths = tools.map((each, tool) => {
    const words = toWords(toText(each));
    const counts = new Map<string, number>();
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
    for (const [word, count] of counts) {
      const list = postings.get(word);
      if (list) list.push({ tool, count });
      else postings.set(word, [{ tool, count }]);
    }
    return words.length;
  });
  const average = lengths.reduce((sum, length) => sum + length, 0) / tools.length;

  return (query) => {
    const scores = new Map<number, number>();
    for (const word of toWords(query)) {
      const list = postings.get(word) ?? [];
      const rarity = Math.log(1 + (tools.length - list.length + 0.5) / (list.length + 0.5));
      for (const { tool, count } of list) {
        const weight = count * (K1 + 1) / (count + K1 * (1 - B + B * lengths[tool] / average));
        scores.set(tool, (scores.get(tool) ?? 0) + rarity * weight);
      }
    }
    return [...scores].sort(([a, left], [b, right]) => right - left || a - b).map(([tool]) => tools[tool].name);
  };
}

/** Returns the text by which a tool is found. */
function toText({ name, title = "", description = "", inputSchema }: CatalogueTool): string {
  const args = Object.entries(inputSchema.properties).map(([key, { description = "" }]) => `${key} ${description}`);
  return [name, title, description, ...args].join(" ");
}

/** Returns the words of a text that have at least two letters or digits. */
function toWords(text: string): readonly string[] {
  return text.toLowerCase().match(/[a-z0-9]{2,}/g) ?? [];
}
