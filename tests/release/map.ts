// Writes the map of the files into docs/project/files.md, from the first sentence of each file's own comment: `deno
// task docs:map`. A test fails if the map is out of date.
import { listSources } from "../support/sources.ts";

const root = new URL("../../", import.meta.url);
const PAGE = new URL("docs/project/files.md", root);
const BEGIN = "<!-- map: written by deno task docs:map -->";
const END = "<!-- end of map -->";

/** The first sentence of the comment at the top of a file. */
function toSummary(source: string): string {
  const [, comment = ""] = /^\/\*\*([^]*?)\*\//.exec(source) ?? [];
  const text = comment.replace(/^\s*\* ?/gm, "").trim().split(/\n\s*\n/)[0].replace(/\s+/g, " ");
  return (/^.*?\.(?= |$)/.exec(text)?.[0] ?? text).replaceAll("|", "\\|");
}

/** The page with an up-to-date map. */
export async function renderPage(): Promise<{ readonly page: string; readonly wanted: string }> {
  const page = await Deno.readTextFile(PAGE);
  const folders = new Map<string, string[]>();
  for (const path of [...await listSources("src/"), "mod.ts"]) {
    const at = path.lastIndexOf("/") + 1;
    const row = `| \`${path.slice(at)}\` | ${toSummary(await Deno.readTextFile(new URL(path, root)))} |`;
    const folder = path.slice(0, at) || "./";
    folders.set(folder, [...folders.get(folder) ?? [], row]);
  }
  const tables = [...folders].sort(([a], [b]) => a < b ? -1 : 1).map(([folder, rows]) =>
    `## \`${folder}\`\n\n| file | what it is for |\n| --- | --- |\n${rows.join("\n")}`
  );
  const before = page.slice(0, page.indexOf(BEGIN) + BEGIN.length);
  return { page, wanted: `${before}\n\n${tables.join("\n\n")}\n\n${END}\n` };
}

if (import.meta.main) await Deno.writeTextFile(PAGE, (await renderPage()).wanted);
