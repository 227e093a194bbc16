/**
 * Prepares documents of version 2.0 for the conversion to newer versions, which does not convert all of their parts.
 */
import { isObject } from "../../core/kit/json.ts";
import { show } from "../../core/known_options.ts";
import { PartError, PROBLEM, resolve, toParameterList } from "./document.ts";
import { checkJson } from "./json_copy.ts";

type Changeable = Record<string, unknown>;
type Clone = <T>(value: T) => T;

const METHODS = ["get", "put", "post", "delete", "options", "head", "patch"];

/** The member of a form field with the format of its list, if newer versions would read another one. */
export const LIST_FORMAT = "x-mcp-list";

/**
 * Changes a copy of a document of version 2.0, so that its conversion loses nothing:
 *
 * - References to paths and parameters are replaced by the paths and parameters, because the parameters of a body become
 *   a body.
 * - The parameters of a path move to its operations, because the order of the members would matter otherwise.
 * - The formats of lists that newer versions do not have, or do not have in forms, are marked.
 * - Operations with parameters that cannot be read are marked with the reason.
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
  // The cast is safe, because `paths` is an object or missing.
  const paths = (document.paths ?? {}) as Changeable;
  for (const [path, given] of Object.entries(paths)) paths[path] = preparePath(document, given, clone);
  // All references to parameters have been replaced.
  delete document.parameters;
  if (isObject(document.responses)) keepObjects(document.responses);
}

/** Returns a path without references to the path and to parameters. Returns `undefined` if there is none. */
function preparePath(document: Changeable, given: unknown, clone: Clone): Changeable | undefined {
  if (given === undefined || given === null) return;
  let item: Changeable;
  let shared: readonly Changeable[];
  try {
    item = { ...resolve({ root: document }, given, "its path") };
    shared = readParameters(document, item.parameters, clone);
  } catch (error) {
    // The operations next to a reference get the reason too.
    const others = Object.entries(Object(given)).filter(([, each]) => isObject(each));
    return { ...Object.fromEntries(others.map(([key]) => [key, toMarked(error)])), ...toMarked(error) };
  }
  delete item.parameters;
  for (const method of METHODS) {
    if (item[method] !== undefined) item[method] = prepareOperation(document, { given: item[method], shared }, clone);
  }
  return item;
}

interface GivenOperation {
  readonly given: unknown;
  /** The parameters of the path. */
  readonly shared: readonly Changeable[];
}

function prepareOperation(document: Changeable, { given, shared }: GivenOperation, clone: Clone): Changeable {
  try {
    const operation: Changeable = { ...resolve({ root: document }, given, "it") };
    const own = readParameters(document, operation.parameters, clone);
    const names = new Set(own.map(toKey));
    operation.parameters = [...shared.filter((each) => !names.has(toKey(each))).map(clone), ...own];
    keepTexts(operation, "consumes");
    keepTexts(operation, "produces");
    if (isObject(operation.responses)) keepObjects(operation.responses);
    else delete operation.responses;
    return operation;
  } catch (error) {
    const { parameters: _, ...operation } = Object(given);
    return { ...operation, ...toMarked(error) };
  }
}

/** Returns the mark of a part that cannot be read. */
function toMarked(error: unknown): Changeable {
  if (error instanceof PartError) return { [PROBLEM]: error.message };
  throw error;
}

/**
 * Returns the parameters of a list, without references.
 *
 * @throws {PartError} if a parameter cannot be read.
 */
function readParameters(document: Changeable, given: unknown, clone: Clone): Changeable[] {
  return toParameterList(given).map((each) => {
    const parameter: Changeable = clone({ ...resolve({ root: document }, each, "its parameter") });
    const { name, in: place, type, collectionFormat = "csv" } = parameter;
    if (place === "body") return { ...parameter, name: String(name ?? "body") };
    if (typeof name !== "string" || !name) throw new PartError(`its parameter has the name ${show(name)}; use a text`);
    if (typeof place !== "string" || !PLACES.includes(place)) {
      throw new PartError(`its parameter ${show(name)} has the place ${show(place)}; use ${PLACES.join(", ")} or body`);
    }
    if (type === "array" && (place === "formData" || collectionFormat === "tsv")) {
      parameter[LIST_FORMAT] = FORMATS.includes(collectionFormat) ? collectionFormat : "csv";
    }
    return parameter;
  });
}

const FORMATS: readonly unknown[] = ["csv", "ssv", "tsv", "pipes", "multi"];

const PLACES: readonly string[] = ["path", "query", "header", "formData"];

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
