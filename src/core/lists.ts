/**
 * Checks options that are lists.
 *
 * @module
 */

/**
 * Checks that some options are lists, if they are given. Programs may run without a check of their types, and another
 * value would fail later with an error that does not name the option.
 *
 * @throws {TypeError} if one of them is not a list.
 */
export function checkLists(options: object, place: string, names: readonly string[]): void {
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || Array.isArray(value) || !names.includes(name)) continue;
    throw new TypeError(`Cannot ${place}: ${name} must be a list; write it in brackets`);
  }
}
