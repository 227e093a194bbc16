/**
 * Reads the schemas of the results of operations.
 */
import { isObject } from "../../core/kit/json.ts";
import { compileSchema, lazySchemaChecks } from "../../core/schema/schema_compiler.ts";
import type { JsonSchema } from "../../library.ts";
import { isJsonType } from "../http_body.ts";
import type { CheckJson } from "./answer.ts";
import { type ApiDocument, type Node, resolveLoosely, toNode } from "./document.ts";
import { listOperations } from "./operations.ts";
import { readDocument } from "./read_document.ts";
import { Schemas } from "./schemas.ts";

/**
 * Returns the schema of the JSON that an operation returns if it succeeds. Returns `undefined` if the document does not
 * describe it, or if the operation may also return something else than JSON.
 */
export function readResultSchema(document: ApiDocument, operation: Node, schemas: Schemas): JsonSchema | undefined {
  const all = Object.entries(toNode(operation.responses)).filter(([status]) => /^2(\d\d|XX)$/i.test(status));
  const found = all.map(([, response]) => {
    const content = Object.entries(toNode(resolveLoosely(document, response).content));
    const json = content.filter(([type]) => isJsonType(type.split(";")[0].trim().toLowerCase()));
    return json.length && json.length === content.length ? toNode(json[0][1]).schema : undefined;
  });
  if (!found.length || !found.every(isObject)) return;
  const parts = found.map((schema) => schemas.convert(schema));
  const root = parts.length === 1 ? parts[0] : { anyOf: parts };
  return schemas.close(root).schema;
}

/**
 * Returns a function that returns the schema of the results of an operation, by its id. Reads the document again when it
 * is first called, because few servers need the schemas, and large documents have many.
 */
export function createResultFinder(document: object): (id: string) => JsonSchema | undefined {
  let known: { readonly read: ApiDocument; readonly nodes: ReadonlyMap<string, Node>; readonly schemas: Schemas };
  return (id) => {
    if (!known) {
      const read = readDocument(document, { withResults: true });
      const nodes = new Map(listOperations(read).map(({ id, node }) => [id, node]));
      known = { read, nodes, schemas: new Schemas(read, "results") };
    }
    const node = known.nodes.get(id);
    try {
      return node && readResultSchema(known.read, node, known.schemas);
    } catch {
      return; // The document describes the results in a way that cannot be read.
    }
  };
}

/** Returns the media types that an operation documents for its responses, for the header `Accept`. */
export function readAccept(document: ApiDocument, operation: Node): string {
  const types = Object.values(toNode(operation.responses)).flatMap((response) =>
    Object.keys(toNode(resolveLoosely(document, response).content))
  ).filter((type) => /^[\w.+*-]+\/[\w.+*-]+$/.test(type) && type !== "*/*");
  const json = types.filter((type) => isJsonType(type.toLowerCase()));
  const ranked = [...new Set([...json, ...types])].slice(0, 8);
  return [...ranked.length ? ranked : ["application/json"], "*/*;q=0.1"].join(", ");
}

export function createCheck(schema: JsonSchema, place: string, isStrict: boolean): CheckJson {
  const compiled = compileSchema(schema, { use: "output", place });
  return {
    isStrict,
    async findProblem(value) {
      await lazySchemaChecks.load();
      return (await compiled.validate(value)).problem;
    },
  };
}
