// Draws the CPU time per request of this library and of other libraries.
import { RUNTIMES, type Workload } from "./record.ts";

const NAMES = { node: "Node", deno: "Deno", bun: "Bun" };
/** Servers that a plot leaves out, because they are no libraries that a reader can choose. */
const LEFT_OUT = /^floor|with @hono/;

const WIDTH = 560;
const BAR = { left: 150, right: 70, height: 16, step: 22 };
/** Height of the title, and of the heading of a runtime. */
const HEADS = { title: 40, runtime: 26 };

const escape = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

/** Returns the bars of a workload: for each runtime, the servers with their CPU time. */
function listBars({ servers }: Workload) {
  const shown = Object.entries(servers).filter(([name]) => !LEFT_OUT.test(name));
  return RUNTIMES.map((runtime) => ({
    runtime: NAMES[runtime],
    bars: shown.flatMap(([name, figures]) => {
      const micros = figures[runtime]?.micros;
      return micros === undefined ? [] : [{ name, micros }];
    }).sort((a, b) => a.micros - b.micros),
  })).filter(({ bars }) => bars.length);
}

/** Returns the figures of a plot as text, for readers who cannot see it. */
export function toAlternative(name: string, workload: Workload): string {
  const groups = listBars(workload).map(({ runtime, bars }) =>
    `${runtime}: ${bars.map(({ name, micros }) => `${name} ${micros}`).join(", ")}`
  );
  return `CPU time per request in microseconds, ${name} ${workload.title}. ${groups.join("; ")}`;
}

/** Returns a plot of a workload as SVG. Its colors are readable on light and on dark pages. */
export function toPlot(name: string, workload: Workload): string {
  const groups = listBars(workload);
  const most = Math.max(...groups.flatMap(({ bars }) => bars.map(({ micros }) => micros)));
  const parts: string[] = [];
  let y = HEADS.title;
  for (const { runtime, bars } of groups) {
    parts.push(`<text class="head" x="16" y="${y + 16}">${runtime}</text>`);
    y += HEADS.runtime;
    for (const { name, micros } of bars) {
      const width = (micros / most * (WIDTH - BAR.left - BAR.right)).toFixed(1);
      const kind = name === "@x/mcp" ? "own" : "other";
      parts.push(
        `<text x="${BAR.left - 8}" y="${y + 12}" text-anchor="end">${escape(name)}</text>`,
        `<rect class="${kind}" x="${BAR.left}" y="${y}" width="${width}" height="${BAR.height}" rx="2" />`,
        `<text x="${(BAR.left + Number(width) + 6).toFixed(1)}" y="${y + 12}">${micros.toFixed(1)}</text>`,
      );
      y += BAR.step;
    }
    y += 6;
  }
  const height = y + 10;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
<title>${escape(toAlternative(name, workload))}</title>
<style>
.card { fill: #fff; stroke: #d0d7de } text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.head { font-weight: 600 } .own { fill: #0a7d4f } .other { fill: #8c959f }
@media (prefers-color-scheme: dark) {
  .card { fill: #161b22; stroke: #30363d } text { fill: #e6edf3 } .own { fill: #3fb97f } .other { fill: #6e7681 }
}
</style>
<rect class="card" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="6" />
<text class="head" x="16" y="26">${escape(`${name} ${workload.title}: µs of CPU per request`)}</text>
${parts.join("\n")}
</svg>
`;
}
