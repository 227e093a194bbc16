/**
 * Splits texts into words, and reduces words to simple stems.
 */

/** Words that say nothing about what a tool does. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  ("a about again all also am an and any are as at be because been being but by can could did do does doing done don " +
    "each else for from had has have having here how i if in into is it its just like me might more most my myself need " +
    "needs no nor now of off on one only or other our out over own please same shall she should so some such than that " +
    "the their them then there these they this those through to too under us use used uses using very via want wants " +
    "was we were what when where whether which while who whom whose why will with without would you your").split(" "),
);

export function isStopWord(word: string): boolean {
  return STOP_WORDS.has(word);
}

/** Maximum length of a word in characters. The rest of a longer word is ignored, because no one searches by it. */
const MAX_WORD = 32;

/**
 * Splits a text into lower-case words: at each character that is neither a letter nor a digit, and between the parts of a
 * name such as `listPullRequests`. Each character of a script without spaces is a word.
 */
export function toWords(text: string): readonly string[] {
  const words = NOT_ASCII.test(text)
    ? text.replace(BOUNDARY, " ").normalize("NFKC").toLowerCase().match(WORD)
    // Fast path: an index of 1,200 tools takes half the time.
    : text.replace(ASCII_BOUNDARY, " ").toLowerCase().match(ASCII_WORD);
  return words?.map((word) => word.slice(0, MAX_WORD)) ?? [];
}

// deno-lint-ignore no-control-regex
const NOT_ASCII = /[^\x00-\x7f]/;
// Lookarounds need no backtracking, so that the time is linear in the length of the text.
const ASCII_BOUNDARY = /(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g;
const ASCII_WORD = /[a-z0-9]+/g;
const BOUNDARY = /(?<=[\p{Ll}\p{N}])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/gu;
const WORD = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}]|[\p{L}\p{N}]+/gu;

/** Endings in the order in which they are tried, each with its replacement and the minimum length of the rest. */
const ENDINGS: readonly (readonly [ending: string, replacement: string, rest: number])[] = [
  ["ications", "y", 3],
  ["ication", "y", 3],
  ["ations", "at", 3],
  ["ation", "at", 3],
  ["tions", "t", 3],
  ["tion", "t", 3],
  ["sions", "s", 3],
  ["sion", "s", 3],
  ["ators", "at", 3],
  ["ator", "at", 3],
  ["ies", "y", 2],
  ["sses", "ss", 2],
  ["ches", "ch", 2],
  ["shes", "sh", 2],
  ["xes", "x", 2],
  ["ss", "ss", 1],
  ["us", "us", 1],
  ["is", "is", 1],
  ["ings", "", 3],
  ["ing", "", 3],
  ["ers", "", 4],
  ["er", "", 4],
  ["ied", "y", 2],
  ["ed", "", 3],
  ["es", "e", 3],
  ["s", "", 2],
];

/** Maximum number of remembered stems. All are forgotten when there are more. */
const MAX_STEMS = 20_000;
/**
 * Maximum length of a word whose stem is remembered, in characters. V8 copies a word of this length, but a longer word
 * refers to the whole text from which it was cut.
 */
const MAX_COPIED = 12;
// Bound: `MAX_STEMS`.
const stems = new Map<string, string>();

/** Reduces an English word to a stem that its inflections share, such as `creat` for `creates` and `creating`. */
export function toStem(word: string): string {
  const known = stems.get(word);
  if (known !== undefined) return known;
  if (word.length > MAX_COPIED) return cutWord(word);
  if (stems.size >= MAX_STEMS) stems.clear();
  const stem = cutWord(word);
  stems.set(word, stem);
  return stem;
}

function cutWord(word: string): string {
  if (word.length < 4 || !/^[a-z]+$/.test(word)) return word;
  const found = ENDINGS.find(([ending, , rest]) => word.endsWith(ending) && word.length - ending.length >= rest);
  let stem = found ? word.slice(0, -found[0].length) + found[1] : word;
  if (found && !found[1] && /([bdfgklmnprtz])\1$/.test(stem) && !/ll$/.test(stem)) stem = stem.slice(0, -1);
  return stem.length > 3 ? stem.replace(/(?<=[^aeiou])y$/, "i").replace(/e$/, "") : stem;
}
