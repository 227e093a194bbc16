/**
 * Patterns of paths: `*` and `?` within a name, `**` for any folders, `{a,b}` for either.
 *
 * @module
 */

/** Whether a path, seen from where the pattern is, fits it. */
export type Matcher = (path: string) => boolean;

// Braces multiply.
const MOST_FORMS = 100;

/** How a pattern is read. */
export interface MatcherOptions {
  /** Whether `*` and its like stand for a dot at the beginning of a name too. */
  readonly dots?: boolean;
}

/**
 * Makes a function that matches. Time grows with the length of the path times that of the pattern: what a client sends
 * may be one.
 *
 * @throws {TypeError} for braces that do not close or stand for more than a hundred patterns.
 */
export function toMatcher(pattern: string, { dots = false }: MatcherOptions = {}): Matcher {
  const forms = toForms(pattern).map((form) => form.split("/").filter((part) => part && part !== "."));
  return (path) => forms.some((form) => fits(form, path.split("/"), dots));
}

/** The folders that a pattern begins with, before anything in it can vary. */
export function toBase(pattern: string): string {
  const parts = pattern.split("/");
  const varies = parts.findIndex((part) => /[*?{]/.test(part));
  return parts.slice(0, varies < 0 ? -1 : varies).join("/");
}

/** Whether a text is a pattern rather than a path. */
export function isPattern(text: string): boolean {
  return /[*?{]/.test(text);
}

function toForms(pattern: string): string[] {
  const forms: string[] = [];
  const waiting = [pattern];
  for (const form of waiting) {
    const [whole, before, inner, after] = /^([^{]*)\{([^{}]*)\}(.*)$/s.exec(form) ?? [];
    if (whole !== undefined) waiting.push(...inner.split(",").map((each) => before + each + after));
    else if (/[{}]/.test(form)) {
      throw new TypeError(`the braces of ${pattern} do not match; write {a,b}, one level deep`);
    } else forms.push(form);
    if (waiting.length > 2 * MOST_FORMS) throw new TypeError(`the braces of ${pattern} stand for too many patterns`);
  }
  return forms;
}

// Both loops go back to the last star alone: an earlier one could only take what this one can take as well.
function fits(form: readonly string[], names: readonly string[], dots: boolean): boolean {
  const isShown = (name: string) => dots || !name.startsWith(".");
  let [i, j, star, mark] = [0, 0, -1, 0];
  while (j < names.length) {
    if (form[i] === "**") {
      star = i++;
      mark = j;
    } else if (i < form.length && (isShown(names[j]) || form[i].startsWith(".")) && nameFits(form[i], names[j])) {
      i++;
      j++;
    } else if (star >= 0 && isShown(names[mark])) {
      i = star + 1;
      j = ++mark;
    } else return false;
  }
  while (form[i] === "**") i++;
  return i === form.length;
}

function nameFits(form: string, name: string): boolean {
  let [i, j, star, mark] = [0, 0, -1, 0];
  while (j < name.length) {
    if (form[i] === "*") {
      star = i++;
      mark = j;
    } else if (i < form.length && (form[i] === "?" || form[i] === name[j])) {
      i++;
      j++;
    } else if (star >= 0) {
      i = star + 1;
      j = ++mark;
    } else return false;
  }
  while (form[i] === "*") i++;
  return i === form.length;
}
