// Writes the table in docs/reference/observing.md from the types in src/server/call/observer.ts.
import { toMarkdown, writeTables } from "./page_tables.ts";

/** The URL of the page's file. */
export const pageFile: URL = new URL("../../docs/reference/observing.md", import.meta.url);

const sourceFile = new URL("../../src/server/call/observer.ts", import.meta.url);

/**
 * Returns the table: each event with the time when it happens and its fields. Throws if an event or its type is
 * missing.
 */
export async function toTable(): Promise<string> {
  const source = await Deno.readTextFile(sourceFile);
  const [, body] = /export interface Observer \{\n([^]*?)\n\}/.exec(source) ?? [];
  if (!body) throw new Error(`Cannot read ${sourceFile.pathname}: it does not declare Observer`);
  const rows = [...body.matchAll(/\/\*\*((?:(?!\*\/)[^])*)\*\/\s+(\w+)\?\(event: (\w+)\)/g)].map((
    [, comment, name, type],
  ) => [`\`${name}\``, toText(comment), listFields(source, type).map((field) => `\`${field}\``).join(", ")]);
  return toMarkdown(["Event", "When", "Fields"], rows);
}

/** Returns the fields of an event. The fields of the types that it extends come first. */
export function listFields(source: string, type: string): string[] {
  const found = new RegExp(`export interface ${type}(?: extends (\\w+))? \\{\\n([^]*?)\\n\\}`).exec(source);
  if (!found) throw new Error(`Cannot describe ${type}: the source does not declare it`);
  const [, base, body] = found;
  const own = [...body.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, name]) => name);
  return [...base ? listFields(source, base) : [], ...own];
}

function toText(comment: string): string {
  return comment.replace(/\s*\n\s*\* ?/g, " ").replace(/\{@linkcode (\w+)\}/g, "`$1`").replace(/^\s*Called /, "")
    .replace(/^./, (first) => first.toUpperCase()).trim();
}

if (import.meta.main) await writeTables(pageFile, [await toTable()]);
