// Checks the links of built pages: every link within the site leads to an existing file, and to an existing anchor.

/** Returns the paths of all files in a folder, relative to it. The folder ends with a slash. */
export async function listFiles(folder: string, under = ""): Promise<readonly string[]> {
  const paths: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder + under)) {
    if (isDirectory) paths.push(...await listFiles(folder, `${under}${name}/`));
    else paths.push(under + name);
  }
  return paths.sort();
}

const decode = (text: string) => text.replaceAll("&quot;", '"').replaceAll("&lt;", "<").replaceAll("&amp;", "&");

/** Returns the dead links of the site in `folder`, which ends with a slash, as `PAGE: LINK`. `base` is its URL path. */
export async function findDeadLinks(folder: string, base: string): Promise<readonly string[]> {
  const files = await listFiles(folder);
  const known = new Set(files);
  const pages = files.filter((path) => path.endsWith(".html"));
  const contents = new Map<string, string>();
  for (const path of pages) contents.set(path, await Deno.readTextFile(folder + path));
  const anchors = new Map(
    [...contents].map((
      [path, html],
    ) => [path, new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => decode(id)))]),
  );
  const dead: string[] = [];
  for (const [path, html] of contents) {
    const here = new URL(`http://site${base}${path}`);
    for (const [, attribute] of html.matchAll(/\s(?:href|src)="([^"]*)"/g)) {
      const link = decode(attribute);
      const target = URL.canParse(link, here) ? new URL(link, here) : undefined;
      if (target && target.origin !== here.origin) continue;
      const isWithin = target?.pathname.startsWith(base);
      const named = isWithin ? decodeURIComponent(target?.pathname.slice(base.length) ?? "") : undefined;
      const file = named === undefined ? "" : named === "" || named.endsWith("/") ? `${named}index.html` : named;
      const anchor = decodeURIComponent(target?.hash.slice(1) ?? "");
      if (!known.has(file) || (anchor && anchors.get(file)?.has(anchor) === false)) dead.push(`${path}: ${link}`);
    }
  }
  return [...new Set(dead)];
}
