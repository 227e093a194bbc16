/**
 * Scans the HTML document of an app for relative URLs, which a host cannot load, and inserts a script.
 */

/** A start tag, such as `<img src="a.png">`. */
interface Tag {
  /** Name in lower case. */
  readonly name: string;
  /** Offset of `<`. */
  readonly start: number;
  /** Offset after `>`. */
  readonly end: number;
  /** Attribute values by lower-case name. If an attribute occurs twice, browsers use its first value. */
  readonly attributes: ReadonlyMap<string, string>;
}

/** Elements whose content is text for browsers: `<` does not begin a tag there. */
const TEXT = /^(script|style|textarea|title|xmp|iframe|noembed|noframes)$/;

/** Attributes that contain a URL. */
const URLS = ["src", "href", "xlink:href", "poster", "action", "formaction"];

/** Attributes that contain a comma-separated list of URLs, each with a width or density. */
const SETS = ["srcset", "imagesrcset"];

/** Yields the start tags that a browser would find in a document. */
function* scanTags(html: string): Generator<Tag> {
  let at = 0;
  while (true) {
    const start = html.indexOf("<", at);
    if (start < 0) return;
    if (html.startsWith("<!--", start)) {
      at = findEnd(html, /--!?>/g, start + 2);
    } else if (/[a-z]/i.test(html.charAt(start + 1))) {
      const tag = readTag(html, start);
      yield tag;
      if (tag.name === "plaintext") return;
      at = TEXT.test(tag.name) ? findEnd(html, new RegExp(`(?=</${tag.name}[\\s/>])`, "gi"), tag.end) : tag.end;
    } else if (/[/!?]/.test(html.charAt(start + 1))) {
      at = readTag(html, start + 1).end;
    } else {
      at = start + 1;
    }
  }
}

/** Returns the offset after the first match from `from` on, or the length of `html` if nothing matches. */
function findEnd(html: string, pattern: RegExp, from: number): number {
  pattern.lastIndex = from;
  return pattern.exec(html) ? pattern.lastIndex : html.length;
}

/** Reads the tag whose `<` is at `start`. An end tag or declaration begins at `start - 1`. */
function readTag(html: string, start: number): Tag {
  const name = /[^\s/>]*/y;
  name.lastIndex = start + 1;
  const [found = ""] = name.exec(html) ?? [];
  const attributes = new Map<string, string>();
  const part = /[\s/]*(?:(>)|([^\s/>][^\s/>=]*)(?:\s*=\s*(?:(["'])|([^\s>]*)))?)/y;
  part.lastIndex = name.lastIndex;
  for (let match = part.exec(html); match; match = part.exec(html)) {
    const [, end, key = "", quote, plain = ""] = match;
    if (end) return { name: found.toLowerCase(), start, end: part.lastIndex, attributes };
    let value = plain;
    if (quote) {
      const close = html.indexOf(quote, part.lastIndex);
      if (close < 0) break;
      value = html.slice(part.lastIndex, close);
      part.lastIndex = close + 1;
    }
    if (!attributes.has(key.toLowerCase())) attributes.set(key.toLowerCase(), value);
  }
  return { name: found.toLowerCase(), start, end: html.length, attributes };
}

/** Returns the first attribute of a tag that contains a relative URL, and the URL. */
function findRelative({ name, attributes }: Tag): readonly [attribute: string, url: string] | undefined {
  const names = name === "object" ? [...URLS, "data"] : URLS;
  for (const [key, value] of attributes) {
    const urls = names.includes(key) ? [value] : SETS.includes(key) ? value.split(/,\s/) : [];
    const found = urls.map((url) => url.trim()).find((url) => url && !/^(#|[a-z][a-z\d+.-]*:)/i.test(url));
    if (found !== undefined) return [key, found];
  }
}

/**
 * Describes the first relative URL of a document. Returns `undefined` if there is no relative URL, or if a `base`
 * element with an absolute URL makes all URLs absolute.
 */
export function findLoaded(html: string): string | undefined {
  let problem: string | undefined;
  for (const tag of scanTags(html)) {
    const found = findRelative(tag);
    if (tag.name === "base" && !found && /^https?:/i.test(tag.attributes.get("href")?.trim() ?? "")) return;
    if (!found || problem !== undefined) continue;
    const line = html.slice(0, tag.start).split("\n").length;
    const [key, url] = found;
    problem = `line ${line}: <${tag.name} ${key}=${JSON.stringify(url.slice(0, 200))}> refers to a relative URL`;
  }
  return problem;
}

/**
 * Inserts a script before all other scripts of a document, but after `<meta charset>`, because browsers look for `<meta
 * charset>` only in the first 1024 bytes. Adds `<meta charset>` and the doctype if they are missing.
 */
export function addScript(html: string, script: string): string {
  const document = html.replace(/^\uFEFF/, "");
  let head = 0;
  let encoding: number | undefined;
  for (const { name, end, attributes } of scanTags(document)) {
    const isBefore = ["html", "head", "title", "meta"].includes(name);
    if (!isBefore) break;
    if (name === "html" || name === "head") head = end;
    if (name === "meta" && attributes.has("charset")) encoding = end;
  }
  const doctype = /^(?:\s|<!--(?:(?!-->)[\s\S])*-->)*<!doctype[^>]*>/i.exec(document);
  const at = encoding ?? (head || doctype?.[0].length || 0);
  const added = `${encoding === undefined ? '<meta charset="utf-8">' : ""}<script>${script}</script>`;
  const full = document.slice(0, at) + added + document.slice(at);
  return doctype ? full : `<!doctype html>${full}`;
}
