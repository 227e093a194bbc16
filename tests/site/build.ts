// Builds the site: the pages of docs/ and a page about each entry, with VitePress. Run `deno task site --help` for the
// options. The site also has `llms.txt`, and each page as Markdown.
import config from "../../deno.json" with { type: "json" };
import { readTaskOptions } from "../../bench/options.ts";
import { RUNTIMES } from "../release/pages.ts";
import { readRepository } from "../release/repository.ts";
import { findPackages } from "../support/npm_packages.ts";
import { writeApiPages } from "./api_pages.ts";
import { findDeadLinks } from "./links.ts";
import { type NavigationItem, readNavigation } from "./navigation.ts";
import { serveSite } from "./serve.ts";
import { readSitePages, type SitePage, toSitePath } from "./site_pages.ts";

const root = new URL("../../", import.meta.url).pathname;
const here = new URL(".", import.meta.url).pathname;
const PACKAGES = ["vitepress@1.6.4", "mermaid@12.3.0"];

/** How the site is built. */
export interface SiteOptions {
  /** The folder to write, which is replaced. It ends with a slash. */
  readonly folder: string;
  /** The URL of the site. It ends with a slash. Defaults to `/`. */
  readonly url?: string;
  /** The URL of the repository, for links to its files. Defaults to the URL of the Git remote `origin`. */
  readonly repository?: string;
}

/** A built site. */
export interface Site {
  readonly pages: readonly SitePage[];
  /** The dead links, as `PAGE: LINK`. */
  readonly dead: readonly string[];
}

interface Group {
  readonly text: string;
  readonly items: readonly NavigationItem[];
}

/** Returns all groups of pages, with paths in the site. */
function toGroups(index: string, pages: readonly SitePage[], api: readonly SitePage[]): readonly Group[] {
  const toTitle = (path: string) => pages.find((page) => page.path === toSitePath(path))?.title ?? path;
  const toSite = ({ path, items, ...rest }: NavigationItem): NavigationItem => ({
    ...rest,
    ...path !== undefined && { path: toSitePath(path) },
    ...items && { items: items.map(toSite) },
  });
  const groups = readNavigation(index, toTitle).map(({ text, items = [] }) => ({ text, items: items.map(toSite) }));
  const entries = api.map(({ path, title, markdown }) => ({
    text: title,
    path,
    description: /^(?!#)\w[^]*?\.(?=\s)/m.exec(markdown)?.[0].replace(/\s+/g, " "),
  }));
  const at = groups.findIndex(({ text }) => text === "Reference") + 1;
  return groups.toSpliced(at, 0, { text: "Entries", items: entries });
}

/** The group of pages that users do not need. It has a side bar of its own. */
const PROJECT = "About the project";

const toLink = (path: string): string => `/${path.replace(/(?:index)?\.md$/, "")}`;

/** Returns the settings of VitePress that depend on the pages. */
function toSettings(groups: readonly Group[], base: string, repository: string | undefined) {
  const toItem = ({ text, path, items }: NavigationItem): unknown => ({
    text,
    ...path !== undefined && { link: toLink(path) },
    ...items && { items: items.map(toItem), collapsed: true },
  });
  const find = (text: string) => groups.find((group) => group.text === text);
  const first = (group: Group | undefined = groups[0]) => toLink(group.items[0].path ?? "");
  const project = find(PROJECT);
  // VitePress opens the group of the current page.
  const toBar = (groups: readonly Group[]) => groups.map((group) => ({ ...toItem(group) as object, collapsed: true }));
  const bars = listPaths(project?.items ?? []).map((path) => [toLink(path), toBar(project ? [project] : [])]);
  return {
    title: config.name,
    description: "Write typed functions in one file, and serve them to AI applications over MCP.",
    base,
    lastUpdated: false,
    themeConfig: {
      outline: [2, 3],
      externalLinkIcon: false,
      nav: [
        { text: "Guides", link: first() },
        { text: "Reference", link: first(find("Reference")) },
        { text: "API", link: first(find("Entries")) },
        { text: "Project", link: first(project) },
        { text: "All pages", link: "/documentation" },
      ],
      sidebar: { ...Object.fromEntries(bars), "/": toBar(groups.filter((group) => group !== project)) },
      ...repository && { socialLinks: [{ icon: "git", link: repository, ariaLabel: "Repository" }] },
    },
  };
}

const toText = (markdown: string): string => markdown.replace(/\[([^\]]+)\]\([^)]+\)/g, "$1").replace(/\s+/g, " ");

/**
 * Returns the landing page from README.md: the banner has the title, the first two paragraphs and the recording, and
 * the section with the reasons for the library follows the first commands.
 */
function toLanding(markdown: string): string {
  const [, title, what, introduction, commands, rest = ""] =
    /^# (.+)\n\n([^]*?)\n\n([^]*?)\n\n(\|[^]*?)\n\n([^]*)$/.exec(markdown) ?? [];
  const [, text, path] = /^!\[([^\]]*)\]\(([^)]+)\)\n\n/m.exec(rest) ?? [];
  const [reasons] = /^## Why [^]*?(?=^## )/m.exec(rest) ?? [""];
  const links = [...introduction.matchAll(/\[([^\]]+)\]\((?!https?:)([^)]+)\)/g)];
  const actions = links.map(([, text, path], at) => ({
    theme: at ? "alt" : "brand",
    text: text[0].toUpperCase() + text.slice(1),
    link: toLink(path),
  }));
  const [tagline] = introduction.split(/(?<=\.)\s/, 1);
  const image = { src: `/${path}`, alt: text };
  const matter = {
    layout: "home",
    hero: { name: title, text: toText(what), tagline: toText(tagline), image, actions },
  };
  const body = rest.replace(reasons, "").replace(/^!\[[^\]]*\]\([^)]+\)\n\n_[^]*?_\n\n/m, "");
  return `---\n${JSON.stringify(matter)}\n---\n\n${commands}\n\n${reasons}${body}`;
}

/** Replaces each table with a column of commands for each runtime with tabs. */
function toTabs(markdown: string): string {
  return markdown.replace(/^\|[^|\n]*\| Deno +\| Bun +\| Node +\|\n\|[-| ]+\|\n((?:\|.*\n)+)/gm, (_, body: string) => {
    const rows = body.trim().split("\n").map((row) => row.split("|").slice(1, -1).map((cell) => cell.trim()));
    const tabs = RUNTIMES.map((name, at) => {
      const lines = rows.flatMap(([label, ...cells]) => [
        ...rows.length > 1 ? [`# ${label}`] : [],
        ...[...cells[at].matchAll(/`([^`]+)`/g)].map(([, command]) => command),
      ]);
      return `\`\`\`sh [${name}]\n${lines.join("\n")}\n\`\`\``;
    });
    return `::: code-group\n\n${tabs.join("\n\n")}\n\n:::\n`;
  });
}

/** Returns the pages in the form of llmstxt.org: a list with a short description of each page. */
function toLlmsText(groups: readonly Group[], home: SitePage, url: string): string {
  const list = (items: readonly NavigationItem[]): readonly string[] =>
    items.flatMap(({ text, path, description, items }) => [
      ...path === undefined ? [] : [`- [${text}](${url}${path})${description ? `: ${description}` : ""}`],
      ...items ? list(items) : [],
    ]);
  const [, what = ""] = /^# .+\n\n([^]*?)\n\n/.exec(home.markdown) ?? [];
  const parts = groups.map(({ text, items }) => `## ${text}\n\n${list(items).join("\n")}`);
  return [`# ${config.name}`, `> ${what.replace(/\s+/g, " ")}`, ...parts].join("\n\n") + "\n";
}

/** Returns all pages as one text, in the order of the navigation. */
function toLlmsFullText(pages: readonly SitePage[], url: string): string {
  return pages.map(({ path, markdown }) => `<!-- ${url}${path} -->\n\n${markdown.trim()}\n`).join("\n");
}

async function write(path: string, text: string): Promise<void> {
  await Deno.mkdir(path.replace(/\/[^/]*$/, ""), { recursive: true });
  await Deno.writeTextFile(path, text);
}

async function copy(from: string, to: string): Promise<void> {
  await Deno.mkdir(to.replace(/\/[^/]*$/, ""), { recursive: true });
  await Deno.copyFile(from, to);
}

/** Returns the path of the site's URL. */
function toBase(url = "/"): string {
  const { pathname } = new URL(url, "http://localhost");
  if (!pathname.endsWith("/")) throw new Error(`Cannot use the URL ${url}: its path needs a slash at the end; add it`);
  return pathname;
}

/** Builds the site. Throws if VitePress or its packages fail. */
export async function buildSite({ folder, url = "/", repository }: SiteOptions): Promise<Site> {
  const found = await findPackages("site", PACKAGES);
  if ("missing" in found) throw new Error(`Cannot build the site: ${found.missing}`);
  const base = toBase(url);
  const link = repository ?? await readRepository(root);
  const [{ pages: guides, pictures }, api] = await Promise.all([readSitePages(link), writeApiPages()]);
  const groups = toGroups(await Deno.readTextFile(`${root}docs/README.md`), guides, api);
  const order = ["index.md", "documentation.md", ...listPaths(groups)];
  const pages = [...guides, ...api].toSorted((a, b) => order.indexOf(a.path) - order.indexOf(b.path));
  const made = await Deno.makeTempDir({ prefix: "mcp-site-" });
  try {
    await Deno.symlink(`${found.folder}/node_modules`, `${made}/node_modules`);
    for (const name of ["config.js", "theme/index.js", "theme/style.css"]) {
      await copy(`${here}theme/${name.replace(/^theme\//, "")}`, `${made}/.vitepress/${name}`);
    }
    await write(`${made}/.vitepress/site.json`, JSON.stringify(toSettings(groups, base, link)));
    await write(`${made}/package.json`, '{ "type": "module" }');
    for (const { path, markdown } of pages) {
      await write(`${made}/${path}`, toTabs(path === "index.md" ? toLanding(markdown) : markdown));
    }
    for (const path of pictures) await copy(root + path, `${made}/${toSitePath(path)}`);
    const { success, stdout, stderr } = await new Deno.Command("node", {
      args: ["node_modules/vitepress/bin/vitepress.js", "build", ".", "--outDir", folder],
      cwd: made,
      env: { NO_COLOR: "1" },
    }).output();
    if (!success) {
      const text = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes)).join("\n");
      throw new Error(`Cannot build the site: VitePress fails\n${text}`);
    }
  } finally {
    await Deno.remove(made, { recursive: true });
  }
  for (const { path, markdown } of pages) await write(folder + path, markdown);
  for (const path of pictures) await copy(root + path, folder + toSitePath(path));
  await write(`${folder}llms.txt`, toLlmsText(groups, pages[0], url));
  await write(`${folder}llms-full.txt`, toLlmsFullText(pages, url));
  return { pages, dead: await findDeadLinks(folder, base) };
}

const listPaths = (items: readonly NavigationItem[]): readonly string[] =>
  items.flatMap(({ path, items }) => [...path === undefined ? [] : [path], ...items ? listPaths(items) : []]);

if (import.meta.main) {
  const options = readTaskOptions(Deno.args, {
    name: "site",
    summary: "Builds the site with the documentation into dist/site.",
    values: {
      "--url URL": "The URL of the site, which ends with a slash; default: /",
      "--repository URL": "The repository, for links to its files; default: the Git remote origin",
    },
    flags: { "--serve": "Serve the built site on this machine" },
  });
  const folder = `${root}dist/site/`;
  const { pages, dead } = await buildSite({
    folder,
    url: options.get("--url"),
    repository: options.get("--repository"),
  });
  if (dead.length) {
    console.error(`Cannot publish the site: ${dead.length} links are dead\n${dead.join("\n")}`);
    Deno.exit(1);
  }
  console.log(`Wrote ${pages.length} pages into ${folder}`);
  if (options.has("--serve")) console.log(`Listening at ${serveSite(folder, toBase(options.get("--url"))).url}`);
}
