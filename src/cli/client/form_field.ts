/**
 * The fields of an elicitation form, with their prompts and input parsers.
 *
 * @see specification/2026-07-28/client/elicitation
 */
import { findFieldMisfit } from "../../core/schema/form_answer.ts";
import { listChoices, listProperties } from "../../core/schema/walker.ts";
import type { Params } from "../../client/client.ts";
import { toLine, toPlain } from "./terminal_text.ts";
import { describeExpected, describeType } from "./schema_text.ts";

export type FieldValue = string | number | boolean | readonly string[];

export interface FormField {
  readonly name: string;
  /** The text before the input. The text has one or more lines, and no line break at the end. */
  readonly prompt: string;
  readonly isRequired: boolean;
  readonly isList: boolean;
  readonly hasDefault: boolean;
  /** Parses the input, or the inputs of a list field. Returns an error if a value is not valid. */
  read(...texts: readonly string[]): { readonly value: FieldValue } | { readonly error: string };
}

interface Choice {
  readonly value: string;
  readonly title: string;
}

/** Maximum number of choices in a prompt. */
const MAX_CHOICES = 50;
/** Maximum number of choices in an error message. */
const MAX_EXPECTED = 10;

/** Converts the requested schema of a form to fields. */
export function toFields(form: Params): readonly FormField[] {
  return listProperties(form).map(({ name, schema, isRequired }) => toField(name, Object(schema), isRequired));
}

function toField(name: string, schema: Params, isRequired: boolean): FormField {
  const choices = toChoices(schema.type === "array" ? schema.items : schema);
  return {
    name,
    isRequired,
    isList: schema.type === "array",
    hasDefault: schema.default !== undefined,
    prompt: toPrompt(name, schema, choices, isRequired),
    read(...texts) {
      const value = schema.type === "array" ? parseList(texts, choices) : parseValue(texts.join(","), schema, choices);
      if (value === undefined) return { error: `expected ${toExpected(schema, choices)}` };
      const error = findFieldMisfit(schema, value);
      return error === undefined ? { value } : { error: toLine(error, 300) };
    },
  };
}

function toPrompt(name: string, schema: Params, choices: readonly Choice[], isRequired: boolean): string {
  const { title, description, default: defaultValue } = schema;
  const listed = choices.slice(0, MAX_CHOICES).map(({ value, title }, i) =>
    `  ${i + 1}  ${toLine(title, 200)}${title === value ? "" : ` (${toLine(value, 100)})`}\n`
  );
  const more = choices.length - MAX_CHOICES;
  const defaultText = Array.isArray(defaultValue) ? defaultValue.join(", ") : defaultValue;
  const shownDefault = defaultValue === undefined ? "" : ` [${toLine(defaultText, 200)}]`;
  return [
    typeof description === "string" ? `  ${toPlain(description.slice(0, 4000)).trim().replaceAll("\n", "\n  ")}\n` : "",
    ...listed,
    more > 0 ? `  … and ${more} more\n` : "",
    `${toLine(title ?? name, 200)} (${toHint(schema, choices)}${isRequired ? "" : ", optional"})${shownDefault}: `,
  ].join("");
}

function toHint(schema: Params, choices: readonly Choice[]): string {
  if (schema.type === "array") return "any of these, separated by commas";
  if (choices.length) return "one of these";
  if (schema.type === "boolean") return "yes or no";
  return toLine(schema.type === "string" ? schema.format ?? "text" : describeType(schema, {}), 100);
}

function toExpected(schema: Params, choices: readonly Choice[]): string {
  if (choices.length) return `${schema.type === "array" ? "any" : "one"} of ${showChoices(choices)}`;
  const isNumber = schema.type === "number" || schema.type === "integer";
  return isNumber ? toLine(describeExpected(schema, {}), 100) : toHint(schema, choices);
}

function showChoices(choices: readonly Choice[]): string {
  const listed = choices.slice(0, MAX_EXPECTED).map(({ value, title }) =>
    toLine(value, 100) + (title === value ? "" : ` (${toLine(title, 100)})`)
  );
  const more = choices.length - MAX_EXPECTED;
  return listed.join(", ") + (more > 0 ? ` and ${more} more` : "");
}

function toChoices(schema: unknown): readonly Choice[] {
  const { const: _, ...others } = Object(schema);
  const choices = listChoices(others) ?? [];
  return choices.map(({ value, title }) => ({ value: String(value), title: String(title ?? value) }));
}

/** Each text is one choice, or several separated by commas. Returns `undefined` if a choice is unknown. */
function parseList(texts: readonly string[], choices: readonly Choice[]): readonly string[] | undefined {
  const chosen = texts.flatMap((text) => {
    const whole = text.trim() ? findChoice(text.trim(), choices) : undefined;
    if (whole !== undefined) return [whole];
    return text.split(",").map((part) => part.trim()).filter(Boolean).map((part) => findChoice(part, choices));
  });
  return chosen.every((each) => each !== undefined) ? chosen : undefined;
}

/** Returns `undefined` if the input does not have the type of the field. */
function parseValue(text: string, { type }: Params, choices: readonly Choice[]): FieldValue | undefined {
  if (choices.length) return findChoice(text, choices);
  if (type === "boolean") return /^(y|yes|true)$/i.test(text) ? true : /^(n|no|false)$/i.test(text) ? false : undefined;
  if (type !== "number" && type !== "integer") return text;
  return /^[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?$/i.test(text) ? Number(text) : undefined;
}

/** Finds a choice by its value, its title or its number, in this order, because a value may look like a number. */
function findChoice(text: string, choices: readonly Choice[]): string | undefined {
  const lowerCase = text.toLowerCase();
  const named = choices.find(({ value }) => value === text) ??
    choices.find(({ value, title }) => [value, title].some((each) => each.toLowerCase() === lowerCase));
  return (named ?? (/^\d+$/.test(text) ? choices[Number(text) - 1] : undefined))?.value;
}
