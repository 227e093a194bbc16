/**
 * Prepares documents of version 2.0 for the conversion to newer versions, which does not convert all of their parts.
 */
import { isObject } from "../../core/kit/json.ts";
import { checkJson } from "./json_copy.ts";
import { toTokens } from "./pointer.ts";

type Changeable = Record<string, unknown>;
type Clone = <T>(value: T) => T;

/**
 * The member of a parameter or form field whose list is separated by tabs. Newer versions have no style for such a list.
 */
export const TABS = "x-mcp-tabs";

const METHODS = ["get", "put", "post", "delete", "options", "head", "patch"];

/**
 * Changes a copy of a document of version 2.0, so that its conversion loses nothing:
 *
 * - References to parameters are replaced by the parameters, because the parameters of a body become a body.
 * - The parameters of a path move to its operations, because the order of the members would matter otherwise.
 * - Lists that are separated by tabs are marked.
 * - Parameters without a name or place are removed, because they would stop the conversion.
 *
 * @throws {TypeError} if all copies of parameters together are larger than 50 MB.
 */
export function prepareSwagger(document: Changeable): void {
  let bytes = 0;
  // Each operation needs its own copy, because the conversion changes the parameters.
  const clone: Clone = (value) => {
    bytes = checkJson(value, bytes);
    return structuredClone(value);
  };
  document.swagger = "2.0";
  // The conversion expects objects and lists in these places.
  for (const name of ["paths", "definitions", "parameters", "responses", "securityDefinitions"]) {
    if (name in document && !isObject(document[name])) delete document[name];
  }
  keepTexts(document, "consumes");
  keepTexts(document, "produces");
  for (const [path, item] of Object.entries(Object(document.paths))) {
    if (!isObject(item)) {
      delete (document.paths as Changeable)[path]; // The cast is safe, because `paths` has members.
      continue;
    }
    const shared = readParameters(document, item.parameters, clone);
    delete item.parameters;
    for (const method of METHODS) {
      const operation = item[method];
      if (!isObject(operation)) {
        delete item[method];
        continue;
      }
      const own = readParameters(document, operation.parameters, clone);
      const names = new Set(own.map(toKey));
      operation.parameters = [...shared.filter((each) => !names.has(toKey(each))).map(clone), ...own];
      keepTexts(operation, "consumes");
      keepTexts(operation, "produces");
      if (isObject(operation.responses)) keepObjects(operation.responses);
      else delete operation.responses;
    }
  }
  // All references to parameters have been replaced.
  delete document.parameters;
  if (isObject(document.responses)) keepObjects(document.responses);
}

/** Returns the parameters of a list, without references. */
function readParameters(document: Changeable, list: unknown, clone: Clone): Changeable[] {
  if (!Array.isArray(list)) return [];
  return list.map((each) => toParameter(document, each, clone)).filter(({ name, in: place }) =>
    typeof name === "string" && typeof place === "string"
  ).map((parameter) => {
    const isTabs = parameter.type === "array" && parameter.collectionFormat === "tsv";
    if (isTabs) parameter[TABS] = true;
    return parameter;
  });
}

function toParameter(document: Changeable, given: unknown, clone: Clone): Changeable {
  const { $ref, ...own }: Changeable = Object(given);
  if (typeof $ref !== "string") return own;
  const [place, name = ""] = toTokens($ref);
  const all = Object(place === "parameters" ? document.parameters : {});
  const found: unknown = Object.hasOwn(all, name) ? all[name] : {};
  return isObject(found) && found.$ref === undefined ? clone(found) : {};
}

function toKey({ name, in: place }: Changeable): string {
  return `${place === "formData" ? "body" : place} ${name}`;
}

function keepTexts(owner: Changeable, name: string): void {
  const list = owner[name];
  if (list === undefined) return;
  const texts = Array.isArray(list) ? list.filter((each) => typeof each === "string") : [];
  if (texts.length) owner[name] = texts;
  else delete owner[name];
}

function keepObjects(owner: Changeable): void {
  for (const [name, value] of Object.entries(owner)) if (!isObject(value)) delete owner[name];
}
