// Writes the figures of the record into plots and pages. `deno task bench:peers --record` does this after a run, and
// `deno task docs:plots` from the present record.
import { toAlternative, toPlot } from "./plots.ts";
import { type Figure, type Figures, readRecord, RUNTIMES } from "./record.ts";
import { toRows, toWorkloadRows } from "./table.ts";

/** The pages with figures of the record. */
export const PAGES = [
  "README.md",
  "bench/README.md",
  "docs/guides/coming-from/other-frameworks.md",
  "docs/guides/node.md",
  "docs/project/decisions.md",
];

const root = new URL("../", import.meta.url);

/**
 * Returns a page with the figures of the record:
 *
 * - alternative texts of plots
 * - the text between `<!-- record W1 -->` and `<!-- end -->`: a table
 * - the text between `<!-- record conditions -->` and `<!-- end -->`: how the figures were measured
 * - the text of links to `bench/README.md` with a title: "W1 deno TS SDK" for a CPU time in microseconds,
 *   "W1 deno @x/mcp / W1 deno TS SDK" for a ratio, and "warm-up" for the state of the servers
 */
export function fillPage(markdown: string, record: Figures): string {
  return markdown.replace(
    /!\[[^\]]*\]\(([./\w-]*plots\/(W\d)\.svg)\)/g,
    (_, path: string, name: string) => `![${toAlternative(name, record.workloads[name])}](${path})`,
  ).replace(
    /(<!-- record (\w+) -->)[^]*?<!-- end -->/g,
    (_, begin: string, wanted: string) => `${begin}\n\n${toBlock(wanted, record)}\n<!-- end -->`,
  ).replace(
    /\[[^\]]*\](\([./]*bench\/README\.md[^\s)]* "([^"]+)"\))/g,
    (_, target: string, wanted: string) => `[${toText(wanted.replace(/\s+/g, " "), record)}]${target}`,
  );
}

function toBlock(wanted: string, record: Figures): string {
  if (wanted === "conditions") return `${describeConditions(record)}\n`;
  return toRows(toWorkloadRows(record.workloads[wanted]));
}

function toText(wanted: string, record: Figures): string {
  if (wanted === "warm-up") return describeWarmUp(record);
  const [over, under] = wanted.split(" / ").map((name) => findFigure(name, record).micros);
  return under === undefined ? over.toFixed(1) : (over / under).toFixed(2);
}

function findFigure(wanted: string, { workloads }: Figures): Figure {
  const [name, on, ...words] = wanted.split(" ");
  const server = words.join(" ");
  const runtime = RUNTIMES.find((known) => known === on);
  const servers = Object.entries(workloads[name]?.servers ?? {});
  // The names of other libraries end with their versions.
  const [, figures] = servers.find(([known]) => known.replace(/ \d[\d.]*$/, "") === server) ?? [];
  const figure = runtime && figures?.[runtime];
  if (!figure) throw new Error(`Cannot fill the page: the record has no figure for "${wanted}"; see bench/peers.json`);
  return figure;
}

function describeConditions({ machine, conditions }: Figures): string {
  if (!conditions) {
    return `Machine: ${machine}. These figures come from an earlier version of the benchmark, with a warm-up of two ` +
      "seconds per server. Slow servers were not fully warmed up, so their figures are too high, and the ratios favour `@x/mcp`.";
  }
  const { rounds, warmUpSeconds, falling, shared, slices } = conditions;
  const warm = falling.length
    ? `The CPU time of these servers was still falling when their rounds began: ${falling.join(", ")}.`
    : "All servers were warmed up when their rounds began.";
  return `Machine: ${machine}. Each server had ${rounds} rounds, after a warm-up of at least ${warmUpSeconds} s of CPU ` +
    `time. ${warm} In ${shared} of ${slices} slices, including those of the warm-up, other processes used more than 10 % of a core.`;
}

function describeWarmUp({ conditions }: Figures): string {
  if (!conditions) return "servers that were not all warmed up";
  return conditions.falling.length ? "servers that were not all warmed up" : "warmed-up servers";
}

/** Writes the plots and the pages, and formats the pages. */
export async function writePages(record: Figures): Promise<void> {
  await Deno.mkdir(new URL("bench/plots", root), { recursive: true });
  for (const [name, workload] of Object.entries(record.workloads)) {
    await Deno.writeTextFile(new URL(`bench/plots/${name}.svg`, root), toPlot(name, workload));
  }
  for (const page of PAGES) {
    const url = new URL(page, root);
    await Deno.writeTextFile(url, fillPage(await Deno.readTextFile(url), record));
  }
  const { success, stderr } = await new Deno.Command(Deno.execPath(), { args: ["fmt", "--quiet", ...PAGES], cwd: root })
    .output();
  if (!success) throw new Error(`Cannot format the pages: ${new TextDecoder().decode(stderr)}`);
}

if (import.meta.main) await writePages(await readRecord());
