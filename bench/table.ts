// Formats figures as Markdown tables.

/** The figures of one subject, such as a server, keyed by column name. */
export type Row = Map<string, string>;

/** Returns a table under its title, with one row for each subject. */
export function toTable(title: string, rows: ReadonlyMap<string, Row>): string {
  const columns = [...new Set([...rows.values()].flatMap((row) => [...row.keys()]))];
  const lines = [
    ["", ...columns],
    ["---", ...columns.map(() => "--:")],
    ...[...rows].map(([name, row]) => [name, ...columns.map((column) => row.get(column) ?? "–")]),
  ];
  return `### ${title}\n\n${lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n")}\n`;
}
