/**
 * What to write in place of a name that is not there.
 *
 * @module
 */
import { findSuggestion } from "../suggestions.ts";
import { Problem } from "../problem.ts";
import { toLine } from "./terminal_text.ts";

const MOST_SHOWN = 10;

/** `did you mean …?`, or else what there is. The names are the server's. */
export function suggest(name: string, names: readonly string[]): string {
  const shown = names.map((each) => toLine(each, 100));
  const near = findSuggestion(name, shown);
  if (near !== undefined) return `did you mean ${near}?`;
  const more = names.length - MOST_SHOWN;
  const some = shown.slice(0, MOST_SHOWN).join(", ");
  return names.length ? `there are ${some}${more > 0 ? ` and ${more} more` : ""}` : "there are none";
}

/**
 * The one of a list that has a name.
 *
 * @throws {Problem} if there is none, with the name that was meant.
 */
export function findNamed<T extends { readonly name: string }>(
  list: readonly T[],
  name: string,
  { verb, kind }: { readonly verb: string; readonly kind: string },
): T {
  const found = list.find((each) => each.name === name);
  if (found) return found;
  const state = `the server has no such ${kind}; ${suggest(name, list.map((each) => each.name))}`;
  throw new Problem(`Cannot ${verb} ${toLine(name)}: ${state}`);
}
