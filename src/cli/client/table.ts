/**
 * Rows in columns.
 *
 * @module
 */
import { padTo, toLines, toWidth } from "./terminal_text.ts";

/** Where a table stands, and how it looks. */
export interface TableOptions {
  /** Columns of the terminal for the whole. */
  readonly width: number;
  /** Spaces before each line. */
  readonly indent: number;
  /** How the cells of each column look; those without one are plain. */
  readonly styles?: readonly (((text: string) => string) | undefined)[];
}

/** No column but the last is wider: long names would leave nothing for what is said of them. */
const WIDEST = 32;
/** Where less is left for the last column, it stands on lines of its own. */
const LEAST = 20;
const GAP = 2;

/** The lines of a table. Its last column takes the space that is left. */
export function toTable(rows: readonly (readonly string[])[], options: TableOptions): readonly string[] {
  const { indent, width, styles = [] } = options;
  const room = width - indent;
  const count = Math.max(0, ...rows.map(({ length }) => length));
  const widths = Array.from({ length: count }, (_, at) => {
    let widest = 0;
    for (const row of rows) widest = Math.max(widest, toWidth(row[at] ?? ""));
    return at === count - 1 ? widest : Math.min(widest, WIDEST, Math.max(8, Math.floor(room / 2) - GAP));
  });
  // Several wide columns together may be wider than the terminal.
  const toSum = () => widths.slice(0, -1).reduce((sum, each) => sum + (each && each + GAP), 0) - GAP;
  while (toSum() > room) {
    const widest = widths.indexOf(Math.max(...widths.slice(0, -1)));
    if (widths[widest] <= 8) break;
    widths[widest]--;
  }
  const before = widths.slice(0, -1).reduce((sum, each) => sum + (each && each + GAP), 0);
  const isBelow = widths[count - 1] > room - before && room - before < LEAST;
  const last = Math.max(1, isBelow ? room - 2 * GAP : room - before);
  const toCell = (text: string, at: number) => toLines(text, at === count - 1 ? last : widths[at]);
  return rows.flatMap((row) => {
    const cells = row.map(toCell);
    const beside = isBelow ? cells.slice(0, count - 1) : cells;
    const height = Math.max(...beside.map(({ length }) => length));
    const lines = Array.from({ length: height }, (_, line) =>
      beside.map((cell, at) => {
        const text = cell[line] ?? "";
        const shown = styles[at]?.(text) ?? text;
        return widths[at] ? shown + " ".repeat(Math.max(0, widths[at] + GAP - toWidth(text))) : "";
      }).join("").trimEnd());
    const below = isBelow && row[count - 1] ? cells[count - 1].map((text) => " ".repeat(2 * GAP) + text) : [];
    return [...lines, ...below].map((line) => padTo("", indent) + line);
  });
}
