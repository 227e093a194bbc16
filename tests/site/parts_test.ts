// Tests the parts from which the site is built: the navigation, the links of pages, and the check for dead links.
import { assertEquals } from "@std/assert";
import { withFolder } from "../support/folder.ts";
import { readPages } from "../release/pages.ts";
import { toPackageReadme, toWebUrl } from "../release/repository.ts";
import { findDeadLinks } from "./links.ts";
import { type NavigationItem, readNavigation } from "./navigation.ts";
import { shortenPauses, toAnimation } from "./terminal.ts";
import { readSitePages, toRelative } from "./site_pages.ts";

const ignore = typeof Deno === "undefined"; // Only Deno builds the site.

const listPaths = (items: readonly NavigationItem[]): readonly string[] =>
  items.flatMap(({ path, items }) => [...path === undefined ? [] : [path], ...items ? listPaths(items) : []]);

Deno.test("the navigation of the site lists every page except the landing page and the index", { ignore }, async () => {
  const pages = await readPages();
  const index = pages.find(({ path }) => path === "docs/README.md")?.markdown ?? "";
  const others = pages.map(({ path }) => path).filter((path) => !path.endsWith("README.md"));
  assertEquals(listPaths(readNavigation(index, (path) => path)).toSorted(), others.toSorted());
});

Deno.test("the navigation has a group for each list, and an item with several links becomes a group or several items", {
  ignore,
}, () => {
  const index = `# Documentation

## Guides

Start:

- [One](guides/one.md): the first
  page
- From [v1](guides/v1.md) or [v2](guides/v2.md)

Protect:

- Providers: [A](guides/a.md),
  [B](guides/b.md#section)

## About

- [Changes](../CHANGELOG.md)
`;
  assertEquals(readNavigation(index, (path) => `title of ${path}`), [
    {
      text: "Start",
      items: [
        { text: "One", path: "docs/guides/one.md", description: "the first page" },
        { text: "title of docs/guides/v1.md", path: "docs/guides/v1.md" },
        { text: "title of docs/guides/v2.md", path: "docs/guides/v2.md" },
      ],
    },
    {
      text: "Protect",
      items: [{ text: "Providers", items: [{ text: "title of docs/guides/a.md", path: "docs/guides/a.md" }] }],
    },
    { text: "About", items: [{ text: "title of CHANGELOG.md", path: "CHANGELOG.md" }] },
  ]);
});

Deno.test(
  "links to files that are not pages lead to the repository, and become text if there is none",
  { ignore },
  async () => {
    const read = async (repository?: string) => {
      const { pages, pictures } = await readSitePages(repository);
      return { text: pages.map(({ markdown }) => markdown).join("\n"), pictures };
    };
    const known = await read("https://git.example.com/x/mcp");
    assertEquals(known.text.includes("](https://git.example.com/x/mcp/tree/HEAD/src/core)"), true);
    assertEquals(known.text.includes("](https://git.example.com/x/mcp/blob/HEAD/bench/README.md#starts)"), true);
    assertEquals(/\]\(https:[^\s)]*\/bench\/README\.md#[\w-]+\s"W1 /.test(known.text), true);
    assertEquals(known.pictures.has("docs/guides/inspector.png"), true);
    const unknown = await read();
    assertEquals(/\]\([./]*(?:src|examples|bench)\/[^)]*(?<!\.svg)\)/.test(unknown.text), false);
    assertEquals(unknown.text.includes("](undefined)"), false);
  },
);

Deno.test("a remote of Git becomes the URL of its web page", () => {
  const url = "https://git.example.com/x/mcp";
  for (const remote of [url, `${url}.git\n`, "git@git.example.com:x/mcp.git", "ssh://git@git.example.com/x/mcp.git"]) {
    assertEquals(toWebUrl(remote), url);
  }
  assertEquals(toRelative("guides/a.md", "reference/b.md"), "../reference/b.md");
  assertEquals(toRelative("guides/a.md", "guides/b.md"), "b.md");
  assertEquals(toRelative("index.md", "guides/b.md"), "guides/b.md");
});

Deno.test("a link to a missing file, a missing anchor or a place outside of the site is dead", { ignore }, async () => {
  const links = ["guides/b.html", "guides/b.html#there", "/base/guides/b.html", "#here", "https://example.com/x", ""];
  const dead = ["guides/c.html", "guides/b.html#gone", "/guides/b.html", "#gone"];
  const list = [...links, ...dead].map((link) => `<a href="${link}">link</a>`).join("");
  const files = {
    "guides/b.html": '<h2 id="there">There</h2><img src="a.png">',
    "index.html": `<h1 id="here">Here</h1>${list}`,
  };
  await withFolder(files, async (folder) => {
    assertEquals(await findDeadLinks(`${folder}/`, "/base/"), [
      "guides/b.html: a.png",
      ...dead.map((link) => `index.html: ${link}`),
    ]);
  });
});

Deno.test("the links and pictures in README.md of a package lead to the repository", () => {
  const readme = "[a](docs/a.md#b) ![c](d.svg) [e](https://e.example) [f](#f)";
  const changed =
    "[a](https://git.example.com/x/mcp/blob/HEAD/docs/a.md#b) ![c](https://git.example.com/x/mcp/raw/HEAD/d.svg) " +
    "[e](https://e.example) [f](#f)";
  assertEquals(toPackageReadme(readme, "https://git.example.com/x/mcp"), changed);
  assertEquals(toPackageReadme(readme, undefined), readme);
});

Deno.test("a recording shows each frame after the other, and long pauses are shortened", () => {
  const frames = shortenPauses(
    [{ at: 0, lines: ["$ a <b>"] }, { at: 9000, lines: ["c"] }, { at: 9500, lines: ["d"] }],
    3000,
  );
  assertEquals(frames.map(({ at }) => at), [0, 3000, 3500]);
  const svg = toAnimation(frames, "A & B");
  assertEquals(svg.includes("<title>A &amp; B</title>") && svg.includes("$ a &lt;b>"), true);
  assertEquals([...svg.matchAll(/animation: f(\d) 8500ms/g)].map(([, frame]) => frame), ["0", "1", "2"]);
  // A viewer that does not animate shows only the last frame.
  assertEquals([...svg.matchAll(/<g class="f(\d)" visibility="hidden">/g)].map(([, frame]) => frame), ["0", "1"]);
});

Deno.test("the recording of examples/cluster shows a killed instance, and a task with lines of two instances", {
  ignore,
}, async () => {
  const svg = await Deno.readTextFile(new URL("../../docs/guides/resumed-task.svg", import.meta.url));
  const last = svg.slice(svg.lastIndexOf("<g "));
  const [, killed] = /the process of (instance \d) on \w+ is killed/.exec(last) ?? [];
  const by = [...last.matchAll(/ordered by (instance \d)/g)].map(([, instance]) => instance);
  assertEquals([by.length, by[0], by[3] === killed], [4, killed, false]);
});
