/** The scheme and the names of the parameters are in lowercase. */
export interface HeaderChallenge {
  readonly scheme: string;
  readonly params: ReadonlyMap<string, string>;
}

/** Matches a scheme, or a parameter with its value. */
const WORD = /([\w!#$%&'*+.^`|~/-]+)(?:\s*=\s*("(?:[^"\\]|\\.)*"|[^\s,"]*))?/g;

/** Maximum number of matches of `WORD` that are read, because a server can send a header of any length. */
const MAX_WORDS = 100;

/** Returns the `Bearer` challenge, or the first challenge if the header has no `Bearer` challenge. */
export function readChallenge(header: string | null): HeaderChallenge | undefined {
  const challenges = readChallenges(header);
  return challenges.find(({ scheme }) => scheme === "bearer") ?? challenges[0];
}

/** Returns all challenges in the order of the header. */
export function readChallenges(header: string | null): readonly HeaderChallenge[] {
  const challenges: { scheme: string; params: Map<string, string> }[] = [];
  let words = 0;
  for (const [, name, value] of (header ?? "").matchAll(WORD)) {
    if (++words > MAX_WORDS) break;
    if (value === undefined) challenges.push({ scheme: name.toLowerCase(), params: new Map() });
    else challenges.at(-1)?.params.set(name.toLowerCase(), unquote(value));
  }
  return challenges;
}

function unquote(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, "$1") : value;
}
