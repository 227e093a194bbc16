/**
 * Returns the normal form of a URI, so that equivalent URIs are equal: a lower-case scheme and host, upper-case percent
 * encodings, no percent encodings of unreserved characters, and no dot segments. Text that is not a URI stays unchanged.
 *
 * @see RFC 3986, section 6.2.2 (Syntax-Based Normalization)
 */
export function normalizeUri(uri: string): string {
  const [, scheme, authority, path = "", rest = ""] = PARTS.exec(uri) ?? [];
  if (scheme === undefined) return uri;
  const host = authority && lowerHost(normalizeCodes(authority));
  const clean = normalizeCodes(path);
  return `${scheme.toLowerCase()}${host ?? ""}${clean.startsWith("/") ? removeDots(clean) : clean}${
    normalizeCodes(rest)
  }`;
}

/** Matches the scheme, the authority, the path, and the query with the fragment of a URI. */
const PARTS = /^([a-z][a-z\d+.-]*:)(\/\/[^/?#]*)?([^?#]*)(.*)$/is;

function normalizeCodes(text: string): string {
  return text.replace(/%[\da-f]{2}/gi, (code) => {
    const character = String.fromCharCode(parseInt(code.slice(1), 16));
    return /[\w.~-]/.test(character) ? character : code.toUpperCase();
  });
}

/** Converts the host in an authority to lower case, but not its percent encodings. */
function lowerHost(authority: string): string {
  const at = authority.lastIndexOf("@") + 1;
  const host = authority.slice(at).toLowerCase().replace(/%[\da-f]{2}/g, (code) => code.toUpperCase());
  return authority.slice(0, at) + host;
}

function removeDots(path: string): string {
  const kept: string[] = [];
  const segments = path.split("/").slice(1);
  for (const [i, segment] of segments.entries()) {
    const isDot = segment === "." || segment === "..";
    if (segment === "..") kept.pop();
    if (!isDot) kept.push(segment);
    // A path that ends with a dot segment ends with a slash.
    else if (i === segments.length - 1) kept.push("");
  }
  return `/${kept.join("/")}`;
}
