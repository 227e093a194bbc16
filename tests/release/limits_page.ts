// Writes the tables in docs/reference/limits.md from the comments and values in src/server/capacity/.
import { FIXED_LIMITS } from "../../src/server/capacity/fixed_limits.ts";
import { LIMITS } from "../../src/server/capacity/limits.ts";
import { toMarkdown, writeTables } from "./page_tables.ts";

/** The URL of the page's file. */
export const pageFile: URL = new URL("../../docs/reference/limits.md", import.meta.url);

/** A table on the page. */
interface Table {
  /** The file that contains the comments. */
  readonly source: string;
  readonly values: Readonly<Record<string, object>>;
  readonly columns: readonly string[];
  /** The first word of a further paragraph. The page shows "Together"; each bound must have a "Reason" in its source. */
  readonly further: "Together" | "Reason";
}

const tables: readonly Table[] = [
  {
    source: "limits.ts",
    values: { ...LIMITS },
    columns: ["Limit", "Default", "Counts", "Together", "When it is exceeded"],
    further: "Together",
  },
  {
    source: "fixed_limits.ts",
    values: { ...FIXED_LIMITS },
    columns: ["Bound", "Value", "Counts", "When it is exceeded"],
    further: "Reason",
  },
];

/** The parts of a limit's comment. */
interface Entry {
  readonly path: string;
  readonly counts: string;
  readonly further: string;
  readonly exceeded: string;
}

/** Reads the current text of the page. */
export function readPage(): Promise<string> {
  return Deno.readTextFile(pageFile);
}

/**
 * Returns the tables. Throws if a limit's comment lacks the unit, the reason, or what happens when the limit is
 * exceeded.
 */
export function toTables(): Promise<readonly string[]> {
  return Promise.all(tables.map(toTable));
}

async function toTable({ source, values, columns, further }: Table): Promise<string> {
  const file = new URL(`../../src/server/capacity/${source}`, import.meta.url);
  const entries = readEntries(await Deno.readTextFile(file), further);
  const numbers = new Map<string, string>(
    Object.entries(values).flatMap(([group, limits]) =>
      Object.entries<number | boolean>({ ...limits }).map(([name, value]) =>
        [`${group}.${name}`, toText(name, value)] as const
      )
    ),
  );
  const missing = [...numbers.keys()].filter((path) => !entries.some((entry) => entry.path === path));
  if (missing.length) throw new Error(`Cannot describe ${missing.join(", ")}: no comment was found`);
  return toMarkdown(
    columns,
    entries.map((entry) => [
      ...[`\`${entry.path}\``, numbers.get(entry.path) ?? "", entry.counts],
      ...(further === "Together" ? [entry.further] : []),
      entry.exceeded,
    ]),
  );
}

function readEntries(source: string, head: Table["further"]): Entry[] {
  const from = source.indexOf("export interface ");
  const body = source.slice(from, source.indexOf("\n}\n", from));
  const members = body.matchAll(
    /^ {2}readonly (\w+): \{|^ {4}\/\*\*\n([^]*?)\*\/\n {4}readonly (\w+): (?:number|boolean);/gm,
  );
  let group = "";
  const entries: Entry[] = [];
  for (const [, opened, comment, name] of members) {
    if (opened) group = opened;
    else entries.push(readEntry(`${group}.${name}`, comment, head));
  }
  return entries;
}

function readEntry(path: string, comment: string, head: Table["further"]): Entry {
  const paragraphs = comment.split("\n").map((line) => line.replace(/^ *\*? ?/, "")).join("\n").trim().split("\n\n");
  const [counts = "", ...rest] = paragraphs.map((text) => text.replaceAll("\n", " "));
  const find = (word: string) => {
    const text = rest.find((text) => text.startsWith(`${word}: `))?.slice(word.length + 2) ?? "";
    return text.charAt(0).toUpperCase() + text.slice(1);
  };
  const entry = { path, counts, further: find(head), exceeded: find("Exceeded") };
  if (!counts || !entry.exceeded || (head === "Reason" && !entry.further)) {
    throw new Error(`Cannot describe ${path}: its comment is incomplete`);
  }
  return entry;
}

function toText(name: string, value: number | boolean): string {
  if (typeof value === "boolean") return `\`${value}\``;
  if (value === Infinity) return "`Infinity`";
  if (/bytes/i.test(name)) return value % 1024 ** 2 ? `${value / 1024} KiB` : `${value / 1024 ** 2} MiB`;
  if (!/Ms$|^ms$/.test(name)) return value.toLocaleString("en");
  const units = [[3_600_000, "h"], [60_000, "min"], [1000, "s"], [1, "ms"]] as const;
  const [size, unit] = units.find(([size]) => value % size === 0) ?? [1, "ms"];
  return `${value / size} ${unit}`;
}

if (import.meta.main) await writeTables(pageFile, await toTables());
