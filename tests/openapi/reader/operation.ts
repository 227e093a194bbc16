// Reads the operations of a document: parameters, body, and parts that cannot be read.

import {
  followReference,
  isAtLeast,
  isObject,
  listMember,
  member,
  type ObjectValue,
  readPropertyNames,
  readVersion,
  resolveReference,
  textMember,
  type Version,
} from "./document.ts";

export type Place = "path" | "query" | "querystring" | "header" | "cookie";

export interface Parameter {
  readonly name: string;
  readonly place: Place;
  readonly isRequired: boolean;
  readonly argument: string;
  /** The Parameter Object; an empty object for a path parameter that the document forgot. */
  readonly holder: ObjectValue;
}

export interface Body {
  readonly isRequired: boolean;
  /** Media types with their Media Type Objects. For 2.0 the object holds the schema only. */
  readonly media: readonly (readonly [string, ObjectValue])[];
  /** The `in: formData` parameters of 2.0. */
  readonly fields?: readonly ObjectValue[];
  /** False when the document names no media type, so that several are right. */
  readonly isTypeKnown: boolean;
}

export interface Operation {
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly body?: Body;
  readonly missing: readonly string[];
}

const METHODS: Readonly<Record<Version, readonly string[]>> = {
  "2.0": ["get", "put", "post", "delete", "options", "head", "patch"],
  "3.0": ["get", "put", "post", "delete", "options", "head", "patch", "trace"],
  "3.1": ["get", "put", "post", "delete", "options", "head", "patch", "trace"],
  "3.2": ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"],
};

const PLACES: Readonly<Record<Version, readonly string[]>> = {
  "2.0": ["path", "query", "header", "body", "formData"],
  "3.0": ["path", "query", "header", "cookie"],
  "3.1": ["path", "query", "header", "cookie"],
  "3.2": ["path", "query", "header", "cookie", "querystring"],
};

/** "The parameter definition SHALL be ignored" (Parameter Object, `name`). */
const IGNORED_HEADERS: readonly string[] = ["accept", "content-type", "authorization"];

/** Headers that belong to the connection or to another part of the message, so that no argument sets them. */
export const CONNECTION_HEADERS: readonly string[] = [
  "host",
  "cookie",
  "connection",
  "content-length",
  "transfer-encoding",
  "keep-alive",
  "te",
  "trailer",
  "upgrade",
  "expect",
  "proxy-connection",
  "proxy-authorization",
];

export function argumentName(name: string): string {
  const plain = name.replace(/\]$/, "").normalize("NFKD").replace(/\p{M}/gu, "");
  return plain.replace(/[^A-Za-z0-9_-]+/g, "_").replace(/^_+|_+$/g, "").slice(0, 64) || "value";
}

/** The expressions of a path template. A name is any text without braces (Path Templating). */
export function templateNames(path: string): readonly string[] {
  return [...path.matchAll(/\{([^{}]+)\}/g)].map((match) => match[1] ?? "");
}

interface Item {
  readonly item: ObjectValue;
  readonly problems: readonly string[];
}

/**
 * Readings of a path item with `$ref`: "In case a Path Item Object field appears both in the defined object and the
 * referenced object, the behavior is undefined" (Path Item Object), so either one may win.
 */
function readPathItem(document: ObjectValue, value: unknown): readonly Item[] {
  if (!isObject(value)) return [{ item: {}, problems: [] }];
  if (textMember(value, "$ref") === undefined) return [{ item: value, problems: [] }];
  const { $ref: _, ...own } = value;
  const followed = followReference(document, value);
  if (followed.problem !== undefined) return [{ item: own, problems: [followed.problem] }];
  const target = followed.value ?? {};
  const readings: readonly ObjectValue[] = [{ ...target, ...own }, { ...own, ...target }];
  const isConflict = Object.keys(own).some((key) => Object.hasOwn(target, key));
  return readings.slice(0, isConflict ? 2 : 1).map((item) => ({ item, problems: [] }));
}

/** All operations of a path item: fixed fields, and `additionalOperations` of 3.2. */
function operationsOf(version: Version, item: ObjectValue): readonly (readonly [string, ObjectValue, string[]])[] {
  const found: (readonly [string, ObjectValue, string[]])[] = [];
  for (const method of METHODS[version]) {
    const operation = member(item, method);
    if (isObject(operation)) found.push([method.toUpperCase(), operation, []]);
  }
  const additional = version === "3.2" ? member(item, "additionalOperations") : undefined;
  for (const [method, operation] of Object.entries(additional ?? {})) {
    if (!isObject(operation)) continue;
    const isFixed = METHODS["3.2"].includes(method.toLowerCase()) && method === method.toUpperCase();
    const problems = isFixed ? [`additionalOperations must not have ${method}, which has a field of its own.`] : [];
    found.push([method, operation, problems]);
  }
  return found;
}

/** Documents are never changed, and many requests are compared with one document. */
const KNOWN = new WeakMap<ObjectValue, readonly (readonly Operation[])[]>();

/** Every reading of every operation: usually one each. */
export function readOperations(document: ObjectValue): readonly (readonly Operation[])[] {
  const known = KNOWN.get(document) ?? readAll(document);
  KNOWN.set(document, known);
  return known;
}

function readAll(document: ObjectValue): readonly (readonly Operation[])[] {
  const version = readVersion(document);
  const paths = member(document, "paths");
  const all: (readonly Operation[])[] = [];
  for (const [path, value] of Object.entries(paths ?? {})) {
    if (path.startsWith("x-")) continue;
    const byMethod = new Map<string, Operation[]>();
    for (const { item, problems } of readPathItem(document, value)) {
      for (const [method, operation, own] of operationsOf(version, item)) {
        const list = byMethod.get(method) ?? [];
        list.push(readOne(document, version, path, method, item, operation, [...problems, ...own]));
        byMethod.set(method, list);
      }
    }
    all.push(...byMethod.values());
  }
  return all;
}

/** References of path items that lead nowhere hide whole operations, so they are listed apart. */
export function lostPathItems(document: ObjectValue): readonly (readonly [string, string])[] {
  const lost: (readonly [string, string])[] = [];
  for (const [path, value] of Object.entries(member(document, "paths") ?? {})) {
    if (path.startsWith("x-")) continue;
    for (const { problems } of readPathItem(document, value)) {
      for (const problem of problems) lost.push([path, problem]);
    }
  }
  return lost;
}

interface Found {
  readonly name: string;
  readonly place: string;
  readonly holder: ObjectValue;
}

function readOne(
  document: ObjectValue,
  version: Version,
  path: string,
  method: string,
  item: ObjectValue,
  operation: ObjectValue,
  problems: readonly string[],
): Operation {
  const missing: string[] = [...problems];
  // A parameter of the operation replaces one of the path item with the same name and place (Operation Object).
  const found = new Map<string, Found>();
  for (const holder of [item, operation]) {
    for (const one of readParameters(document, version, member(holder, "parameters"), missing)) {
      found.set(`${one.place} ${one.name}`, one);
    }
  }
  const sent = readSchemes(document, version, operation, missing);
  const inTemplate = templateNames(path);
  const kept = [...found.values()].filter((one) => {
    if (one.place === "body" || one.place === "formData") return false;
    // A path parameter MUST correspond to an expression of the template; without one it has nowhere to go.
    if (one.place === "path") return inTemplate.includes(one.name);
    if (one.place === "header") {
      const name = one.name.toLowerCase();
      if (IGNORED_HEADERS.includes(name) || CONNECTION_HEADERS.includes(name)) return false;
      return !sent.has(`header ${name}`);
    }
    return !sent.has(`${one.place} ${one.name}`);
  });
  for (const name of new Set(inTemplate)) {
    if (!found.has(`path ${name}`)) kept.push({ name, place: "path", holder: {} });
  }
  const strings = kept.filter((one) => one.place === "querystring").length;
  if (strings > 1) missing.push("There is more than one querystring parameter.");
  if (strings > 0 && kept.some((one) => one.place === "query")) {
    missing.push("A querystring parameter must not be used together with query parameters.");
  }

  const body = readBody(document, version, method, operation, [...found.values()], missing);
  const counts = new Map<string, number>(body === undefined ? [] : [["body", 1]]);
  for (const one of kept) {
    const argument = argumentName(one.name);
    counts.set(argument, (counts.get(argument) ?? 0) + 1);
  }
  const parameters = kept.map((one): Parameter => {
    const argument = argumentName(one.name);
    return {
      name: one.name,
      place: one.place as Place,
      isRequired: one.place === "path" || member(one.holder, "required") === true,
      argument: (counts.get(argument) ?? 0) > 1 ? `${argument}_${one.place}` : argument,
      holder: one.holder,
    };
  });
  return { method, path, parameters, ...body === undefined ? {} : { body }, missing };
}

function readParameters(document: ObjectValue, version: Version, list: unknown, missing: string[]): readonly Found[] {
  if (list === undefined || list === null) return [];
  if (!Array.isArray(list)) {
    missing.push("`parameters` must be a list.");
    return [];
  }
  const found: Found[] = [];
  for (const entry of list) {
    const { value, problem } = followReference(document, entry);
    if (value === undefined) {
      missing.push(problem ?? "A parameter cannot be read.");
      continue;
    }
    const name = textMember(value, "name");
    const place = textMember(value, "in");
    if (name === undefined || place === undefined) {
      missing.push("A parameter has no `name` or no `in`.");
      continue;
    }
    if (!PLACES[version].includes(place)) {
      missing.push(`The parameter ${name} has the place ${place}, which version ${version} does not have.`);
      continue;
    }
    if (place === "querystring" && !isObject(member(value, "content"))) {
      missing.push(`The querystring parameter ${name} must have \`content\`.`);
      continue;
    }
    for (const media of Object.values(member(value, "content") ?? {})) {
      const target = followReference(document, media);
      if (isObject(media) && target.problem !== undefined) missing.push(target.problem);
    }
    found.push({ name, place, holder: value });
  }
  return found;
}

/** What the security schemes of the operation send, as `place name`. */
function readSchemes(
  document: ObjectValue,
  version: Version,
  operation: ObjectValue,
  missing: string[],
): ReadonlySet<string> {
  const sent = new Set<string>();
  const own = member(operation, "security");
  const requirements = own === undefined ? listMember(document, "security") : listMember(operation, "security");
  const schemes = version === "2.0"
    ? member(document, "securityDefinitions")
    : member(member(document, "components"), "securitySchemes");
  for (const requirement of requirements) {
    if (!isObject(requirement)) continue;
    for (const name of Object.keys(requirement)) {
      // 3.2: the key is the name of a component, or else a URI.
      const named = member(schemes, name) ??
        (isAtLeast(version, "3.2") && name.includes("#") ? resolveReference(document, name) : undefined);
      if (named === undefined) {
        missing.push(`The security scheme ${name} is not in the document.`);
        continue;
      }
      const { value, problem } = followReference(document, named);
      if (value === undefined) {
        missing.push(problem ?? `The security scheme ${name} cannot be read.`);
        continue;
      }
      const key = textMember(value, "name");
      const place = textMember(value, "in");
      if (textMember(value, "type") !== "apiKey" || key === undefined || place === undefined) continue;
      sent.add(`${place} ${place === "header" ? key.toLowerCase() : key}`);
    }
  }
  return sent;
}

function readBody(
  document: ObjectValue,
  version: Version,
  method: string,
  operation: ObjectValue,
  found: readonly Found[],
  missing: string[],
): Body | undefined {
  // By agreement GET and HEAD have no body. TRACE must not have one in HTTP.
  const isBodyless = ["GET", "HEAD", "TRACE"].includes(method);
  if (version === "2.0") {
    const bodies = found.filter((one) => one.place === "body");
    const fields = found.filter((one) => one.place === "formData");
    // "There can be one `body` parameter at most", and "body and form parameters cannot exist together".
    if (bodies.length > 1) missing.push("There is more than one body parameter.");
    if (bodies.length > 0 && fields.length > 0) missing.push("Body and form parameters cannot exist together.");
    if (isBodyless) return undefined;
    // An empty list of the operation clears the global one (Operation Object, `consumes`).
    const consumes = member(operation, "consumes") ?? member(document, "consumes");
    const types = Array.isArray(consumes) ? consumes.filter((type) => typeof type === "string") : [];
    const first = bodies[0];
    if (first !== undefined) {
      const schema = member(first.holder, "schema");
      const media: ObjectValue = schema === undefined ? {} : { schema };
      return {
        isRequired: member(first.holder, "required") === true,
        media: (types.length > 0 ? types : ["application/json"]).map((type) => [type, media]),
        isTypeKnown: types.length > 0,
      };
    }
    if (fields.length === 0) return undefined;
    const hasFile = fields.some((one) => isFileField(one.holder));
    const forms = types.filter((type) => /^(multipart\/form-data|application\/x-www-form-urlencoded)\b/i.test(type));
    const fallback = hasFile ? ["multipart/form-data"] : ["multipart/form-data", "application/x-www-form-urlencoded"];
    return {
      isRequired: fields.some((one) => member(one.holder, "required") === true),
      media: (forms.length > 0 ? forms : fallback).map((type) => [type, {}]),
      fields: fields.map((one) => one.holder),
      isTypeKnown: forms.length > 0,
    };
  }
  const given = member(operation, "requestBody");
  if (given === undefined || given === null || isBodyless) return undefined;
  const { value, problem } = followReference(document, given);
  if (value === undefined) {
    missing.push(problem ?? "The body cannot be read.");
    return undefined;
  }
  const media: (readonly [string, ObjectValue])[] = [];
  for (const [type, entry] of Object.entries(member(value, "content") ?? {})) {
    const target = followReference(document, entry);
    if (isObject(entry) && target.problem !== undefined) missing.push(target.problem);
    media.push([type, target.value ?? {}]);
  }
  return { isRequired: member(value, "required") === true, media, isTypeKnown: media.length > 0 };
}

export function isFileField(field: ObjectValue): boolean {
  return member(field, "type") === "file" || member(member(field, "items"), "type") === "file";
}

/** The order of preference among media types of one body, by agreement. */
export function mediaRank(type: string): number {
  const essence = type.split(";")[0]?.trim().toLowerCase() ?? "";
  if (essence === "application/json" || essence === "text/json" || essence.endsWith("+json")) return 0;
  if (essence === "multipart/form-data") return 1;
  if (essence === "application/x-www-form-urlencoded") return 2;
  if (essence.endsWith("/xml") || essence.endsWith("+xml")) return 4;
  if (essence.startsWith("text/")) return 3;
  return 5;
}

/** Names of the members of a body, where all preferred media types agree on them. */
export function bodyMembers(document: ObjectValue, body: Body): readonly string[] | undefined {
  if (body.fields !== undefined) return body.fields.map((field) => String(member(field, "name")));
  const best = Math.min(...body.media.map(([type]) => mediaRank(type)));
  const preferred = body.media.filter(([type]) => mediaRank(type) === best);
  const first = preferred[0];
  return first === undefined ? undefined : readPropertyNames(document, member(first[1], "schema"));
}
