// Reads the pages of the documentation, and their code blocks.

const root = new URL("../../", import.meta.url);

/** A code block on a page. */
export interface Block {
  /** The file that is named in the line before the block. */
  readonly file?: string;
  readonly language: string;
  /** The words after the language, such as `ignore`. */
  readonly flags: readonly string[];
  readonly text: string;
  /** The number of the line on which the code begins, counted from 1. */
  readonly line: number;
}

/** A page of the documentation. */
export interface Page {
  /** The path relative to the project, such as `docs/reference/limits.md`. */
  readonly path: string;
  readonly markdown: string;
  readonly blocks: readonly Block[];
}

function readBlocks(markdown: string): readonly Block[] {
  const blocks = markdown.matchAll(/(?:^`([\w./-]+)`:\n\n)?^( *)```(\w+)([^\n]*)\n([^]*?)^\2```$/gm);
  return [...blocks].map(({ index, 0: whole, 1: file, 3: language, 4: flags, 5: text }) => {
    const head = whole.slice(0, whole.indexOf("```"));
    const line = (markdown.slice(0, index) + head).split("\n").length + 1;
    return { file, language, flags: flags.trim().split(/\s+/), text, line };
  });
}

/** Returns every page for users and contributors. */
export async function readPages(): Promise<readonly Page[]> {
  const paths = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"];
  paths.push(...await listPages("docs/"));
  const pages: Page[] = [];
  for (const path of paths.sort()) {
    const markdown = await Deno.readTextFile(new URL(path, root)).catch(() => "");
    if (markdown) pages.push({ path, markdown, blocks: readBlocks(markdown) });
  }
  return pages;
}

/** Lists the pages in a folder and its subfolders. */
async function listPages(folder: string): Promise<readonly string[]> {
  const paths: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(new URL(folder, root))) {
    if (isDirectory) paths.push(...await listPages(`${folder}${name}/`));
    else if (name.endsWith(".md")) paths.push(folder + name);
  }
  return paths;
}

/** Writes the files that a page's blocks name into a folder. If a page shows a file twice, the last block counts. */
export async function writeFiles({ blocks }: Page, folder: string): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  for (const block of blocks) await writeFile(block, folder);
}

/** Writes the file that a block names into a folder. Does nothing if the block names no file. */
export async function writeFile({ file, text }: Block, folder: string): Promise<void> {
  if (file === undefined) return;
  await Deno.mkdir(`${folder}/${file}`.replace(/\/[^/]*$/, ""), { recursive: true });
  await Deno.writeTextFile(`${folder}/${file}`, text);
}

/** The headings of the columns of commands. */
export const RUNTIMES = ["Deno", "Bun", "Node"] as const;

/** The heading of a column of commands. */
export type Runtime = typeof RUNTIMES[number];

/** A row of a table with a column for each runtime. */
export interface Row {
  /** The number of the line, counted from 1. */
  readonly line: number;
  readonly name: string;
  readonly commands: readonly string[];
}

/** Returns the rows of the tables that have a column for each runtime, with the commands in the runtime's column. */
export function readRows({ markdown }: Page, runtime: Runtime): readonly Row[] {
  const rows: Row[] = [];
  let isTable = false;
  for (const [at, line] of markdown.split("\n").entries()) {
    const cells = line.split("|").slice(1, -1).map((cell) => cell.trim());
    if (cells.slice(1).join() === RUNTIMES.join()) isTable = true;
    else if (!line.startsWith("|")) isTable = false;
    else if (isTable && !/^-+$/.test(cells[0])) {
      const commands = [...cells[1 + RUNTIMES.indexOf(runtime)].matchAll(/`([^`]+)`/g)].map(([, command]) => command);
      rows.push({ line: at + 1, name: cells[0], commands });
    }
  }
  return rows;
}
