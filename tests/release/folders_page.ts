// Writes the table of folders in docs/project/architecture.md from the README of each folder and the rules for imports.
import { folders } from "../architecture/rules.ts";
import { toMarkdown, writeTables } from "./page_tables.ts";

const root = new URL("../../", import.meta.url);

/** The URL of the page's file. */
export const pageFile: URL = new URL("docs/project/architecture.md", root);

/** The last column for folders whose rules do not list folders. */
const imports: Readonly<Record<string, string>> = {
  core: "nothing",
  cli: "published entries, `library.ts`, `host.ts`, `core/kit/`, `ready/`",
};

/** The folders of src/, in the order in which a folder can import the folders before it. */
export const rows: readonly string[] = [...new Set(Object.keys(folders).map(toRow))].filter((row) =>
  !row.includes(".")
);

function toRow(path: string): string {
  return path.split("/")[1] ?? path;
}

/** Returns the table: each folder with its task and what it can import. */
export async function toTable(): Promise<string> {
  const lines = await Promise.all(rows.map(async (row) => {
    const task = toTask(await Deno.readTextFile(new URL(`src/${row}/README.md`, root)));
    return [`[\`${row}/\`](../../src/${row})`, task, imports[row] ?? listImports(row).join(", ")];
  }));
  return toMarkdown(["folder", "task", "can import"], lines);
}

/** The paragraph below the heading. */
function toTask(readme: string): string {
  return readme.split("\n\n")[1].trim().replaceAll("\n", " ").replace(/\.$/, "");
}

/** Returns the rows that the files of a row can import. Names a file if the row can import only this file. */
function listImports(row: string): readonly string[] {
  const imported = Object.entries(folders).filter(([folder]) => toRow(folder) === row).flatMap(([, targets]) => targets)
    .filter((target) => toRow(target) !== row);
  const isWhole = (other: string) => imported.some((path) => toRow(path) === other && !path.endsWith(".ts"));
  const names = imported.map((path) => isWhole(toRow(path)) ? `${toRow(path)}/` : path.replace(/^src\//, ""));
  return rows.concat("library.ts").flatMap((row) => [...new Set(names)].filter((name) => name.split("/")[0] === row))
    .map((name) => `\`${name}\``);
}

if (import.meta.main) await writeTables(pageFile, [await toTable()]);
