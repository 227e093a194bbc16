/**
 * Matches regular expressions from untrusted authors. The browser's `RegExp` could take hours for some patterns, so
 * this file uses `RegExp` only for single characters. A parser converts the pattern to a graph of states (an NFA). The
 * matcher follows all possible states at a position at the same time.
 */

/** Maximum length of a pattern, in characters. */
const MAX_PATTERN = 2000;
/** Maximum number of states in the graph. */
const MAX_STATES = 500;
/** Maximum length of a text, in characters. */
const MAX_TEXT = 500;

type Test = (character: string) => boolean;

/** A state of the graph. A state without a test leads to the next states without consuming a character. */
interface State {
  /** Tests whether a character leads to the next states. */
  readonly test?: Test;
  /** If set, the state can be passed only at this edge of the text. */
  readonly edge?: "start" | "end";
  readonly next: number[];
}

/**
 * Whether a text contains a match of a pattern. The time is proportional to the length of the pattern times the length
 * of the text. Returns `undefined` if the pattern or the text is too long, or if the pattern uses lookaround, back
 * references or word boundaries.
 */
export function matchesPattern(pattern: string, text: string): boolean | undefined {
  if (pattern.length > MAX_PATTERN || text.length > MAX_TEXT) return;
  try {
    // Throw for an invalid pattern, because the parser requires a valid pattern.
    new RegExp(pattern, "u");
    const parser = new Parser(pattern);
    return run(parser.states, parser.parse(), [...text]);
  } catch {
    return;
  }
}

/** A part of the graph, from its first state to its last state. */
interface Part {
  readonly first: number;
  readonly last: number;
}

const TOKEN =
  /\\[pPu]\{[^}]*\}|\\u[\dA-Fa-f]{4}|\\x[\dA-Fa-f]{2}|\\c[A-Za-z]|\\.|\[(?:\\.|[^\]\\])*\]|\(\?(?:<[^=!][^>]*>|.)|./suy;
const QUANTIFIER = /(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})\??/y;

class Parser {
  readonly states: State[] = [];
  readonly #pattern: string;
  #at = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
  }

  parse(): Part {
    return this.#parseAlternatives();
  }

  #parseAlternatives(): Part {
    const parts = [this.#parseSequence()];
    while (this.#pattern[this.#at] === "|") {
      this.#at++;
      parts.push(this.#parseSequence());
    }
    const [first, last] = [this.#add({}), this.#add({})];
    for (const part of parts) {
      this.#link(first, part.first);
      this.#link(part.last, last);
    }
    return { first, last };
  }

  #parseSequence(): Part {
    const first = this.#add({});
    let last = first;
    while (this.#at < this.#pattern.length && !/[|)]/.test(this.#pattern[this.#at])) {
      const start = this.#at;
      const part = this.#parseQuantified(start);
      this.#link(last, part.first);
      last = part.last;
    }
    return { first, last };
  }

  /** A repeated atom is parsed again for each repetition, so that each repetition has its own states. */
  #parseQuantified(start: number): Part {
    const one = this.#parseAtom();
    const [whole, sign, least, comma, most] = this.#read(QUANTIFIER) ?? [];
    if (whole === undefined) return one;
    const end = this.#at;
    const min = sign ? (sign === "+" ? 1 : 0) : Number(least);
    const max = sign ? (sign === "?" ? 1 : Infinity) : comma ? (most ? Number(most) : Infinity) : min;
    const first = this.#add({});
    const last = this.#add({});
    let before = first;
    for (let count = 0; count < Math.max(min, max === Infinity ? 1 : max); count++) {
      this.#at = start;
      const part = count ? this.#parseAtom() : one;
      this.#link(before, part.first);
      if (count >= min) this.#link(before, last);
      if (max === Infinity && count >= min - 1) this.#link(part.last, part.first);
      before = part.last;
    }
    this.#link(before, last);
    this.#at = end;
    return { first, last };
  }

  #parseAtom(): Part {
    const [token = ""] = this.#read(TOKEN) ?? [];
    if (token === "^") return this.#addState({ edge: "start" });
    if (token === "$") return this.#addState({ edge: "end" });
    if (token === "(" || token === "(?:" || token.startsWith("(?<") && token.endsWith(">")) {
      const part = this.#parseAlternatives();
      this.#at++; // Skip the closing parenthesis.
      return part;
    }
    if (token.startsWith("(?") || /^\\[bBk1-9]/.test(token)) throw new RangeError("The pattern is not supported");
    const single = new RegExp(`^(?:${token})$`, "u");
    return this.#addState({ test: (character) => single.test(character) });
  }

  #read(expression: RegExp): RegExpExecArray | null {
    expression.lastIndex = this.#at;
    const found = expression.exec(this.#pattern);
    if (found) this.#at = expression.lastIndex;
    return found;
  }

  #addState(state: Omit<State, "next">): Part {
    const at = this.#add(state);
    return { first: at, last: at };
  }

  #add(state: Omit<State, "next">): number {
    if (this.states.length >= MAX_STATES) throw new RangeError("The pattern has too many states");
    return this.states.push({ ...state, next: [] }) - 1;
  }

  #link(from: number, to: number): void {
    this.states[from].next.push(to);
  }
}

/** Follows all possible states for each character. A match may begin at any character. */
function run(states: readonly State[], { first, last }: Part, characters: readonly string[]): boolean {
  let active = new Set<number>();
  for (let at = 0; at <= characters.length; at++) {
    const open = [first, ...active];
    const seen = new Set(open);
    const next = new Set<number>();
    for (const state of open) {
      const { test, edge, next: targets } = states[state];
      if (state === last && !test && !edge) return true;
      if (edge && at !== (edge === "start" ? 0 : characters.length)) continue;
      const takes = test && at < characters.length && test(characters[at]);
      for (const target of targets) {
        if (takes) next.add(target);
        if (!test && !seen.has(target)) {
          seen.add(target);
          open.push(target);
        }
      }
    }
    active = next;
  }
  return false;
}
