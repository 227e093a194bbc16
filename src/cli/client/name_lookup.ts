/**
 * Looks up a name in a list from a server, and suggests a similar name if the name is not in the list.
 */
import { CliError } from "../cli_error.ts";
import { findSuggestion } from "../../core/kit/suggestions.ts";
import { toLine } from "./terminal_text.ts";

const MAX_NAMES = 10;

/**
 * Returns `did you mean …?`. If no name is similar, returns `remedy`, or a list of the existing names. `names` may be
 * untrusted text from a server.
 */
export function suggestName(name: string, names: readonly string[], remedy?: string): string {
  const printable = names.map((each) => toLine(each, 100));
  const suggestion = findSuggestion(name, printable);
  if (suggestion !== undefined) return `did you mean ${suggestion}?`;
  if (remedy !== undefined) return remedy;
  const more = names.length - MAX_NAMES;
  const shown = printable.slice(0, MAX_NAMES).join(", ");
  return names.length ? `the known names are ${shown}${more > 0 ? ` and ${more} more` : ""}` : "the list is empty";
}

/** @throws {CliError} with a suggestion if no item has this name. */
export function findByName<T extends { readonly name: string }>(
  list: readonly T[],
  name: string,
  { verb, kind, remedy }: { readonly verb: string; readonly kind: string; readonly remedy?: string },
): T {
  const found = list.find((each) => each.name === name);
  if (found) return found;
  const suggestion = suggestName(name, list.map((each) => each.name), remedy);
  throw new CliError(`Cannot ${verb} ${toLine(name) || '""'}: the server has no such ${kind}; ${suggestion}`);
}
