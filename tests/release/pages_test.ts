// Pages of the documentation: generated parts are up to date, and every link works.
import { assertEquals } from "@std/assert";
import { renderPage } from "./map.ts";
import { readPages } from "./pages.ts";

const root = new URL("../../", import.meta.url);
const ignore = typeof Deno === "undefined"; // files are read with Deno

/** The anchors of a page: its headings, as GitHub converts them. */
function readAnchors(markdown: string): ReadonlySet<string> {
  const plain = markdown.replace(/^```[^]*?^```$/gm, "");
  const headings = [...plain.matchAll(/^#+ (.+)$/gm)].map(([, text]) => text);
  return new Set(
    headings.map((text) => text.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").trim().replaceAll(" ", "-")),
  );
}

Deno.test({
  name: "the map in docs/architecture.md matches the comments of the files",
  ignore,
  async fn() {
    const { page, wanted } = await renderPage();
    // The formatter aligns tables.
    const toRows = (text: string) => text.replace(/ +/g, " ").replace(/-{3,}/g, "---");
    assertEquals(toRows(page), toRows(wanted), "run `deno task docs:map`");
  },
});

Deno.test({
  name: "every link of the documentation leads to an existing file and heading",
  ignore,
  async fn() {
    const broken: string[] = [];
    for (const { path, markdown } of await readPages()) {
      const plain = markdown.replace(/^ *```[^]*?^ *```$/gm, "").replace(/`[^`\n]*`/g, "");
      for (const [, link] of plain.matchAll(/\]\(([^)\s]+)\)/g)) {
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
  },
});

Deno.test({
  name: "README.md is a landing page of at most 200 lines, and every page of docs/ is linked from it",
  ignore,
  async fn() {
    const pages = await readPages();
    const readme = pages.find(({ path }) => path === "README.md")?.markdown ?? "";
    assertEquals(readme.split("\n").length <= 200, true, `README.md has ${readme.split("\n").length} lines`);
    const reached = new Set<string>();
    const queue = ["README.md"];
    for (const path of queue) {
      const page = pages.find((each) => each.path === path);
      if (!page || reached.has(path)) continue;
      reached.add(path);
      for (const [, link] of page.markdown.matchAll(/\]\(([^)\s#]+\.md)/g)) {
        queue.push(new URL(link, `file:///${path}`).pathname.slice(1));
      }
    }
    assertEquals(pages.map(({ path }) => path).filter((path) => !reached.has(path)), []);
  },
});
