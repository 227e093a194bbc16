// Measures the ranking of a tool search: how many of 45 plain requests have a wanted tool among the first results.
import { type CatalogueName, CATALOGUES, type CatalogueTool, readCatalogue } from "./catalogues.ts";
import { type Level, REQUESTS } from "./requests.ts";

/** Searches tools. Returns their names, the best first. */
export type Search = (query: string) => readonly string[] | Promise<readonly string[]>;

/** The number of requests that have a wanted tool among the first results. */
export interface Hits {
  readonly top1: number;
  readonly top5: number;
  readonly top10: number;
}

/** The hits of a ranking among 45 requests: fifteen for each catalogue, and fifteen of each level. */
export interface Measure extends Hits {
  readonly perCatalogue: Readonly<Record<CatalogueName, Hits>>;
  readonly perLevel: Readonly<Record<Level, Hits>>;
}

/** Measures a ranking. `rank` makes the index of a catalogue, and returns the search. */
export async function measure(rank: (tools: readonly CatalogueTool[]) => Search): Promise<Measure> {
  const found: { readonly name: CatalogueName; readonly level: Level; readonly place: number }[] = [];
  // The cast is safe, because the keys of an object literal are its names.
  for (const name of Object.keys(CATALOGUES) as CatalogueName[]) {
    const search = rank(await readCatalogue(name));
    for (const { level, text, want } of REQUESTS[name]) {
      const names = await search(text);
      const place = names.findIndex((each) => want.includes(each));
      found.push({ name, level, place: place < 0 ? Infinity : place });
    }
  }
  const count = (isCounted: (each: typeof found[number]) => boolean): Hits => {
    const places = found.filter(isCounted).map(({ place }) => place);
    const within = (end: number) => places.filter((place) => place < end).length;
    return { top1: within(1), top5: within(5), top10: within(10) };
  };
  const inCatalogue = (name: CatalogueName) => count((each) => each.name === name);
  const ofLevel = (level: Level) => count((each) => each.level === level);
  return {
    ...count(() => true),
    perCatalogue: {
      github: inCatalogue("github"),
      kubernetes: inCatalogue("kubernetes"),
      published: inCatalogue("published"),
    },
    perLevel: { easy: ofLevel("easy"), reworded: ofLevel("reworded"), hard: ofLevel("hard") },
  };
}
