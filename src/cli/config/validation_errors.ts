/**
 * Explains the issues that Zod finds in a config file.
 */
import { isObject, readAt } from "../../core/kit/json.ts";
import { listInner, listParts } from "../../core/schema/walker.ts";
import { findSuggestion } from "../../core/kit/suggestions.ts";
import type { KeyPath } from "../../ready/problem.ts";

export interface ValidationError {
  readonly path: KeyPath;
  readonly state: string;
}

/** An issue from Zod. An issue about a union contains the issues for each member. */
export interface Issue {
  readonly code?: string;
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly keys?: readonly string[];
  readonly errors?: readonly (readonly Issue[])[];
}

type Schema = Readonly<Record<string, unknown>>;

/** The value of a config file, and the JSON Schema whose descriptions explain its keys. */
interface Checked {
  readonly value: unknown;
  readonly schema: Schema;
}

/** Explains the issues that Zod finds in a value. `schema` is the Zod schema converted to JSON Schema. */
export function explainIssues(issues: readonly Issue[], value: unknown, schema: Schema): readonly ValidationError[] {
  return issues.flatMap((issue) => explain(issue, [], { value, schema }));
}

function explain(issue: Issue, base: KeyPath, checked: Checked): readonly ValidationError[] {
  const path = [...base, ...issue.path.map((key) => typeof key === "symbol" ? key.toString() : key)];
  const value = readAt(checked.value, path);
  const schemas = path.reduce(
    (parts, key) => listInner(checked.schema, parts, key),
    listParts(checked.schema, checked.schema),
  );
  if (issue.code === "invalid_union" && issue.errors) {
    const state = explainUnion(schemas, value);
    if (state) return [{ path: [...path, ...state.key === undefined ? [] : [state.key]], state: state.state }];
    const [best] = [...issue.errors].sort((a, b) => countFixes(a, value) - countFixes(b, value));
    return best.flatMap((each) => explain(each, path, checked));
  }
  if (issue.code === "unrecognized_keys") {
    const keys = listKeys(schemas);
    return (issue.keys ?? []).map((key) => {
      const suggestion = findSuggestion(key, keys);
      const remedy = suggestion === undefined ? `the known keys are ${keys.join(", ")}` : `did you mean ${suggestion}?`;
      return { path: [...path, key], state: `unknown key; ${remedy}` };
    });
  }
  const description = schemas.map(({ description }) => description).find((text) => typeof text === "string");
  const hint = description === undefined ? "" : ` (${description})`;
  if (value === undefined && path.length) return [{ path, state: `it is missing${hint}` }];
  if (issue.code === "invalid_key") {
    return [{ path, state: "it is not a valid name; use 1 to 128 letters, digits, _, - and ." }];
  }
  const message = issue.message.replace(/^Invalid (input|option|string): /, "").replace(/^Too (small|big): /, "");
  return [{ path, state: `${message}${hint}` }];
}

/** Explains a value that has keys of several members of a union, or no key that identifies a member. */
function explainUnion(
  schemas: readonly Schema[],
  value: unknown,
): { readonly key?: string; readonly state: string } | undefined {
  if (!isObject(value)) return;
  const kinds = listDistinctiveKeys(schemas);
  const present = kinds.filter((key) => key in value);
  if (present.length > 1) {
    return { key: present[1], state: `it cannot be combined with ${present[0]}; remove one of the two` };
  }
  if (kinds.length < 2 || present.length) return;
  const known = listKeys(schemas);
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  const suggestion = unknown === undefined ? undefined : findSuggestion(unknown, kinds);
  const remedy = suggestion === undefined ? "" : `; did you mean ${suggestion} instead of ${unknown}?`;
  return { state: `one of the keys ${kinds.join(", ")} is required${remedy}` };
}

function listKeys(schemas: readonly Schema[]): string[] {
  return [...new Set(schemas.flatMap(({ properties }) => isObject(properties) ? Object.keys(properties) : []))];
}

/** Keys that are required in one member of a union and missing in all other members. */
function listDistinctiveKeys(schemas: readonly Schema[]): string[] {
  const objects = schemas.filter(({ properties }) => isObject(properties));
  return [...new Set(objects.flatMap(({ required }) => Array.isArray(required) ? required.map(String) : []))]
    .filter((key) => objects.filter(({ properties }) => isObject(properties) && key in properties).length === 1);
}

/**
 * Estimates how many changes a value needs in order to match a member of a union. The user probably meant the member
 * with the lowest number. A wrong type counts most.
 */
function countFixes(issues: readonly Issue[], value: unknown): number {
  return issues.reduce((sum, { code, path, keys }) => {
    if (code === "invalid_type" && !path.length) return sum + 1000;
    const isMissing = path.length === 1 && isObject(value) && !(String(path[0]) in value);
    return sum + (isMissing ? 10 : 1) + (keys?.length ?? 0);
  }, 0);
}
