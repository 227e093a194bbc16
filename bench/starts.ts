// Measures the time from the start of a process to its first response over stdio, and compares the results with their
// targets. Between the measured starts, the benchmark starts a minimal stdio server that loads zod.
import { bundleEntries } from "../tests/release/npm_package.ts";
import { bundle } from "./bundle.ts";
import { type Runtime, toMedian, toWords } from "./machine.ts";
import { toRatios, toSpread } from "./ratios.ts";
import { toServerFile, toStdioFile } from "./server_file.ts";
import { measureBundles } from "./size.ts";
import { type StartTime, timeStarts, writeAnswer } from "./start.ts";
import { type Row, toTable } from "./table.ts";

const root = new URL("../", import.meta.url).pathname;
const ENTRIES = { library: `${root}mod.ts`, stdio: `${root}src/server/transports/stdio/stdio.ts` };
const FLOOR = "floor that loads zod";
const BUNDLED_FLOOR = "floor, bundled";
const EXECUTABLE_FLOOR = "floor, as an executable";
const FILE = "(a) file that calls serveStdio";

/**
 * A program to start, the name of the program that it is compared with, and the target: the maximum ratio of their
 * times.
 */
interface Start {
  readonly name: string;
  readonly words: readonly string[];
  readonly base: string;
  readonly aim?: number;
}

async function listStarts(runtime: Runtime, folder: string, answer: string): Promise<readonly Start[]> {
  await Deno.writeTextFile(`${folder}/file.ts`, toStdioFile(ENTRIES));
  await Deno.writeTextFile(`${folder}/server.ts`, toServerFile(ENTRIES));
  await bundleEntries(root, `${folder}/npm`);
  const npm = { library: `${folder}/npm/index.js`, stdio: `${folder}/npm/stdio.js` };
  await Deno.writeTextFile(`${folder}/npm_file.ts`, toStdioFile(npm));
  const floor = `${root}bench/programs/floor_zod.ts`;
  const bundledFloor = await bundle(floor, `${folder}/${runtime}_floor`, { runtime, layout: "single" });
  // Split the bundle on Bun. If any code is loaded on demand, Bun wraps each module of a single file in a function, and
  // the program starts more slowly.
  const layout = runtime === "bun" ? "split" : "single";
  const bundledFile = await bundle(`${folder}/file.ts`, `${folder}/${runtime}_file`, { runtime, layout });
  const toStart = (name: string, file: string, args: readonly string[], base: string, aim?: number): Start => ({
    name,
    words: toWords(runtime, file, args),
    base,
    aim,
  });
  const starts = [
    toStart(FLOOR, floor, [answer], FLOOR),
    toStart(FILE, `${folder}/file.ts`, [], FLOOR, runtime === "deno" ? 1.6 : 1.3),
    toStart("(a) with the npm package instead of the source", `${folder}/npm_file.ts`, [], FLOOR, 1.5),
    toStart("(b) file that the command line serves", ENTRIES.library, [`${folder}/server.ts`], FILE, 1.2),
    toStart(BUNDLED_FLOOR, bundledFloor, [answer], BUNDLED_FLOOR),
    toStart("(c) file that calls serveStdio, bundled", bundledFile, [], BUNDLED_FLOOR, 1.5),
  ];
  // Only Bun compiles the code when it creates an executable.
  if (runtime === "deno") return starts;
  const compile = (file: string, name: string) => bundle(file, `${folder}/${name}`, { runtime, layout: "executable" });
  const [base, name] = [EXECUTABLE_FLOOR, "(d) file that calls serveStdio, as an executable"];
  return [
    ...starts,
    { name: base, words: [await compile(floor, "executable_floor"), answer], base },
    { name, words: [await compile(`${folder}/file.ts`, "executable")], base, aim: 1.5 },
  ];
}

/** Measures starts and bundle sizes. Returns Markdown tables. */
export async function measureStarts(runtimes: readonly Runtime[], count: number): Promise<string> {
  const rows = new Map<string, Row>();
  const answer = await writeAnswer();
  // Create the folder inside the project, so that the runtimes find zod.
  const folder = await Deno.makeTempDir({ dir: root, prefix: ".bench-" });
  try {
    for (const runtime of runtimes) {
      const starts = await listStarts(runtime, folder, answer);
      const times = await timeStarts(starts.map(({ words }) => words), count);
      const toTimes = (name: string, kind: keyof StartTime) =>
        times[starts.findIndex((start) => start.name === name)].map((time) => time[kind]);
      for (const { name, base, aim } of starts) {
        const row = rows.get(name) ?? rows.set(name, new Map()).get(name);
        row?.set(`${runtime}: ms`, toMedian(toTimes(name, "ms")).toFixed(1));
        if (aim === undefined) continue;
        const ratios = toRatios(toTimes(name, "ms"), toTimes(base, "ms"));
        const cpu = toRatios(toTimes(name, "cpu"), toTimes(base, "cpu"));
        row?.set(`${runtime}: ratio`, ratios.median.toFixed(2)).set(`${runtime}: quartiles`, toSpread(ratios));
        row?.set(`${runtime}: CPU ratio`, cpu.median.toFixed(2));
        row?.set(`${runtime}: target`, `≤ ${aim} × ${base === FILE ? "(a)" : "floor"}`);
        row?.set(`${runtime}: verdict`, ratios.median <= aim ? "met" : "**missed**");
      }
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
    await Deno.remove(answer);
  }
  const title = `Time from the start of a process to its first response over stdio, ${count} starts each`;
  return `${toTable(title, rows)}\n${await measureBundles()}`;
}
