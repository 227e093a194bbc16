// Configures VitePress. `build.ts` copies this folder beside the generated pages, with the settings in `site.json`.
import { readFileSync } from "node:fs";

const site = JSON.parse(readFileSync(new URL("site.json", import.meta.url), "utf8"));

/** Returns the anchor of a heading as GitHub does, because the links of the pages also work on GitHub. */
const slugify = (text) => text.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").trim().replaceAll(" ", "-");

export default {
  ...site,
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
