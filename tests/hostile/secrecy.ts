// What no answer may show: stacks, paths of files, the words of a parser.

const INSIDE =
  /\bat \S+ \(|\bat (?:async )?file:|\.[jt]s:\d|file:\/\/\/\w|\/(?:work|home|root|usr|tmp)\/|node_modules|SyntaxError|TypeError|at position \d/;

/** The first thing in a text that shows the inside of a server. */
export function findSecret(text: string): string | undefined {
  return INSIDE.exec(text)?.[0];
}
