// Reads the operations of an OpenAPI document as tools: names, summaries, descriptions and arguments. Nothing can call
// these tools. Reads revisions 2.0 (Swagger) and 3.0.
import { isObject } from "../../src/core/protocol/jsonrpc.ts";
import type { ArgumentSchema, CatalogueTool } from "./catalogues.ts";

type Json = Readonly<Record<string, unknown>>;

const METHODS = ["get", "put", "post", "delete", "options", "head", "patch"];

/** Returns a tool for each operation, in the order of the document. */
export function readOperations(document: Json): readonly CatalogueTool[] {
  const tools: CatalogueTool[] = [];
  for (const path of Object.values(toObject(document.paths))) {
    const item = toObject(path);
    for (const [method, value] of Object.entries(item)) {
      if (!METHODS.includes(method)) continue;
      const operation = toObject(value);
      // Parameters of an operation override parameters of its path.
      const lists = [item.parameters, operation.parameters].filter(Array.isArray).flat();
      const properties = new Map<string, ArgumentSchema>();
      for (const each of lists) addParameter(document, resolve(document, each), properties);
      addBody(document, readBody(document, operation), properties);
      const { operationId, summary, description } = operation;
      tools.push({
        name: String(operationId).replace(/[^\w-]/g, "_"),
        title: toText(summary),
        description: toText(description),
        inputSchema: { type: "object", properties: Object.fromEntries(properties) },
      });
    }
  }
  return tools;
}

/** Returns the parts of an argument's schema that a catalogue has. */
export function toArgument(schema: unknown, description = toObject(schema).description): ArgumentSchema {
  const { type, enum: values, items } = toObject(schema);
  const known = values ?? toObject(items).enum;
  return {
    ...typeof type === "string" || Array.isArray(type) ? { type } : {},
    ...typeof description === "string" ? { description } : {},
    ...Array.isArray(known) ? { enum: known } : {},
  };
}

function addParameter(document: Json, parameter: Json, properties: Map<string, ArgumentSchema>): void {
  // Revision 2.0 lists the body as a parameter, and has the schema of other parameters in the parameter itself.
  if (parameter.in === "body") return addBody(document, parameter, properties);
  const schema = parameter.schema ? resolve(document, parameter.schema) : parameter;
  properties.set(String(parameter.name), toArgument(schema, parameter.description ?? schema.description));
}

/** Adds the fields of a body as arguments. A body without fields is one argument. */
function addBody(document: Json, { schema, description }: Json, properties: Map<string, ArgumentSchema>): void {
  if (!schema) return;
  const body = resolve(document, schema);
  const variants = [body, ...[body.allOf, body.oneOf, body.anyOf].filter(Array.isArray).flat()];
  const fields = variants.flatMap((each) => Object.entries(toObject(resolve(document, each).properties)));
  for (const [name, field] of fields) {
    if (!properties.has(name)) properties.set(name, toArgument(resolve(document, field), toObject(field).description));
  }
  if (!fields.length) properties.set("body", toArgument(body, description ?? body.description));
}

/** Returns the content of a body in revision 3.0. If the body has several types, the first one. */
function readBody(document: Json, { requestBody }: Json): Json {
  const body = resolve(document, requestBody);
  return { description: body.description, ...toObject(Object.values(toObject(body.content))[0]) };
}

/** Follows the references of a value. */
function resolve(document: Json, value: unknown): Json {
  let found = toObject(value);
  for (let depth = 0; typeof found.$ref === "string" && depth < 8; depth++) {
    const keys = found.$ref.slice(2).split("/").map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
    found = keys.reduce<Json>((at, key) => toObject(at[key]), document);
  }
  return found;
}

function toText(value: unknown): string | undefined {
  return typeof value === "string" && value ? value : undefined;
}

function toObject(value: unknown): Json {
  return isObject(value) ? value : {};
}
