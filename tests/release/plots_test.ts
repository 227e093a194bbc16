// Tests the plots of the benchmarks: they show the figures of the record, which are those of the tables in
// bench/README.md.
import { assertEquals } from "@std/assert";
import { describePlots, PAGES, toPlot } from "../../bench/plots.ts";
import { readRecord, RUNTIMES, toWorkload, type Workload } from "../../bench/record.ts";

const root = new URL("../../", import.meta.url);
const ignore = typeof Deno === "undefined"; // Only Deno reads the files.

const readText = (path: string) => Deno.readTextFile(new URL(path, root));

/** Returns the figures in the table below a heading. */
function readTable(markdown: string, heading: string, title: string): Workload {
  const [, text = ""] = markdown.split(`#### ${heading}\n`);
  const lines = text.slice(text.indexOf("\n|")).trim().split("\n\n", 1)[0].split("\n");
  const [head, , ...rows] = lines.map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()));
  return toWorkload(
    title,
    new Map(rows.map(([name, ...cells]) => [name, new Map(cells.map((cell, at) => [head[at + 1], cell]))])),
  );
}

Deno.test({
  name: "the tables of the benchmarks with Node show the figures of the record",
  ignore,
  async fn() {
    const { workloads } = await readRecord();
    const markdown = await readText("bench/README.md");
    assertEquals(Object.keys(workloads), ["W1", "W2", "W3", "W4"]);
    for (const [name, workload] of Object.entries(workloads)) {
      const own = Object.keys(workload.servers["@x/mcp"]);
      assertEquals(own, [...RUNTIMES]);
      assertEquals(workload, readTable(markdown, `${name} ${workload.title}, with Node`, workload.title));
    }
  },
});

Deno.test({
  name: "the plots and their alternative texts show the figures of the record; run deno task docs:plots",
  ignore,
  async fn() {
    const record = await readRecord();
    for (const [name, workload] of Object.entries(record.workloads)) {
      assertEquals(await readText(`bench/plots/${name}.svg`), toPlot(name, workload));
    }
    for (const path of PAGES) {
      const markdown = await readText(path);
      assertEquals(/plots\/W1\.svg/.test(markdown), true, path);
      assertEquals(markdown, describePlots(markdown, record), path);
    }
  },
});
