/**
 * Decides which patterns of a document are enforced. A pattern of a document is not the author's own, and may be written
 * for another engine.
 */

/** Maximum length of a pattern that is enforced, in characters. */
const MAX_LENGTH = 500;
/** Maximum number of steps of a match, for each character of the text. */
const MAX_STEPS = 200;

interface Group {
  /** Length of the shortest text that matches, with the texts of all alternatives. */
  length: number;
  alternatives: number;
  /** Whether the group contains a repetition or alternatives. */
  isComplex: boolean;
}

const TOKEN = /\((?:\?(?:[\w-]*:|[=!]|<[=!]|<[^>]*>))?|(?:[*+?]|\{\d+(?:,\d*)?\})\??|./gs;

/**
 * Tests whether JavaScript can run a pattern, in a time that grows with the text, because clients choose the texts that
 * are matched. Each repetition multiplies the ways in which a text can be divided, so at most one repetition may depend
 * on the length of the text. A group that repeats may contain neither a repetition nor alternatives.
 *
 * @param maxLength Maximum length of the texts, in characters.
 */
export function isSafePattern(pattern: string, maxLength: number = Infinity): boolean {
  if (pattern.length > MAX_LENGTH) return false;
  try {
    new RegExp(pattern, "u");
  } catch {
    return false;
  }
  // A reference to a group compares a text of any length.
  if (/\\[1-9k]/.test(pattern)) return false;
  // Neither escaped characters nor classes contain groups or repetitions.
  const plain = pattern.replace(/\\[pPu]\{[^}]*\}|\\./gs, "x").replace(/\[[^\]]*\]/g, "x");
  const whole: Group = { length: 0, alternatives: 1, isComplex: false };
  const groups = [whole];
  const ranges: number[] = [];
  let choices = 1;
  let last: Pick<Group, "length" | "isComplex"> = whole;
  for (const [token] of plain.matchAll(TOKEN)) {
    const group = groups[groups.length - 1];
    const repetition = readRepetition(token);
    if (token.startsWith("(")) groups.push({ length: 0, alternatives: 1, isComplex: false });
    else if (token === ")") {
      const parent = groups[groups.length - 2];
      groups.pop();
      parent.length += group.length;
      parent.isComplex ||= group.isComplex;
      choices *= group.alternatives;
      last = group;
    } else if (token === "|") {
      group.alternatives++;
      group.isComplex = true;
    } else if (repetition) {
      const { min, max } = repetition;
      if (max > 1 && last.isComplex) return false;
      group.isComplex = true;
      group.length += Math.max(0, min - 1) * last.length;
      if (max === 1) choices *= 2 - min;
      else if (max > min) ranges.push(max - min + 1);
    } else {
      group.length++;
      last = { length: 1, isComplex: false };
    }
  }
  // A pattern without `^` is tried at every character.
  if (!plain.startsWith("^") || whole.alternatives > 1) ranges.push(Infinity);
  // The longest range is what grows with the text.
  const [, ...others] = ranges.map((range) => Math.min(range, maxLength)).sort((a, b) => b - a);
  return others.reduce((steps, range) => steps * range, choices * whole.alternatives * whole.length) <= MAX_STEPS;
}

/** Returns how often a repetition such as `{2,3}` repeats. Returns `undefined` for other tokens. */
function readRepetition(token: string): { readonly min: number; readonly max: number } | undefined {
  if (/^[*+?]/.test(token)) return { min: token[0] === "+" ? 1 : 0, max: token[0] === "?" ? 1 : Infinity };
  const [, min, comma, max] = /^\{(\d+)(?:(,)(\d*))?\}/.exec(token) ?? [];
  if (min === undefined) return;
  return { min: Number(min), max: comma ? Number(max || Infinity) : Number(min) };
}
