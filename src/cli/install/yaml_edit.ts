/**
 * Adds an entry to a YAML file, and keeps the file's comments.
 */
import { type Document, isMap, isNode, isScalar, isSeq, type Node, parseDocument, YAMLMap, YAMLSeq } from "yaml";
import type { EditOptions } from "./edit_options.ts";
import { CliError } from "../cli_error.ts";

export function parseFile(text: string, file: string): unknown {
  return parse(text, file).toJS();
}

/**
 * Adds the entry, or replaces the entry with the same name.
 *
 * @throws {CliError} if the text is not YAML, if the value of the servers key is not a mapping, or for `isList`, not a
 * sequence, or if an alias refers to the previous entry.
 */
export function setEntry(text: string, entry: unknown, options: EditOptions): string {
  const { file, path: [, name] } = options;
  const document = parse(text, file);
  const servers = findServers(document, options);
  const node = document.createNode(entry);
  if (isSeq(servers)) setItem(servers, name, node);
  else servers.set(name, node);
  // An empty collection can be in braces or brackets, in which the entry would be a single line.
  if (servers.items.length === 1) servers.flow = false;
  try {
    return document.toString({ lineWidth: 0 });
  } catch {
    throw new CliError(`Cannot change ${file}: an alias refers to the entry ${name}; edit the file by hand`);
  }
}

/** Returns the collection of servers, which is created if the file has no servers. */
function findServers(
  document: Document,
  { file, path: [serversKey], isList, required = {} }: EditOptions,
): YAMLMap | YAMLSeq {
  const { contents } = document;
  if (contents !== null && !isMap(contents)) {
    throw new CliError(`Cannot change ${file}: the document is not a mapping; edit the file by hand`);
  }
  const servers: unknown = document.get(serversKey, true);
  if (isList ? isSeq(servers) : isMap(servers)) return servers as YAMLMap | YAMLSeq; // The cast is safe after the check.
  if (isNode(servers) && !(isScalar(servers) && servers.value === null)) {
    const kind = isList ? "sequence" : "mapping";
    throw new CliError(`Cannot change ${file}: ${serversKey} is not a ${kind}; edit the file by hand`);
  }
  // Add these members only to an empty document, because the user decides about the members of another document.
  if (contents === null) Object.entries(required).forEach(([key, value]) => document.set(key, value));
  const created = isList ? new YAMLSeq() : new YAMLMap();
  // An empty value, such as in `extensions:`, can have comments.
  const comments = isNode(servers) ? [servers.commentBefore, servers.comment].filter((text) => text) : [];
  if (comments.length) created.commentBefore = comments.join("\n");
  document.set(serversKey, created);
  return created;
}

/** Adds an item to the list, or replaces the item with the same name and keeps the comment before that item. */
function setItem({ items }: YAMLSeq, name: string, node: Node): void {
  const at = items.findIndex((item) => isMap(item) && item.get("name") === name);
  const old = items[at];
  if (isNode(old)) items[at] = Object.assign(node, { commentBefore: old.commentBefore, spaceBefore: old.spaceBefore });
  else items.push(node);
}

function parse(text: string, file: string): Document {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (!error) return document;
  throw new CliError(`Cannot read ${file}: ${error.message.split("\n")[0].replace(/:$/, "")}; fix the file by hand`);
}
