/**
 * Decides which patterns of a document are enforced. A pattern of a document is not the author's own, and may be written
 * for another engine.
 */

/** Maximum length of a pattern that is enforced, in characters. */
const MAX_LENGTH = 500;
/** Maximum number of repetitions without an upper limit in a pattern that is enforced. */
const MAX_REPETITIONS = 3;

/**
 * Tests whether JavaScript can run a pattern, in a time that does not explode. A group that repeats may contain neither
 * a repetition nor alternatives, because clients choose the texts that are matched.
 */
export function isSafePattern(pattern: string): boolean {
  if (pattern.length > MAX_LENGTH) return false;
  try {
    new RegExp(pattern, "u");
  } catch {
    return false;
  }
  // Neither escaped characters nor classes contain groups or repetitions.
  const plain = pattern.replace(/\\./gs, "x").replace(/\[[^\]]*\]/g, "x");
  if (plain.split(/[*+]|\{\d+,\}/).length - 1 > MAX_REPETITIONS) return false;
  /** For each open group, whether it contains a repetition or alternatives. */
  const groups: boolean[] = [];
  for (let i = 0; i < plain.length; i++) {
    const character = plain[i];
    if (character === "(") groups.push(false);
    else if (character === ")") {
      const isComplex = groups.pop() ?? false;
      if (isComplex && /^([*+]|\{\d+(,|\}))/.test(plain.slice(i + 1))) return false;
      if (isComplex && groups.length) groups[groups.length - 1] = true;
    } else if (groups.length && /[*+|{]/.test(character)) groups[groups.length - 1] = true;
  }
  return true;
}
