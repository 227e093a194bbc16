// The file lists in docs/project/architecture.md match real calls: every file that runs in a call is listed as a step
// or a helper.
import { assert, assertEquals } from "@std/assert";
import { listWayFiles, type Way } from "./way_files.ts";

const root = new URL("../../", import.meta.url);
const ignore = typeof Deno === "undefined"; // Deno runs the calls with coverage.

/** For each way, the heading of its list, and the maximum number of steps. */
const ways: readonly (readonly [way: Way, heading: string, most: number])[] = [
  ["modern", "A call of 2026-07-28", 12],
  ["session", "A call in a session", 15],
  ["replay", "A stream with replay", 15],
  ["tenant", "A tenant's call with a token", 22],
  ["stdio", "stdio", 12],
];
const MOST_HELPERS = 15;

/** Returns the files that are listed below a heading. */
async function readList(heading: string): Promise<readonly string[]> {
  const page = await Deno.readTextFile(new URL("docs/project/architecture.md", root));
  const [, section] = page.split(`\n### ${heading}\n`);
  assert(section !== undefined, `docs/project/architecture.md has no heading "${heading}"`);
  const [list] = section.split(/^##/m);
  return [...list.matchAll(/^(?:\d+\.|-) \[`[^`]+`\]\((?:\.\.\/)+(src\/[^)]+)\)/gm)].map(([, path]) => path);
}

for (const [way, heading, most] of ways) {
  Deno.test({
    name: `every file that runs in "${heading}" is listed there as a step or as a helper`,
    ignore,
    async fn() {
      const steps = await readList(heading);
      const helpers = new Set(await readList("Shared helpers"));
      const found = await listWayFiles(way);
      const run = [...found.keys()].filter((path) => !helpers.has(path) && !path.startsWith("src/kit/"));
      assert(run.length > 5, "there is no coverage");
      assertEquals(run.toSorted(), steps.toSorted(), `in docs/project/architecture.md, "${heading}"`);
      assertEquals(new Set(steps).size, steps.length, "a file is listed twice");
      assert(steps.length <= most, `${steps.length} steps; at most ${most}`);
    },
  });
}

Deno.test({
  name: "all ways together have few helpers, each helper runs, and no helper imports a step",
  ignore,
  async fn() {
    const helpers = await readList("Shared helpers");
    assert(helpers.length <= MOST_HELPERS, `${helpers.length} helpers; at most ${MOST_HELPERS}`);
    const steps = new Set((await Promise.all(ways.map(([, heading]) => readList(heading)))).flat());
    for (const helper of helpers) {
      const source = await Deno.readTextFile(new URL(helper, root));
      // A type-only import does not count, because it does not lead a reader to another file.
      for (const [, path] of source.matchAll(/^(?:import|export) (?!type )[^;]*? from "(\.[^"]+)";/gms)) {
        const target = new URL(path, new URL(helper, root)).href.slice(root.href.length);
        assert(!steps.has(target), `${helper} is a helper, but imports the step ${target}`);
      }
    }
  },
});
