// Tests the documentation and the sources: every link in a page works, and each source file begins with a comment that
// states its purpose.
import { assert, assertEquals } from "@std/assert";
import { listSources } from "../support/sources.ts";
import { readPages } from "./pages.ts";
import { countWords, listExcesses } from "./count_words.ts";
import { readFileSync } from "node:fs";
import { PER_INSTANCE } from "../support/instances.ts";
import config from "../../deno.json" with { type: "json" };

const root = new URL("../../", import.meta.url);
const ignore = typeof Deno === "undefined"; // Only Deno reads the files.

/** Returns the anchors of a page: GitHub derives one from each heading. */
function readAnchors(markdown: string): ReadonlySet<string> {
  const plain = markdown.replace(/^```[^]*?^```$/gm, "");
  const headings = [...plain.matchAll(/^#+ (.+)$/gm)].map(([, text]) => text);
  return new Set(
    headings.map((text) => text.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").trim().replaceAll(" ", "-")),
  );
}

Deno.test("every source file begins with a comment that states its purpose", { ignore }, async () => {
  const silent: string[] = [];
  for (const path of [...await listSources("src/"), "mod.ts"]) {
    const source = await Deno.readTextFile(new URL(path, root));
    if (!/^(#!.*\n|\/\/ deno-lint.*\n)*\/\*\*\s[\s*]*[A-Z`@][^]*?\.\s/.test(source)) silent.push(path);
  }
  assertEquals(silent, []);
});

Deno.test("every link in the documentation leads to an existing file and heading", { ignore }, async () => {
  const broken: string[] = [];
  for (const { path, markdown } of await readPages()) {
    const plain = markdown.replace(/^ *```[^]*?^ *```$/gm, "").replace(/`[^`\n]*`/g, "");
    for (const [, link] of plain.matchAll(/\]\(([^)\s]+)(?:\s+"[^"]*")?\)/g)) {
      if (/^[a-z]+:/.test(link)) continue;
      const [file, anchor] = link.split("#");
      const target = file ? new URL(file, new URL(path, root)) : new URL(path, root);
      const exists = await Deno.stat(target).then(() => true, () => false);
      const hasAnchor = !anchor || !exists ||
        readAnchors(await Deno.readTextFile(target)).has(decodeURIComponent(anchor));
      if (!exists || !hasAnchor) broken.push(`${path}: ${link}`);
    }
  }
  assertEquals(broken, []);
});

Deno.test("the documentation stays within its numbers of words", { ignore }, async () => {
  assertEquals(listExcesses(await readPages()), []);
});

Deno.test("every page in docs/ is in one of three folders and is listed in docs/README.md, which README.md links to", {
  ignore,
}, async () => {
  const pages = await readPages();
  const readLinks = (path: string, from = "") => {
    const whole = pages.find((page) => page.path === path)?.markdown ?? "";
    const markdown = whole.slice(whole.indexOf(from));
    const links = [...markdown.matchAll(/\]\(([^)\s#]+\.md)/g)].map(([, link]) => link);
    return links.map((link) => new URL(link, `file:///${path}`).pathname.slice(1));
  };
  const index = "docs/README.md";
  assertEquals(readLinks("README.md").includes(index), true, `README.md does not link to ${index}`);
  const inDocs = pages.map(({ path }) => path).filter((path) => path.startsWith("docs/") && path !== index);
  const onShelf = inDocs.filter((path) => /^docs\/(?:guides|reference|project)\//.test(path));
  assertEquals(onShelf, inDocs, "a page is not in docs/guides, docs/reference or docs/project");
  // The questions before the list link to pages too.
  const listed = readLinks(index, "\n## Guides\n").filter((path) => path.startsWith("docs/"));
  assertEquals(listed.toSorted(), inDocs.toSorted(), `${index} must list each page once`);
});

/** Returns the text of a page before the heading with an anchor. */
function cutAt(markdown: string, anchor: string): string {
  return markdown.slice(0, findHeading(markdown, anchor).index);
}

/** Returns the section below the heading with an anchor, up to the next heading. */
function readSection(markdown: string, anchor: string): string {
  const { index, 0: heading } = findHeading(markdown, anchor);
  const [body] = markdown.slice(index + heading.length).split(/^##/m, 1);
  return heading + body;
}

function findHeading(markdown: string, anchor: string): RegExpExecArray {
  const found = [...markdown.matchAll(/^##+ .+$/gm)].find(([heading]) => readAnchors(heading).has(anchor));
  if (!found) throw new Error(`the page has no heading for #${anchor}`);
  return found;
}

/** Counts the words of the introduction of a page, and of its longest section. */
function countLongest(markdown: string): number {
  const [introduction, ...sections] = markdown.split(/^## /m).map(countWords);
  return introduction + Math.max(...sections);
}

Deno.test(
  "the pages to read before deploying a first production server have at most 8,000 words",
  { ignore },
  async () => {
    const pages = await readPages();
    const read = (path: string) => pages.find((page) => page.path === path)?.markdown ?? "";
    const guide = "docs/guides/production.md";
    const [, section = ""] = /^## What to read first\n([^]*?)^## /m.exec(read(guide)) ?? [];
    const rows = section.split("\n").filter((line) => /^\| \d+\. /.test(line));
    assertEquals(rows.length, 11);
    const counts = rows.map((row) => {
      const [page, end] = [...row.matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => new URL(link, `file:///${guide}`));
      const text = read(page ? page.pathname.slice(1) : guide);
      assertEquals(text === "", false, row);
      const isSection = page?.hash && !end;
      const part = isSection ? readSection(text, page.hash.slice(1)) : end ? cutAt(text, end.hash.slice(1)) : text;
      return [row, row.includes("the section about your database") ? countLongest(part) : countWords(part)] as const;
    });
    const sum = counts.reduce((total, [, words]) => total + words, 0);
    assertEquals(sum <= 8_000, true, `${sum} words: ${counts.map(([row, words]) => `\n${words} ${row}`).join("")}`);
  },
);

Deno.test(
  "README.md leads to a first server, and then to a page with twenty things that has at most 1,500 words, with its code",
  {
    ignore,
  },
  async () => {
    const pages = await readPages();
    const read = (path: string) => pages.find((page) => page.path === path)?.markdown ?? "";
    const path = "docs/guides/twenty-things.md";
    const links = [...read("README.md").matchAll(/(?<!!)\[[^\]]*\]\((docs\/[^)\s]+)\)/g)].map(([, link]) => link);
    assertEquals(links.slice(0, 2), ["docs/guides/getting-started.md", path]);
    const words = countWords(read(path));
    assertEquals(words <= 1500, true, `${words} words`);
    const things = [...read(path).matchAll(/^(\d+)\. \*\*/gm)].map(([, number]) => Number(number));
    assertEquals(things, Array.from({ length: 20 }, (_, at) => at + 1));
    // Each thing links to the page with its details.
    const bare = read(path).split(/^(?=\d+\. \*\*)/m).slice(1).filter((thing) => !/\]\([\w./-]+\.md/.test(thing));
    assertEquals(bare, []);
  },
);

// The page about instances explains why some behaviour holds only within one instance.

Deno.test("the page about instances contains every reason why a behaviour holds only within one instance", () => {
  const page = readFileSync(new URL("../../docs/guides/instances.md", import.meta.url), "utf8").replace(/\s+/g, " ");
  for (const [name, reason] of Object.entries(PER_INSTANCE)) assert(page.includes(reason), name);
});

// Every public option is documented on a page, and its doc comment states its default.

/** Pages for contributors, about the library's source code. */
const INNER = ["architecture", "decisions", "files"].map((name) => `docs/project/${name}.md`);

interface Property {
  readonly name: string;
  readonly optional: boolean;
  readonly tsType?: { readonly kind: string; readonly value?: unknown };
  readonly jsDoc?: { readonly doc?: string };
}

interface Option extends Property {
  /** The names of the type and the option. */
  readonly path: string;
}

async function listOptions(source: string): Promise<readonly Option[]> {
  const args = ["doc", "--json", source];
  const { stdout } = await new Deno.Command("deno", { args, cwd: root, stderr: "null" }).output();
  const { nodes } = JSON.parse(new TextDecoder().decode(stdout));
  const [{ symbols }] = Object.values<
    { symbols: { name: string; declarations: { def?: { properties?: Property[] } }[] }[] }
  >(nodes);
  return symbols.filter(({ name }) => name.endsWith("Options")).flatMap(({ name, declarations }) =>
    declarations.flatMap(({ def }) => def?.properties ?? []).map((each) => ({ ...each, path: `${name}.${each.name}` }))
  );
}

async function readUserPages(): Promise<string> {
  const pages = (await readPages()).filter(({ path }) => path === "README.md" || path.startsWith("docs/"));
  return pages.filter(({ path }) => !INNER.includes(path)).map(({ markdown }) => markdown).join("\n");
}

Deno.test(
  "every public option is on a page, and options that are numbers state their default",
  { ignore },
  async () => {
    const pages = await readUserPages();
    const options = (await Promise.all(Object.values(config.exports).map(listOptions))).flat();
    assert(options.length > 200, `${options.length} options`);
    // Matches the option in code: `name`, `name: …`, `{ name }` or `{ …, name }`.
    const isNamed = ({ name }: Option) => new RegExp(`\`${name}\\b|\\b${name}: |[{,] ${name}\\b`).test(pages);
    assertEquals(
      options.filter((option) => !isNamed(option)).map(({ path }) => path),
      [],
      "document these options on a page",
    );
    const isNumber = ({ tsType }: Option) => tsType?.kind === "keyword" && tsType.value === "number";
    const numbers = options.filter((option) => option.optional && isNumber(option));
    assert(numbers.length > 20, `${numbers.length} numbers`);
    const bare = numbers.filter(({ jsDoc }) => !/default|without/i.test(jsDoc?.doc ?? ""));
    assertEquals(
      bare.map(({ path }) => path),
      [],
      "state the default in the doc comment, or what happens without the option",
    );
  },
);
