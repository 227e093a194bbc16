/**
 * Adds an entry to a YAML file, and keeps the file's comments.
 */
import { type Document, isMap, parseDocument } from "yaml";
import type { EditOptions } from "./edit_options.ts";
import { CliError } from "../cli_error.ts";

export function parseFile(text: string, file: string): unknown {
  return parse(text, file).toJS();
}

/**
 * Adds the entry, or replaces the entry with the same name.
 *
 * @throws {CliError} if the text is not YAML, or if the value of the servers key is not a mapping.
 */
export function setEntry(text: string, entry: unknown, { file, path: [serversKey, name] }: EditOptions): string {
  const document = parse(text, file);
  const { contents } = document;
  if (contents !== null && !isMap(contents)) {
    throw new CliError(`Cannot change ${file}: the document is not a mapping; edit the file by hand`);
  }
  const servers = document.get(serversKey);
  if (servers !== undefined && servers !== null && !isMap(servers)) {
    throw new CliError(`Cannot change ${file}: ${serversKey} is not a mapping; edit the file by hand`);
  }
  // Delete an empty value, such as in `extensions:`, because it cannot contain an entry.
  if (document.has(serversKey) && !isMap(servers)) document.delete(serversKey);
  document.setIn([serversKey, name], document.createNode(entry));
  return document.toString({ lineWidth: 0 });
}

function parse(text: string, file: string): Document {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (!error) return document;
  throw new CliError(`Cannot read ${file}: ${error.message.split("\n")[0].replace(/:$/, "")}; fix the file by hand`);
}
