/**
 * Formats rows as a table that fits into the width of the terminal.
 *
 * @module
 */
import { padTo, toLines, toWidth } from "./terminal_text.ts";

/** The layout and the styles of a table. */
export interface TableOptions {
  /** The width of the table with its indent, in columns of the terminal. */
  readonly width: number;
  /** The number of spaces before each line. */
  readonly indent: number;
  /** The style of each column. Cells of a column without one are plain. */
  readonly styles?: readonly (((text: string) => string) | undefined)[];
}

/** The largest width of a column other than the last, so that long names leave space for their descriptions. */
const MAX_WIDTH = 32;
/** The smallest width of the last column. With less space, it goes on lines of its own. */
const MIN_LAST_WIDTH = 20;
const GAP = 2;

/** The lines of a table. The last column takes the remaining space. */
export function toTable(rows: readonly (readonly string[])[], options: TableOptions): readonly string[] {
  const { indent, width, styles = [] } = options;
  const space = width - indent;
  const count = Math.max(0, ...rows.map(({ length }) => length));
  const widths = Array.from({ length: count }, (_, at) => {
    let widest = 0;
    for (const row of rows) widest = Math.max(widest, toWidth(row[at] ?? ""));
    return at === count - 1 ? widest : Math.min(widest, MAX_WIDTH, Math.max(8, Math.floor(space / 2) - GAP));
  });
  // Several wide columns together may be wider than the terminal.
  const toSum = () => widths.slice(0, -1).reduce((sum, each) => sum + (each && each + GAP), 0) - GAP;
  while (toSum() > space) {
    const widest = widths.indexOf(Math.max(...widths.slice(0, -1)));
    if (widths[widest] <= 8) break;
    widths[widest]--;
  }
  const before = widths.slice(0, -1).reduce((sum, each) => sum + (each && each + GAP), 0);
  const isBelow = widths[count - 1] > space - before && space - before < MIN_LAST_WIDTH;
  const last = Math.max(1, isBelow ? space - 2 * GAP : space - before);
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
