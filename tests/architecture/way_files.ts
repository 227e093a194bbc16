// Lists the files in src/ whose functions run in a call, from the coverage of two runs of way_program.ts.

/** A path that a request can take through the library. */
export type Way = "modern" | "session" | "replay" | "tenant" | "stdio";

const root = new URL("../../", import.meta.url);

/** The coverage that V8 writes for one file. */
interface FileCoverage {
  readonly url: string;
  readonly functions: readonly { readonly functionName: string; readonly ranges: readonly Range[] }[];
}

interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

/** By file and position in the file, the number of times that each function ran. */
type Counts = ReadonlyMap<string, ReadonlyMap<string, number>>;

async function count(way: Way, calls: number): Promise<Counts> {
  const folder = await Deno.makeTempDir();
  try {
    const program = new URL("way_program.ts", import.meta.url).pathname;
    const args = ["run", "-A", "--no-check", "--quiet", `--coverage=${folder}`, program, way, `${calls}`];
    const { success, stderr } = await new Deno.Command("deno", { args }).output();
    if (!success) throw new Error(`Cannot run ${way}: ${new TextDecoder().decode(stderr)}`);
    const counts = new Map<string, Map<string, number>>();
    for await (const { name } of Deno.readDir(folder)) {
      if (!name.endsWith(".json")) continue;
      const { url, functions }: FileCoverage = JSON.parse(await Deno.readTextFile(`${folder}/${name}`));
      if (!url.startsWith(`${root}src/`)) continue;
      const own = new Map<string, number>();
      for (const { functionName, ranges: [{ startOffset, endOffset, count }] } of functions) {
        own.set(`${functionName}:${startOffset}-${endOffset}`, count);
      }
      counts.set(url.slice(root.href.length), own);
    }
    return counts;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Returns the files in src/ with functions that run in each further call of a way, and these functions. */
export async function listWayFiles(way: Way): Promise<ReadonlyMap<string, readonly string[]>> {
  const [few, many] = await Promise.all([count(way, 3), count(way, 9)]);
  const files = new Map<string, readonly string[]>();
  for (const [path, counts] of many) {
    const before = few.get(path);
    // A function that runs less often than the calls, such as a timer's callback, is not part of a call.
    const run = [...counts].filter(([name, count]) => count - (before?.get(name) ?? 0) >= 6);
    if (run.length) files.set(path, run.map(([name]) => name.replace(/:\d+-\d+$/, "")));
  }
  return files;
}
