/**
 * Reads the challenges of `WWW-Authenticate` headers.
 *
 * @module
 */

/** A challenge: its scheme in lowercase, and its parameters by lowercase name. */
export interface HeaderChallenge {
  readonly scheme: string;
  readonly params: ReadonlyMap<string, string>;
}

/** A token. If the token names a parameter, the value of the parameter follows. */
const WORD = /([\w!#$%&'*+.^`|~/-]+)(?:\s*=\s*("(?:[^"\\]|\\.)*"|[^\s,"]*))?/g;

/** Maximum number of words that are read. A limit is needed because the server chooses the length of the header. */
const MAX_WORDS = 100;

/**
 * Returns the challenge of the scheme `Bearer`. Returns the first challenge if the header has no `Bearer` challenge.
 */
export function readChallenge(header: string | null): HeaderChallenge | undefined {
  const challenges = readChallenges(header);
  return challenges.find(({ scheme }) => scheme === "bearer") ?? challenges[0];
}

/** Returns all challenges in their order. */
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
