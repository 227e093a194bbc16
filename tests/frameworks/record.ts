// The record of the frameworks that were probed, and the table on the page that shows it.
import { toMarkdown, writeTables } from "../release/page_tables.ts";
import { type Behaviour, BEHAVIOURS } from "./probe.ts";
import type { Project } from "./projects.ts";

/** A framework whose app did what is expected. */
export interface Entry {
  /** Names and versions of the framework and its adapter, such as `next 16.4.6`. */
  readonly versions: readonly string[];
  readonly runtime: string;
  /** The date of the run, such as `2026-11-27`. */
  readonly date: string;
  /** The behaviours that need a setting, and the behaviours that fail. All other behaviours passed. */
  readonly notes: Partial<Readonly<Record<Behaviour, string>>>;
}

/** The frameworks, by name. */
export type FrameworkRecord = Readonly<Record<string, Entry>>;

const recordFile = new URL("record.json", import.meta.url);

/** The URL of the page's file. */
export const pageFile: URL = new URL("../../docs/project/framework-checks.md", import.meta.url);

/** Reads the record. */
export async function readRecord(): Promise<FrameworkRecord> {
  return JSON.parse(await Deno.readTextFile(recordFile));
}

/** Returns the versions of an app that the table shows. */
export function toVersions({ packages, shown = 1 }: Project): readonly string[] {
  return packages.slice(0, shown).map((each) => each.replace(/(.)@/, "$1 "));
}

/** Returns the cells of the table that differ from a passed behaviour. */
export function toNotes({ settings = {}, faults = {} }: Project): Entry["notes"] {
  const notes = BEHAVIOURS.flatMap((behaviour): readonly (readonly [Behaviour, string])[] => {
    if (faults[behaviour] !== undefined) return [[behaviour, `fails: ${faults[behaviour]}`]];
    return settings[behaviour] === undefined ? [] : [[behaviour, `with ${settings[behaviour]}`]];
  });
  return Object.fromEntries(notes);
}

/** Returns the table of the page. */
export function toTable(record: FrameworkRecord): string {
  const head = ["App", ...BEHAVIOURS, "Versions", "Runtime", "Date"];
  const rows = Object.entries(record).map((
    [name, { versions, runtime, date, notes }],
  ) => [name, ...BEHAVIOURS.map((behaviour) => notes[behaviour] ?? "✓"), versions.join(", "), runtime, date]);
  return toMarkdown(head, rows);
}

/** Writes the record and the page. */
export async function writeRecord(record: FrameworkRecord): Promise<void> {
  await Deno.writeTextFile(recordFile, JSON.stringify(record, null, 2) + "\n");
  await writeTables(pageFile, [toTable(record)]);
}
