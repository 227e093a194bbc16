// Turns the pages of the repository into pages of the site: changes their paths and their links.
import { readPages } from "../release/pages.ts";

const root = new URL("../../", import.meta.url);

/** A page of the site. */
export interface SitePage {
  /** The path in the site, such as `guides/tasks.md`. */
  readonly path: string;
  readonly title: string;
  readonly markdown: string;
}

/** Returns the path in the site of a page or a picture of the repository. */
export function toSitePath(path: string): string {
  if (path === "README.md") return "index.md";
  if (path === "docs/README.md") return "documentation.md";
  return path.startsWith("docs/") ? path.slice("docs/".length) : path.toLowerCase();
}

/** Returns the title of a page: the text of its first heading. */
export const readTitle = (markdown: string): string => /^# (.+)$/m.exec(markdown)?.[1].replaceAll("`", "") ?? "";

/** Returns the relative link from one path of the site to another. */
export function toRelative(from: string, to: string): string {
  const above = from.split("/").slice(0, -1);
  const steps = to.split("/");
  while (above.length && above[0] === steps[0]) {
    above.shift();
    steps.shift();
  }
  return above.map(() => "../").join("") + steps.join("/");
}

/** The pages of the repository as pages of the site, and the pictures that they show. */
export interface SiteContent {
  readonly pages: readonly SitePage[];
  /** The paths of the pictures in the repository. */
  readonly pictures: ReadonlySet<string>;
}

/**
 * Reads the pages of the repository. Links to other files, such as examples, lead to `repository`. Without a
 * repository, they become text.
 */
export async function readSitePages(repository?: string): Promise<SiteContent> {
  const pages = await readPages();
  const known = new Set(pages.map(({ path }) => path));
  const pictures = new Set<string>();
  const changeLink = async (path: string, link: string): Promise<string | undefined> => {
    if (/^(?:[a-z]+:|#)/.test(link)) return link;
    const { pathname, hash } = new URL(link, `file:///${path}`);
    const target = decodeURIComponent(pathname.slice(1));
    const info = await Deno.stat(new URL(target, root)).catch(() => undefined);
    if (!info) return link; // a dead link, which the check of the built site reports
    const isPicture = /\.(?:png|svg)$/.test(target);
    if (isPicture) pictures.add(target);
    if (isPicture || known.has(target)) return toRelative(toSitePath(path), toSitePath(target)) + hash;
    return repository && `${repository}/${info.isDirectory ? "tree" : "blob"}/HEAD/${target}${hash}`;
  };
  const changed = pages.map(async ({ path, markdown }) => {
    const links = new Map<string, string | undefined>();
    for (const [, link] of markdown.matchAll(LINK)) links.set(link, await changeLink(path, link));
    return { path: toSitePath(path), title: readTitle(markdown), markdown: changeLinks(markdown, links) };
  });
  return { pages: await Promise.all(changed), pictures };
}

const LINK = /(?<=\]\()([^)\s]+)(?=\)|\s+"[^"]*"\))/g;

/** Replaces the targets of links outside of code blocks. A link without a new target becomes its text. */
function changeLinks(markdown: string, links: ReadonlyMap<string, string | undefined>): string {
  const change = (text: string) =>
    text.replace(/^<!--[^]*?-->\n/gm, "").replace(
      /\[((?:[^\][]|\[[^\]]*\])*)\]\(([^)\s]+)(\s+"[^"]*")?\)/g,
      (whole, text: string, link: string, title = "") => {
        if (!links.has(link)) return whole;
        const target = links.get(link);
        return target === undefined ? text : `[${text}](${target}${title})`;
      },
    );
  return markdown.split(/(^ *```[^]*?^ *```$)/m).map((part, at) => at % 2 ? part : change(part)).join("");
}
