// Counts the words of the documentation. `deno task docs:words` prints the number of words of each page.
import { type Page, readPages } from "./pages.ts";

/** The groups of pages with a limit, and the maximum number of words of a group. */
const LIMITS: readonly (readonly [name: string, has: (path: string) => boolean, words: number])[] = [
  ["README.md", (path) => path === "README.md", 1000],
  ["all guides", (path) => path.startsWith("docs/guides/"), 65_000],
  ["all pages of docs/", (path) => path.startsWith("docs/"), 106_000],
];
/** The maximum number of words of each guide. */
const GUIDE = 2500;

/** Counts the words in text and code. Marks such as `|` do not count. */
export const countWords = (text: string): number =>
  text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;

const count = (pages: readonly Page[]): number => pages.reduce((sum, { markdown }) => sum + countWords(markdown), 0);

/** Lists what has more words than its limit. */
export function listExcesses(pages: readonly Page[]): readonly string[] {
  const groups = LIMITS.map(([name, has, words]) =>
    [name, count(pages.filter(({ path }) => has(path))), words] as const
  );
  const guides = pages.filter(({ path }) => path.startsWith("docs/guides/"));
  const each = guides.map((page) => [page.path, count([page]), GUIDE] as const);
  return [...groups, ...each].flatMap(([name, words, limit]) =>
    words > limit ? [`${name}: ${words} words, but the limit is ${limit}`] : []
  );
}

if (import.meta.main) {
  const pages = await readPages();
  const rows = pages.map((page) => [count([page]), page.path] as const).sort(([a], [b]) => b - a);
  for (const [words, path] of rows) console.log(`${String(words).padStart(7)}  ${path}`);
  for (const [name, has, limit] of LIMITS) {
    console.log(`${String(count(pages.filter(({ path }) => has(path)))).padStart(7)}  ${name} (limit: ${limit})`);
  }
  for (const excess of listExcesses(pages)) console.log(`Too long: ${excess}`);
}
