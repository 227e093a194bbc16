// Finds text that no response must contain: stacks, file paths and parser messages.

const INSIDE =
  /\bat \S+ \(|\bat (?:async )?file:|\.[jt]s:\d|file:\/\/\/\w|\/(?:work|home|root|usr|tmp)\/|node_modules|SyntaxError|TypeError|at position \d/;

/** Returns the first part of a text that reveals a server's internals, or `undefined`. */
export function findSecret(text: string): string | undefined {
  return INSIDE.exec(text)?.[0];
}
