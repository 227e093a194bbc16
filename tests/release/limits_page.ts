// Writes the table of docs/limits.md from the comments and the defaults in src/core/capacity/limits.ts.
import { LIMITS } from "../../src/core/capacity/limits.ts";

/** The URL of the page. */
export const pageFile: URL = new URL("../../docs/limits.md", import.meta.url);

const sourceFile = new URL("../../src/core/capacity/limits.ts", import.meta.url);
const [begin, end] = ["<!-- deno-fmt-ignore-start -->", "<!-- deno-fmt-ignore-end -->"];

/** The parts of one limit's comment. */
interface Entry {
  readonly path: string;
  readonly counts: string;
  readonly together: string;
  readonly exceeded: string;
}

/** The current text of the page. */
export function readPage(): Promise<string> {
  return Deno.readTextFile(pageFile);
}

/** The page with another table. */
export function withTable(page: string, table: string): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`Cannot write ${pageFile.pathname}: it has no place for the table`);
  return `${page.slice(0, from + begin.length)}\n\n${table}\n${page.slice(to)}`;
}

/** The table. Throws if a limit has no comment on its unit and on the effect of exceeding it. */
export async function toTable(): Promise<string> {
  const entries = readEntries(await Deno.readTextFile(sourceFile));
  const defaults = new Map<string, string>(
    Object.entries(LIMITS).flatMap(([group, limits]) =>
      Object.entries<number>(limits).map(([name, value]) => [`${group}.${name}`, toDefault(name, value)] as const)
    ),
  );
  const missing = [...defaults.keys()].filter((path) => !entries.some((entry) => entry.path === path));
  if (missing.length) throw new Error(`Cannot describe ${missing.join(", ")}: no comment was found`);
  const rows = entries.map(({ path, counts, together, exceeded }) =>
    `| \`${path}\` | ${defaults.get(path)} | ${counts} | ${together} | ${exceeded} |`
  );
  return [
    "| Limit | Default | Counts | Together | When it is exceeded |",
    "| --- | --- | --- | --- | --- |",
    ...rows,
    "",
  ].join("\n");
}

function readEntries(source: string): Entry[] {
  const body = source.slice(source.indexOf("export interface Limits {"), source.indexOf("export type LimitOptions"));
  const members = body.matchAll(/^ {2}readonly (\w+): \{|^ {4}\/\*\*\n([^]*?)\*\/\n {4}readonly (\w+): number;/gm);
  let group = "";
  const entries: Entry[] = [];
  for (const [, opened, comment, name] of members) {
    if (opened) group = opened;
    else entries.push(readEntry(`${group}.${name}`, comment));
  }
  return entries;
}

function readEntry(path: string, comment: string): Entry {
  const paragraphs = comment.split("\n").map((line) => line.replace(/^ *\*? ?/, "")).join("\n").trim().split("\n\n");
  const [counts = "", ...rest] = paragraphs.map((text) => text.replaceAll("\n", " "));
  const find = (head: string) => {
    const text = rest.find((text) => text.startsWith(`${head}: `))?.slice(head.length + 2) ?? "";
    return text.charAt(0).toUpperCase() + text.slice(1);
  };
  const entry = { path, counts, together: find("Together"), exceeded: find("Exceeded") };
  if (!counts || !entry.exceeded) throw new Error(`Cannot describe ${path}: its comment is incomplete`);
  return entry;
}

function toDefault(name: string, value: number): string {
  if (value === Infinity) return "`Infinity`";
  if (/bytes/i.test(name)) return value % 1024 ** 2 ? `${value / 1024} KiB` : `${value / 1024 ** 2} MiB`;
  if (!/Ms$|^ms$/.test(name)) return value.toLocaleString("en");
  const units = [[3_600_000, "h"], [60_000, "min"], [1000, "s"], [1, "ms"]] as const;
  const [size, unit] = units.find(([size]) => value % size === 0) ?? [1, "ms"];
  return `${value / size} ${unit}`;
}

if (import.meta.main) await Deno.writeTextFile(pageFile, withTable(await readPage(), await toTable()));
