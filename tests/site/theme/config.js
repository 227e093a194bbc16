// Configures VitePress. `build.ts` copies this folder beside the generated pages, with the settings in `site.json`.
import { readFileSync } from "node:fs";

const site = JSON.parse(readFileSync(new URL("site.json", import.meta.url), "utf8"));

/** Returns the anchor of a heading as GitHub does, because the links of the pages also work on GitHub. */
const slugify = (text) => text.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").trim().replaceAll(" ", "-");

/**
 * The factors by which the search multiplies the scores of pages: guides come before the reference, and the reference
 * comes before the entries and the pages about the project. Pages that lead to other pages come late.
 */
const RANKS = [
  [/\/guides\/(?:production|coming-from)/, 0.8],
  [/\/guides\//, 2.2],
  [/\/reference\//, 1.2],
  [/\/(?:api|project)\//, 0.2],
  [/^/, 0.1],
];
const SMALL_WORDS = ["a", "an", "and", "do", "for", "how", "i", "in", "of", "the", "to", "with"];

// VitePress passes functions to the browser as text, so they cannot use names of this file.
const searchOptions = {
  fuzzy: (term) => term.length > 5 ? 0.15 : false,
  prefix: true,
  boost: { title: 6, titles: 3, text: 1 },
  processTerm: new Function(
    "term",
    `const word = term.toLowerCase(); return ${JSON.stringify(SMALL_WORDS)}.includes(word) ? null : word;`,
  ),
  // A section without sections above it has the title of the page.
  boostDocument: new Function(
    "id",
    "_",
    "{ titles }",
    `const [, factor] = [${RANKS.map(([of, by]) => `[${of}, ${by}]`)}].find(([of]) => of.test(id));
    return titles.length ? factor : 1.8 * factor;`,
  ),
};

export default {
  ...site,
  themeConfig: {
    ...site.themeConfig,
    search: { provider: "local", options: { miniSearch: { searchOptions } } },
    notFound: {
      title: "There is no such page",
      quote: "The page may have a new address. Search for it with Ctrl K, or begin at the start page.",
      linkText: "Go to the start page",
      linkLabel: "Go to the start page",
    },
  },
  lang: "en",
  head: [["link", { rel: "icon", href: "data:," }]], // without it, browsers request /favicon.ico
  ignoreDeadLinks: "localhostLinks",
  markdown: {
    html: false, // pages have no HTML, but types such as Promise<void> in their text
    anchor: { slugify },
    languageAlias: { caddyfile: "nginx" },
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    config(md) {
      const { fence, text, code_inline: inline } = md.renderer.rules;
      md.renderer.rules.fence = (tokens, at, ...rest) => {
        const { info, content } = tokens[at];
        if (info.trim() !== "mermaid") return fence(tokens, at, ...rest);
        return `<Diagram source="${encodeURIComponent(content)}" />`;
      };
      // Vue would evaluate {{ … }} in text and in inline code.
      md.renderer.rules.code_inline = (tokens, at, ...rest) => {
        tokens[at].attrSet("v-pre", "");
        return inline(tokens, at, ...rest);
      };
      md.renderer.rules.text = (...given) => text(...given).replaceAll("{{", "&#123;&#123;");
    },
  },
};
