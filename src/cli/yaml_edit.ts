/**
 * Puts an entry into a YAML file, and keeps its comments.
 *
 * @module
 */
import { isMap, parseDocument } from "yaml";
import type { EditOptions } from "./edit_options.ts";
import { Problem } from "./problem.ts";

/**
 * The text with the entry in it, in the place of one of the same name if there is one.
 *
 * @throws {Problem} if the text is not YAML, or holds something else there.
 */
export function setEntry(text: string, entry: unknown, { file, path: [holder, name] }: EditOptions): string {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error) throw new Problem(`Cannot read ${file}: ${error.message.split("\n")[0]}; fix it by hand`);
  const { contents } = document;
  if (contents !== null && !isMap(contents)) {
    throw new Problem(`Cannot change ${file}: it is not a mapping; edit it by hand`);
  }
  const held = document.get(holder);
  if (held !== undefined && held !== null && !isMap(held)) {
    throw new Problem(`Cannot change ${file}: ${holder} is not a mapping; edit it by hand`);
  }
  // An empty value, as in `extensions:`, is no place to put something.
  if (document.has(holder) && !isMap(held)) document.delete(holder);
  const old = isMap(held) ? held.get(name) : undefined;
  if (isMap(old) && JSON.stringify(old.toJSON()) === JSON.stringify(entry)) return text;
  document.setIn([holder, name], document.createNode(entry));
  return document.toString({ lineWidth: 0 });
}
