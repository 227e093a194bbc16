/**
 * The HTML document of an app: finds relative URLs, which it could not load, and inserts a script.
 *
 * @module
 */

/** A start tag. */
interface Tag {
  /** Name in lower case. */
  readonly name: string;
  /** Offset of `<`. */
  readonly start: number;
  /** Offset after `>`. */
  readonly end: number;
  /** Attributes by name in lower case. The first one of a name counts. */
  readonly attributes: ReadonlyMap<string, string>;
}

/** Elements whose content is text, so that tags in it do not count. */
const TEXT = /^(script|style|textarea|title|xmp|iframe|noembed|noframes)$/;

/** Attributes that hold a URL. */
const URLS = ["src", "href", "xlink:href", "poster", "action", "formaction"];

/** Attributes that hold URLs with sizes. */
const SETS = ["srcset", "imagesrcset"];

/** Finds the start tags of a document, as a browser does. */
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

/** Returns the offset after the first match. */
function findEnd(html: string, pattern: RegExp, from: number): number {
  pattern.lastIndex = from;
  return pattern.exec(html) ? pattern.lastIndex : html.length;
}

/** Reads the tag whose name begins after `start`. */
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

/** Returns the first URL of a tag that is relative, with its attribute. */
function findRelative({ name, attributes }: Tag): readonly [attribute: string, url: string] | undefined {
  const names = name === "object" ? [...URLS, "data"] : URLS;
  for (const [key, value] of attributes) {
    const urls = names.includes(key) ? [value] : SETS.includes(key) ? value.split(/,\s/) : [];
    const found = urls.map((url) => url.trim()).find((url) => url && !/^(#|[a-z][a-z\d+.-]*:)/i.test(url));
    if (found !== undefined) return [key, found];
  }
}

/**
 * Returns what a document would load from beside it, which it does not have at a host. URLs are relative to a `base`
 * element with an absolute URL, if there is one.
 */
export function findLoaded(html: string): string | undefined {
  let problem: string | undefined;
  for (const tag of scanTags(html)) {
    const found = findRelative(tag);
    if (tag.name === "base" && !found && /^https?:/i.test(tag.attributes.get("href")?.trim() ?? "")) return;
    if (!found || problem !== undefined) continue;
    const line = html.slice(0, tag.start).split("\n").length;
    const [key, url] = found;
    problem = `line ${line}: <${tag.name} ${key}=${JSON.stringify(url.slice(0, 200))}> is relative`;
  }
  return problem;
}

/**
 * Puts a script before all others of a document. It stands after the declaration of the encoding, which must be near the
 * beginning, and that is added if there is none.
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
  const doctype = /^(?:\s|<!--[\s\S]*?-->)*<!doctype[^>]*>/i.exec(document);
  const at = encoding ?? (head || doctype?.[0].length || 0);
  const added = `${encoding === undefined ? '<meta charset="utf-8">' : ""}<script>${script}</script>`;
  const full = document.slice(0, at) + added + document.slice(at);
  return doctype ? full : `<!doctype html>${full}`;
}
