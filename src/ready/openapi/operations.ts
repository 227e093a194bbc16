/**
 * Lists the operations of a document.
 */
import { isObject } from "../../core/kit/json.ts";
import { type ApiDocument, type Node, resolve, toList, toNode, toText } from "./document.ts";
import { Names } from "./names.ts";
import type { ApiOperation } from "./api_operation.ts";

/** An operation with its parts of the document. */
export interface DocumentOperation extends ApiOperation {
  readonly node: Node;
  /** The parameters of the path. */
  readonly shared: unknown;
}

const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"];

/**
 * Lists the operations in the order of the document. Webhooks and callbacks are left out, because the API sends these
 * requests.
 */
export function listOperations(document: ApiDocument): readonly DocumentOperation[] {
  const names = new Names();
  const ids = new Set<string>();
  return Object.entries(toNode(document.root.paths)).flatMap(([key, value]) => {
    if (/^x-/.test(key) || !isObject(value)) return [];
    const path = key.startsWith("/") ? key : `/${key}`;
    const item = resolve(document, value);
    const others = Object.entries(toNode(item.additionalOperations));
    const own = Object.entries(item).filter(([key]) => METHODS.includes(key));
    const all = [...own.map(([method, node]) => [method.toUpperCase(), node] as const), ...others];
    return all.flatMap(([method, node]) => {
      if (!isObject(node)) return [];
      const given = toText(node.operationId);
      const name = names.add({ id: given, method, path });
      // Two operations with the same id are an error of the document. The second is known by its name.
      const id = given !== undefined && !ids.has(given) ? given : name;
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
        node,
        shared: item.parameters,
      };
    });
  });
}
