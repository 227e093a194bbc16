// The measure of a tool search, and the figures of the plain BM25 ranking, which a tool search must not fall below.
import { assertEquals } from "@std/assert";
import type { CatalogueTool } from "./catalogues.ts";
import { measure, type Search } from "./measure.ts";
import { plainBm25 } from "./plain_bm25.ts";
import { REQUESTS } from "./requests.ts";

Deno.test("a plain BM25 ranking has the same figures each time", async () => {
  const expected = {
    top1: 11,
    top5: 16,
    top10: 18,
    perCatalogue: {
      github: { top1: 3, top5: 6, top10: 7 },
      kubernetes: { top1: 1, top5: 3, top10: 4 },
      published: { top1: 7, top5: 7, top10: 7 },
    },
    perLevel: {
      easy: { top1: 9, top5: 11, top10: 12 },
      reworded: { top1: 0, top5: 2, top10: 2 },
      hard: { top1: 2, top5: 3, top10: 4 },
    },
  };
  assertEquals(await measure(plainBm25), expected);
  assertEquals(await measure(plainBm25), expected);
});

Deno.test("a wanted tool counts from its place on", async () => {
  const places = [0, 1, 4, 5, 9, 10];
  const figures = await Promise.all(places.map((place) => measure((tools) => findAt(tools, place))));
  assertEquals(figures.map(({ top1, top5, top10 }) => [top1, top5, top10]), [
    [45, 45, 45],
    [0, 45, 45],
    [0, 45, 45],
    [0, 0, 45],
    [0, 0, 45],
    [0, 0, 0],
  ]);
  const { top10, perCatalogue } = await measure(() => () => []);
  assertEquals([top10, perCatalogue.github.top10], [0, 0]);
});

/** Returns a search that knows the wanted tools, and puts one at a place, counted from 0. */
function findAt(tools: readonly CatalogueTool[], place: number): Search {
  const names = tools.map(({ name }) => name);
  const requests = Object.values(REQUESTS).flat();
  return async (query) => {
    await Promise.resolve(); // A search may be asynchronous.
    const want = requests.find(({ text }) => text === query)?.want ?? [];
    return names.filter((name) => !want.includes(name)).toSpliced(place, 0, want[0]);
  };
}
