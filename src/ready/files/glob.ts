/**
 * Glob patterns: `*` and `?` match within a name, `**` matches any folders, and `{a,b}` matches `a` or `b`.
 */

/** Tests whether a path matches. The path is relative to the base folder of the pattern. */
export type Matcher = (path: string) => boolean;

// Maximum number of patterns to which the braces expand. Each pair of braces multiplies the number of patterns.
const MAX_PATTERNS = 100;

export interface MatcherOptions {
  /** Whether wildcards match a leading dot of a name. Defaults to `false`. */
  readonly matchDots?: boolean;
}

/**
 * Compiles a pattern to a function. The time of a match grows only with the length of the path times the length of the
 * pattern, so that a server can accept patterns from clients.
 *
 * @throws {TypeError} if the braces are unbalanced, or expand to too many patterns.
 */
export function toMatcher(pattern: string, { matchDots = false }: MatcherOptions = {}): Matcher {
  const patterns = expandBraces(pattern).map((each) => each.split("/").filter((part) => part && part !== "."));
  return (path) => patterns.some((parts) => matchPath(parts, path.split("/"), matchDots));
}

/** Returns the leading folders of a pattern that contain no wildcard. */
export function toBaseFolder(pattern: string): string {
  const parts = pattern.split("/");
  const wildcard = parts.findIndex((part) => /[*?{]/.test(part));
  return parts.slice(0, wildcard < 0 ? -1 : wildcard).join("/");
}

/** Returns a pattern relative to its base folder. */
export function toRelativePattern(pattern: string): string {
  return pattern.slice(toBaseFolder(pattern).length).replace(/^\//, "");
}

export function isPattern(text: string): boolean {
  return /[*?{]/.test(text);
}

function expandBraces(pattern: string): string[] {
  const patterns: string[] = [];
  const queue = [pattern];
  for (const each of queue) {
    const [whole, before, inner, after] = /^([^{]*)\{([^{}]*)\}(.*)$/s.exec(each) ?? [];
    if (whole !== undefined) queue.push(...inner.split(",").map((choice) => before + choice + after));
    else if (/[{}]/.test(each)) {
      throw new TypeError(`the braces of ${pattern} are nested or unbalanced; write {a,b} without nesting`);
    } else patterns.push(each);
    if (queue.length > 2 * MAX_PATTERNS) {
      throw new TypeError(`the braces of ${pattern} expand to more than ${MAX_PATTERNS} patterns; use fewer braces`);
    }
  }
  return patterns;
}

// Tests whether the segments of a path match. `matchPath` and `matchName` backtrack only to the last star, because
// backtracking to an earlier star cannot find a match that the last star does not find. The time therefore grows only
// with the length of the path times the length of the pattern.
function matchPath(parts: readonly string[], names: readonly string[], matchDots: boolean): boolean {
  const isVisible = (name: string) => matchDots || !name.startsWith(".");
  let [i, j, star, mark] = [0, 0, -1, 0];
  while (j < names.length) {
    if (parts[i] === "**") {
      star = i++;
      mark = j;
    } else if (i < parts.length && (isVisible(names[j]) || parts[i].startsWith(".")) && matchName(parts[i], names[j])) {
      i++;
      j++;
    } else if (star >= 0 && isVisible(names[mark])) {
      i = star + 1;
      j = ++mark;
    } else return false;
  }
  while (parts[i] === "**") i++;
  return i === parts.length;
}

function matchName(pattern: string, name: string): boolean {
  let [i, j, star, mark] = [0, 0, -1, 0];
  while (j < name.length) {
    if (pattern[i] === "*") {
      star = i++;
      mark = j;
    } else if (i < pattern.length && (pattern[i] === "?" || pattern[i] === name[j])) {
      i++;
      j++;
    } else if (star >= 0) {
      i = star + 1;
      j = ++mark;
    } else return false;
  }
  while (pattern[i] === "*") i++;
  return i === pattern.length;
}
