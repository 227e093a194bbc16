// The generated tables on pages. Each table is between two comments, which exempt it from formatting.

const [begin, end] = ["<!-- deno-fmt-ignore-start -->", "<!-- deno-fmt-ignore-end -->"];

/** Returns the text of a page with each table replaced. Throws if the page has more or fewer places for tables. */
export function withTables(page: string, tables: readonly string[]): string {
  const [head, ...places] = page.split(begin);
  if (places.length !== tables.length) {
    const [title] = head.split("\n");
    throw new Error(
      `Cannot write the page "${title}": it has ${places.length} places for ${tables.length} tables; add or remove ` +
        `lines with ${begin} and ${end}`,
    );
  }
  return head + places.map((place, i) => `${begin}\n\n${tables[i]}\n${place.slice(place.indexOf(end))}`).join("");
}

/** Replaces the tables in the file of a page. */
export async function writeTables(file: URL, tables: readonly string[]): Promise<void> {
  await Deno.writeTextFile(file, withTables(await Deno.readTextFile(file), tables));
}

/** Returns a Markdown table. */
export function toMarkdown(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = rows.map((cells) => `| ${cells.join(" | ")} |`);
  return [`| ${columns.join(" | ")} |`, `|${" --- |".repeat(columns.length)}`, ...lines, ""].join("\n");
}
