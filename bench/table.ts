// Formats figures as Markdown tables.
import { type Figure, RUNTIMES, type Workload } from "./record.ts";

/** The figures of one subject, such as a server, keyed by column name. */
export type Row = Map<string, string>;

/** Returns a table under its title, with one row for each subject. */
export function toTable(title: string, rows: ReadonlyMap<string, Row>): string {
  return `### ${title}\n\n${toRows(rows)}`;
}

/** Returns a table without a title. */
export function toRows(rows: ReadonlyMap<string, Row>): string {
  const columns = [...new Set([...rows.values()].flatMap((row) => [...row.keys()]))];
  const lines = [
    ["", ...columns],
    ["---", ...columns.map(() => "--:")],
    ...[...rows].map(([name, row]) => [name, ...columns.map((column) => row.get(column) ?? "–")]),
  ];
  return `${lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n")}\n`;
}

/**
 * Returns the rows of a workload over HTTP, by server: for each runtime, the CPU time with its range over the rounds, and
 * the CPU time of this library divided by it.
 */
export function toWorkloadRows(
  { servers }: Workload,
  runtimes: readonly typeof RUNTIMES[number][] = RUNTIMES,
): Map<string, Row> {
  const own = servers["@x/mcp"];
  const rows = Object.entries(servers).map(([name, figures]) => {
    const cells = runtimes.flatMap((runtime) => {
      const [figure, ours] = [figures[runtime], own?.[runtime]];
      const missing = ours ? "–" : "not recorded";
      return [
        [`${runtime}: µs CPU`, figure ? toRange(figure) : missing],
        [`${runtime}: ratio`, figure && ours ? toRatio(name, runtime, ours.micros / figure.micros) : missing],
      ] as const;
    });
    return [name, new Map(cells)] as const;
  });
  return new Map(rows);
}

function toRange({ micros, least, most }: Figure): string {
  const range = least === undefined || most === undefined ? "" : ` (${least.toFixed(1)}–${most.toFixed(1)})`;
  return micros.toFixed(1) + range;
}

/** Maximum ratios. */
const TARGETS = [
  { name: /^@x\/mcp with @hono/, runtime: "node", most: 1.1 },
  { name: /^mcp-lite/, runtime: "node", most: 1 },
];

function toRatio(server: string, on: string, ratio: number): string {
  const isMissed = TARGETS.some(({ name, runtime, most }) => runtime === on && name.test(server) && ratio > most);
  return isMissed ? `**${ratio.toFixed(3)}**` : ratio.toFixed(3);
}
