import { BoundedMap, type BoundedMapOptions } from "../../src/core/kit/bounded_map.ts";
import { random } from "../support/random.ts";
import { assert, assertEquals, assertFalse, assertStrictEquals } from "../support/std.ts";

Deno.test("bounded map: a full map that evicts drops the entry whose last set is the oldest", () => {
  const map = new BoundedMap<string, number>({ max: 2, full: "evict" });
  assert(map.set("a", 1));
  assert(map.set("b", 2));
  assert(map.set("a", 3));
  assert(map.set("c", 4));
  assertEquals([...map], [["a", 3], ["c", 4]]);
});

Deno.test("bounded map: a full map that refuses accepts only known keys", () => {
  const set = new BoundedMap<string, void>({ max: 2, full: "refuse" });
  assert(set.set("a"));
  assert(set.set("b"));
  assertFalse(set.set("c"));
  assert(set.set("a"));
  assertEquals([...set].map(([key]) => key), ["a", "b"]);
  assert(set.delete("a"));
  assert(set.set("c"));
  assertFalse(set.has("a"));
});

interface Pair {
  readonly key: number;
  readonly value: number | undefined;
}

/** A naive map: a list of entries, oldest first. */
class Model {
  readonly #options: BoundedMapOptions;
  pairs: readonly Pair[] = [];

  constructor(options: BoundedMapOptions) {
    this.#options = options;
  }

  find(key: number): Pair | undefined {
    return this.pairs.find((pair) => pair.key === key);
  }

  set(pair: Pair): boolean {
    const { full, max } = this.#options;
    const known = this.find(pair.key);
    if (full === "evict") this.pairs = [...this.pairs.filter((each) => each !== known), pair];
    else if (known) this.pairs = this.pairs.map((each) => each === known ? pair : each);
    else if (this.pairs.length < max) this.pairs = [...this.pairs, pair];
    while (this.pairs.length > max) this.pairs = this.pairs.slice(1);
    return this.pairs.includes(pair);
  }

  delete(key: number): boolean {
    const known = this.find(key);
    this.pairs = this.pairs.filter((each) => each !== known);
    return known !== undefined;
  }
}

Deno.test("bounded map: random operations give the same results as a naive map", () => {
  const source = random(7);
  for (let run = 0; run < 300; run++) {
    const max = source.pick([0, 1, 2, 3, 5, 8, Infinity]);
    const options: BoundedMapOptions = { full: source.pick(["evict", "refuse"]), max };
    const map = new BoundedMap<number, number | undefined>(options);
    const model = new Model(options);
    for (let step = 0; step < 100; step++) {
      const key = source.below(10);
      const operation = source.below(20);
      if (operation < 12) {
        const value = source.below(8) ? source.below(15) : undefined;
        assertStrictEquals(map.set(key, value), model.set({ key, value }));
      } else if (operation < 15) {
        assertStrictEquals(map.delete(key), model.delete(key));
      } else if (operation === 15) {
        map.clear();
        model.pairs = [];
      } else if (operation === 16) {
        for (const [each] of map) if (each % 2) assert(map.delete(each));
        model.pairs = model.pairs.filter((pair) => pair.key % 2 === 0);
      }
      assertStrictEquals(map.get(key), model.find(key)?.value);
      assertStrictEquals(map.has(key), model.find(key) !== undefined);
      assertStrictEquals(map.size, model.pairs.length);
      assertEquals([...map], model.pairs.map(({ key, value }) => [key, value]));
    }
  }
});
