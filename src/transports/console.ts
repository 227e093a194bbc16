/**
 * Keeps the console off standard output.
 *
 * @module
 */

/**
 * Has `console.log` and its like write to standard error, until the function that comes back is called. Standard output
 * belongs to the protocol: one stray line there and the client cannot read on.
 */
export function guardConsole(): () => void {
  const names = ["log", "info", "debug", "table", "dir", "group"] as const;
  const before = names.map((name) => console[name]);
  for (const name of names) console[name] = (...data: unknown[]) => console.error(...data);
  return () => names.forEach((name, i) => console[name] = before[i]);
}
