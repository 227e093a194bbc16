/**
 * The HTML document of an app: finds relative URLs, which a host cannot load, and inserts a script.
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
  /** Attributes by name in lower case. If a name occurs twice, the first attribute counts. */
  readonly attributes: ReadonlyMap<string, string>;
}

/** Elements whose content is text. Tags within them are not tags. */
const TEXT = /^(script|style|textarea|title|xmp|iframe|noembed|noframes)$/;

/** Attributes that contain a URL. */
const URLS = ["src", "href", "xlink:href", "poster", "action", "formaction"];

/** Attributes that contain several URLs with sizes. */
const SETS = ["srcset", "imagesrcset"];

/** Finds the start tags of a document in the way that browsers do. */
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

/** Returns the first relative URL of a tag, with its attribute. */
function findRelative({ name, attributes }: Tag): readonly [attribute: string, url: string] | undefined {
  const names = name === "object" ? [...URLS, "data"] : URLS;
  for (const [key, value] of attributes) {
    const urls = names.includes(key) ? [value] : SETS.includes(key) ? value.split(/,\s/) : [];
    const found = urls.map((url) => url.trim()).find((url) => url && !/^(#|[a-z][a-z\d+.-]*:)/i.test(url));
    if (found !== undefined) return [key, found];
  }
}

/**
 * Describes the first relative URL of a document, which a host could not load. If the document has a `base` element
 * with an absolute URL, its URLs are not relative. Returns `undefined` if there is no relative URL.
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
 * Adds a script before all other scripts of a document. The script comes after the declaration of the encoding, because
 * browsers look for that declaration only near the beginning. A missing declaration is added.
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
