/**
 * What is wrong in a config file, in words that say what would be right.
 *
 * @module
 */
import { isObject } from "../../protocol/jsonrpc.ts";
import { findSuggestion } from "../suggestions.ts";
import type { Path } from "./jsonc.ts";

/** One mistake. */
export interface Mistake {
  readonly path: Path;
  readonly state: string;
}

/** What the schema library finds; a value may fit none of several forms, each for reasons of its own. */
export interface Issue {
  readonly code?: string;
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly keys?: readonly string[];
  readonly errors?: readonly (readonly Issue[])[];
}

type Schema = Readonly<Record<string, unknown>>;

/** Turns what the schema library finds into mistakes. `schema` is the same schema as JSON, whose descriptions help. */
export function toMistakes(issues: readonly Issue[], value: unknown, schema: Schema): readonly Mistake[] {
  return issues.flatMap((issue) => explain(issue, [], value, schema));
}

function explain(issue: Issue, base: Path, root: unknown, schema: Schema): readonly Mistake[] {
  const path = [...base, ...issue.path.map((key) => typeof key === "symbol" ? key.toString() : key)];
  const value = path.reduce(step, root);
  const found = path.reduce((forms: readonly Schema[], key) => forms.flatMap((form) => descend(form, key)), [schema]);
  if (issue.code === "invalid_union" && issue.errors) {
    const kinds = listKinds(found, value);
    const given = isObject(value) ? kinds.filter((key) => key in value) : [];
    if (given.length > 1) {
      return [{ path: [...path, given[1]], state: `it stands beside ${given[0]}; keep one of the two` }];
    }
    if (isObject(value) && kinds.length > 1 && !given.length) {
      const [unknown] = Object.keys(value).filter((key) => !listKeys(found).includes(key));
      const near = unknown === undefined ? undefined : findSuggestion(unknown, kinds);
      const hint = near === undefined ? "" : `; did you mean ${near} where it says ${unknown}?`;
      return [{ path, state: `it needs one of ${kinds.join(", ")}${hint}` }];
    }
    const [best] = [...issue.errors].sort((a, b) => weigh(a, value) - weigh(b, value));
    return best.flatMap((each) => explain(each, path, root, schema));
  }
  if (issue.code === "unrecognized_keys") {
    const keys = listKeys(found);
    return (issue.keys ?? []).map((key) => {
      const near = findSuggestion(key, keys);
      const hint = near === undefined ? `there are ${keys.join(", ")}` : `did you mean ${near}?`;
      return { path: [...path, key], state: `there is no such key; ${hint}` };
    });
  }
  const description = found.map(({ description }) => description).find((text) => typeof text === "string");
  const told = description === undefined ? "" : ` (${description})`;
  if (value === undefined && path.length) return [{ path, state: `it is missing${told}` }];
  if (issue.code === "invalid_key") return [{ path, state: "a name is 1 to 128 letters, digits, _, - and ." }];
  const message = issue.message.replace(/^Invalid (input|option|string): /, "").replace(/^Too (small|big): /, "");
  return [{ path, state: `${message}${told}` }];
}

function step(value: unknown, key: string | number): unknown {
  return isObject(value) || Array.isArray(value) ? Object.getOwnPropertyDescriptor(value, key)?.value : undefined;
}

function toForms(schema: unknown): readonly Schema[] {
  if (!isObject(schema)) return [];
  return [schema, ...(Array.isArray(schema.anyOf) ? schema.anyOf.flatMap(toForms) : [])];
}

function descend(schema: Schema, key: string | number): readonly Schema[] {
  return toForms(schema).flatMap(({ properties, additionalProperties, items }) =>
    typeof key === "number"
      ? toForms(items)
      : toForms(isObject(properties) && Object.hasOwn(properties, key) ? properties[key] : additionalProperties)
  );
}

function listKeys(forms: readonly Schema[]): string[] {
  const all = forms.flatMap(toForms);
  return [...new Set(all.flatMap(({ properties }) => isObject(properties) ? Object.keys(properties) : []))];
}

/** The keys that tell the forms of an object apart: each is required in one of them, and not known to the others. */
function listKinds(forms: readonly Schema[], value: unknown): string[] {
  const all = [...new Set(forms.flatMap(toForms))];
  const objects = all.filter(({ properties }) => isObject(properties) && isObject(value));
  return [...new Set(objects.flatMap(({ required }) => Array.isArray(required) ? required.map(String) : []))]
    .filter((key) => objects.filter(({ properties }) => isObject(properties) && key in properties).length === 1);
}

// The form that was meant is the one with the least to mend; a value of another type is not it.
function weigh(issues: readonly Issue[], value: unknown): number {
  return issues.reduce((sum, { code, path, keys }) => {
    if (code === "invalid_type" && !path.length) return sum + 1000;
    const isMissing = path.length === 1 && isObject(value) && !(String(path[0]) in value);
    return sum + (isMissing ? 10 : 1) + (keys?.length ?? 0);
  }, 0);
}
