/**
 * One field of a form that a server wants to have filled in.
 *
 * @see specification/2026-07-28/client/elicitation
 * @module
 */
import { findFieldMisfit } from "../../client/form_answer.ts";
import { isObject, type Params } from "../../protocol/jsonrpc.ts";
import { toLine, toPlain } from "./terminal_text.ts";
import { describeType } from "./schema_text.ts";

/** What a field can hold. */
export type FieldValue = string | number | boolean | readonly string[];

/** A field. */
export interface Field {
  readonly name: string;
  /** What is asked, over as many lines as it takes; the last one is open for the answer. */
  readonly question: string;
  readonly isRequired: boolean;
  /** Whether it takes several values. */
  readonly isList: boolean;
  /** Whether there is a value that is taken if none is typed. */
  readonly hasDefault: boolean;
  /** What was typed as a value, or why it cannot be one. */
  read(text: string): { readonly value: FieldValue } | { readonly problem: string };
}

interface Choice {
  readonly value: string;
  readonly title: string;
}

const MOST_CHOICES = 50;

/** The fields of a form. */
export function toFields({ properties, required }: Params): readonly Field[] {
  const names: readonly unknown[] = Array.isArray(required) ? required : [];
  return Object.entries(isObject(properties) ? properties : {}).map(([name, schema]) =>
    toField(name, isObject(schema) ? schema : {}, names.includes(name))
  );
}

function toField(name: string, schema: Params, isRequired: boolean): Field {
  const choices = toChoices(schema.type === "array" ? schema.items : schema);
  return {
    name,
    isRequired,
    isList: schema.type === "array",
    hasDefault: schema.default !== undefined,
    question: toQuestion(name, schema, choices, isRequired),
    read(text) {
      const value = toValue(text, schema, choices);
      if (value === undefined) return { problem: `it is to be ${toHint(schema, choices)}` };
      const problem = findFieldMisfit(schema, value);
      return problem === undefined ? { value } : { problem: toLine(problem, 300) };
    },
  };
}

function toQuestion(name: string, schema: Params, choices: readonly Choice[], isRequired: boolean): string {
  const { title, description, default: usual } = schema;
  const listed = choices.slice(0, MOST_CHOICES).map(({ value, title }, i) =>
    `  ${i + 1}  ${toLine(title, 200)}${title === value ? "" : ` (${toLine(value, 100)})`}\n`
  );
  const more = choices.length - MOST_CHOICES;
  const shown = usual === undefined ? "" : ` [${toLine(Array.isArray(usual) ? usual.join(", ") : usual, 200)}]`;
  return [
    typeof description === "string" ? `  ${toPlain(description.slice(0, 4000)).trim().replaceAll("\n", "\n  ")}\n` : "",
    ...listed,
    more > 0 ? `  … and ${more} more\n` : "",
    `${toLine(title ?? name, 200)} (${toHint(schema, choices)}${isRequired ? "" : ", optional"})${shown}: `,
  ].join("");
}

function toHint(schema: Params, choices: readonly Choice[]): string {
  if (schema.type === "array") return "any of these, with commas";
  if (choices.length) return "one of these";
  if (schema.type === "boolean") return "yes or no";
  return toLine(schema.type === "string" ? schema.format ?? "text" : describeType(schema, {}), 100);
}

function toChoices(schema: unknown): readonly Choice[] {
  if (!isObject(schema)) return [];
  const { enum: values, enumNames, oneOf, anyOf = oneOf } = schema;
  const names: readonly unknown[] = Array.isArray(enumNames) ? enumNames : [];
  if (Array.isArray(values)) {
    return values.map((value, i) => ({ value: String(value), title: String(names[i] ?? value) }));
  }
  const forms = Array.isArray(anyOf) ? anyOf.filter(isObject) : [];
  return forms.map(({ const: value, title = value }) => ({ value: String(value), title: String(title) }));
}

/** What was typed, as what the field holds; nothing if it is no such thing. */
function toValue(text: string, { type }: Params, choices: readonly Choice[]): FieldValue | undefined {
  if (type === "array") {
    const chosen = text.split(",").map((part) => part.trim()).filter(Boolean).map((part) => choose(part, choices));
    return chosen.every((each) => each !== undefined) ? chosen : undefined;
  }
  if (choices.length) return choose(text, choices);
  if (type === "boolean") return /^(y|yes|true)$/i.test(text) ? true : /^(n|no|false)$/i.test(text) ? false : undefined;
  if (type !== "number" && type !== "integer") return text;
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text) ? Number(text) : undefined;
}

// A choice may itself look like a number: what is written wins over where it stands.
function choose(text: string, choices: readonly Choice[]): string | undefined {
  const folded = text.toLowerCase();
  const written = choices.find(({ value }) => value === text) ??
    choices.find(({ value, title }) => [value, title].some((each) => each.toLowerCase() === folded));
  return (written ?? (/^\d+$/.test(text) ? choices[Number(text) - 1] : undefined))?.value;
}
