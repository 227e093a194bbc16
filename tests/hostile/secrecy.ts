// Text that no response may contain: stacks, file paths, parser messages.

const INSIDE =
  /\bat \S+ \(|\bat (?:async )?file:|\.[jt]s:\d|file:\/\/\/\w|\/(?:work|home|root|usr|tmp)\/|node_modules|SyntaxError|TypeError|at position \d/;

/** The first part of a text that shows the internals of a server. */
export function findSecret(text: string): string | undefined {
  return INSIDE.exec(text)?.[0];
}
