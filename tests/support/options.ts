/**
 * Reads the options of a task: a value for each option, and an empty string for each flag. Throws for an unknown option
 * before the task starts, because a task may run for a quarter of an hour.
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
      throw new Error(`Cannot begin: "${name}" is unknown or has no value; write ${usage}`);
    }
  }
  return given;
}

/**
 * Returns the number given for an option, or the default. Throws if the number is negative, or if it is not a whole
 * number and fractions are not allowed.
 */
export function readNumber(
  options: ReadonlyMap<string, string>,
  name: string,
  usual: number,
  { hasParts = false } = {},
): number {
  const text = options.get(name) ?? `${usual}`;
  const value = text.trim() ? Number(text) : NaN;
  if (value >= 0 && (hasParts ? Number.isFinite(value) : Number.isSafeInteger(value))) return value;
  throw new Error(`Cannot begin: ${name} ${text} is not a ${hasParts ? "" : "whole "}number of 0 or more`);
}
