// Reads the navigation of the site from docs/README.md, which lists every page.

/** An entry of the side bar: a link, or a group of links. */
export interface NavigationItem {
  readonly text: string;
  /** The path of the page in the repository, such as `docs/guides/tasks.md`. */
  readonly path?: string;
  /** What the list says about the page. */
  readonly description?: string;
  readonly items?: readonly NavigationItem[];
}

interface Link {
  readonly text: string;
  readonly path: string;
}

/** Returns the links to pages in a list item. The paths are relative to the repository. */
function readLinks(item: string): readonly Link[] {
  return [...item.matchAll(/\[([^\]]+)\]\(([^)#\s]+\.md)\)/g)].map(([, text, link]) => ({
    text,
    path: new URL(link, "file:///docs/README.md").pathname.slice(1),
  }));
}

/** Returns the entries for a list item. Link texts such as "v1" depend on their sentence, so titles replace them. */
function readItem(item: string, toTitle: (path: string) => string): readonly NavigationItem[] {
  const links = readLinks(item);
  const [, text, , description] = /^\[([^\]]+)\]\(([^)]+)\): ([^]+)$/.exec(item) ?? [];
  if (links.length === 1 && text) return [{ text, path: links[0].path, description }];
  const items = links.map(({ path }) => ({ text: toTitle(path), path }));
  const [, group] = /^([^[]+):\s/.exec(item) ?? [];
  return group ? [{ text: group, items }] : items;
}

/** Returns the groups of pages on the index page, in its order. `toTitle` returns the title of a page. */
export function readNavigation(index: string, toTitle: (path: string) => string): readonly NavigationItem[] {
  const groups: NavigationItem[] = [];
  for (const section of index.split(/^## /m).slice(1)) {
    const [title] = section.split("\n", 1);
    // A section has a list, or several lists with a line such as "Build:" before each list.
    for (const part of section.slice(title.length).split(/^(?=\w[^\n]*:$)/m)) {
      const [, name] = /^(\w[^\n]*):\n/.exec(part) ?? [];
      const list = [...part.matchAll(/^- ([^]*?)(?=\n- |\n\n|$(?![^]))/gm)].map(([, item]) =>
        item.replace(/\s+/g, " ")
      );
      const items = list.flatMap((item) => readItem(item.trim(), toTitle));
      if (items.length) groups.push({ text: name ?? title, items });
    }
  }
  return groups;
}
