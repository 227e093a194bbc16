/**
 * Titles of ready-made tools.
 */

/** Returns a name as words, such as `List pets` for `list_pets` or `listPets`. Text with spaces stays as it is. */
export function toTitle(name: string): string {
  if (name.includes(" ")) return name;
  const words = name.replace(/([\p{Ll}\d])(\p{Lu})/gu, "$1 $2").split(/[\s_.-]+/).filter(Boolean);
  const text = words.map((word) => /^\p{Lu}\p{Ll}/u.test(word) ? word.toLowerCase() : word).join(" ");
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
