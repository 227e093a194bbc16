/**
 * The options of a task: options with a value, and flags as an empty string. A task may run for a quarter of an hour,
 * so an unknown option is rejected before the task starts.
 */
export function readOptions(
  args: readonly string[],
  known: { readonly values?: readonly string[]; readonly flags?: readonly string[] },
): ReadonlyMap<string, string> {
  const { values = [], flags = [] } = known;
  const given = new Map<string, string>();
  for (let i = 0; i < args.length; i++) {
    const name = args[i];
    if (flags.includes(name)) given.set(name, "");
    else if (values.includes(name) && i + 1 < args.length) given.set(name, args[++i]);
    else {
      const usage = [...values.map((each) => `[${each} …]`), ...flags.map((each) => `[${each}]`)].join(" ");
      throw new Error(`Cannot begin: "${name}" is unknown or has no value; there are ${usage}`);
    }
  }
  return given;
}

/** The number of an option, or the default. A whole number unless fractions are allowed. */
export function readNumber(
  options: ReadonlyMap<string, string>,
  name: string,
  usual: number,
  { hasParts = false } = {},
): number {
  const text = options.get(name) ?? `${usual}`;
  const value = text.trim() ? Number(text) : NaN;
  if (value >= 0 && (hasParts ? Number.isFinite(value) : Number.isSafeInteger(value))) return value;
  throw new Error(`Cannot begin: ${name} ${text} is no ${hasParts ? "" : "whole "}number of 0 or more`);
}
