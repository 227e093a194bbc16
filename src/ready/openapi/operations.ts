/**
 * Lists the operations of a document.
 */
import { type ApiDocument, type Node, PartError, PROBLEM, resolve, toList, toNode, toText } from "./document.ts";
import { Names } from "./names.ts";
import type { ApiOperation } from "./api_operation.ts";

export interface DocumentOperation extends ApiOperation {
  readonly node: Node;
  /** The parameters of the path. */
  readonly shared: unknown;
  /** The reason why a part of the operation is missing. */
  readonly problem?: string;
}

/** The method of the entry that stands for the operations of a path that cannot be read. */
export const UNKNOWN_METHOD = "*";

const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"];

/**
 * Lists the operations in the order of the document. Webhooks and callbacks are left out, because the API sends these
 * requests. A path that cannot be read has one entry, so that no operation is lost without a word.
 */
export function listOperations(document: ApiDocument): readonly DocumentOperation[] {
  const names = new Names();
  const ids = new Set<string>();
  return Object.entries(toNode(document.root.paths)).flatMap(([key, value]) => {
    if (/^x-/.test(key) || value === undefined || value === null) return [];
    const path = key.startsWith("/") ? key : `/${key}`;
    const item = readPart(document, value, "its path");
    return listMethods(item).map(([method, given]) => {
      const own = readPart(document, given, "it");
      const { node } = own;
      const operationId = toText(node.operationId);
      const name = names.add({ id: operationId, method, path });
      // Two operations with the same id are an error of the document. The second is known by its name.
      const id = operationId !== undefined && !ids.has(operationId) ? operationId : name;
      ids.add(id);
      return {
        id,
        name,
        method,
        path,
        tags: toList(node.tags).filter((tag) => typeof tag === "string"),
        summary: toText(node.summary)?.trim(),
        description: toText(node.description)?.trim(),
        isDeprecated: node.deprecated === true,
        servers: listOwnServers(document, node.servers ?? item.node.servers),
        node,
        shared: item.node.parameters,
        problem: item.problem ?? own.problem ?? findMisspelt(method, item.node),
      };
    });
  });
}

export function listServers(servers: unknown): readonly string[] {
  return toList(servers).flatMap((server) => toText(toNode(server).url) ?? []);
}

/** Returns the URLs of an operation's servers, unless they are servers of the whole document. */
function listOwnServers({ root }: ApiDocument, servers: unknown): readonly string[] {
  const all = new Set(listServers(root.servers));
  const own = listServers(servers);
  return own.every((url) => all.has(url)) ? [] : own;
}

/** A part of a document, or the reason why it cannot be read. */
interface Part {
  readonly node: Node;
  readonly problem?: string;
}

function readPart(document: ApiDocument, value: unknown, part: string): Part {
  try {
    const node = resolve(document, value, part);
    return { node, problem: toText(node[PROBLEM]) };
  } catch (error) {
    if (!(error instanceof PartError)) throw error;
    // The members next to a reference still describe the operation.
    return { node: toNode(value), problem: error.message };
  }
}

function listMethods({ node, problem }: Part): readonly (readonly [method: string, operation: unknown])[] {
  const own = Object.entries(node).filter(([key]) => METHODS.includes(key.toLowerCase())).map(([method, operation]) =>
    [method.toUpperCase(), operation] as const
  );
  const all = [...own, ...Object.entries(toNode(node.additionalOperations))].filter(([, operation]) =>
    operation !== undefined && operation !== null
  );
  return !all.length && problem !== undefined ? [[UNKNOWN_METHOD, {}]] : all;
}

/** Returns a reason if the document writes a method in capital letters, so that readers of documents ignore it. */
function findMisspelt(method: string, item: Node): string | undefined {
  const lower = method.toLowerCase();
  if (Object.hasOwn(item, lower) || Object.hasOwn(toNode(item.additionalOperations), method)) return;
  if (METHODS.includes(lower)) return `its path does not write the method as ${lower}; use lower case`;
}
