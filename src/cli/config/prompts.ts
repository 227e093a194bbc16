/**
 * Prompts from Markdown files.
 *
 * @module
 */
import { type Prompt, prompt } from "../../library.ts";
import { Problem } from "../problem.ts";
import { toBaseName } from "../path.ts";
import { type Document, FrontMatterError, readFrontMatter, type Value } from "./front_matter.ts";
import { type Template, toTemplate } from "./template.ts";

interface Argument {
  readonly description?: string;
  readonly required: boolean;
  /** What it may be, for completion. */
  readonly values: readonly string[];
}

/**
 * A prompt from a text whose head may name it and its arguments; without arguments there, each `{{name}}` is one.
 *
 * @throws {Problem} with file and line for what cannot be read.
 */
export function readPrompt(text: string, file: string): Prompt {
  const document = attempt(file, () => readFrontMatter(text));
  const { head, bodyLine } = document;
  const refuse = (line: number, state: string) => new Problem(`Cannot use ${file}:${line}: ${state}`);
  for (const [key, { line }] of head) {
    if (!KEYS.includes(key)) throw refuse(line, `there is no key ${key}; there are ${KEYS.join(", ")}`);
  }
  const lines = readBody(document, refuse);
  const names = [...new Set(lines.flatMap(({ names }) => names))];
  const declared = head.get("arguments");
  const args = declared
    ? readArguments(declared, refuse)
    : new Map<string, Argument>(names.map((name) => [name, { required: true, values: [] }]));
  for (const name of names) {
    if (args.has(name)) continue;
    const line = bodyLine + lines.findIndex(({ names }) => names.includes(name));
    throw refuse(line, `{{${name}}} is no argument; add ${name} to the arguments in the head of the file`);
  }
  const properties = Object.fromEntries(
    [...args].map(([name, { description }]) => [name, { type: "string", description }]),
  );
  return prompt({
    name: readText(head.get("name"), "name", refuse) ?? toBaseName(file).replace(/\.[^.]*$/, ""),
    title: readText(head.get("title"), "title", refuse),
    description: readText(head.get("description"), "description", refuse),
    input: {
      type: "object",
      properties,
      required: [...args].flatMap(([name, { required }]) => required ? name : []),
    },
    complete: Object.fromEntries(
      [...args].flatMap(([name, { values }]) =>
        values.length ? [[name, (typed: string) => values.filter((value) => isBegun(value, typed))]] : []
      ),
    ),
    run: (given) => lines.map(({ fill }) => fill((name) => String(given[name] ?? ""))).join("\n").trim(),
  });
}

const KEYS = ["name", "title", "description", "arguments"];
const ARGUMENT_KEYS = ["description", "required", "values"];

type Refuse = (line: number, state: string) => Problem;

function attempt(file: string, read: () => Document): Document {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof FrontMatterError)) throw error;
    throw new Problem(`Cannot use ${file}:${error.line}: ${error.message}`);
  }
}

// Line by line, so that a mistake is found where it is.
function readBody({ body, bodyLine }: Document, refuse: Refuse): readonly Template[] {
  return body.split("\n").map((line, i) => {
    try {
      return toTemplate(line);
    } catch (error) {
      throw refuse(bodyLine + i, error instanceof Error ? error.message : String(error));
    }
  });
}

function readArguments(value: Value, refuse: Refuse): ReadonlyMap<string, Argument> {
  if ("list" in value) return new Map(value.list.map((item) => readListed(item, refuse)));
  if (!("map" in value)) {
    throw refuse(value.line, "arguments are no list of names; write [first, second], or a line for each");
  }
  return new Map([...value.map].map(([name, told]) => [name, readArgument(name, told, refuse)]));
}

/** An argument of a list: a name, or a map that has one. */
function readListed(item: Value, refuse: Refuse): [string, Argument] {
  if ("text" in item) return [item.text, { required: true, values: [] }];
  const name = "map" in item ? readText(item.map.get("name"), "name", refuse) : undefined;
  if (!("map" in item) || name === undefined) throw refuse(item.line, "an argument has no name; write name: …");
  const { line } = item;
  const map = new Map([...item.map].filter(([key]) => key !== "name"));
  return [name, readArgument(name, { line, map }, refuse)];
}

function readArgument(name: string, told: Value, refuse: Refuse): Argument {
  if ("text" in told) return { description: told.text || undefined, required: true, values: [] };
  if ("list" in told) throw refuse(told.line, `${name} is a list; write ${name}: description, or further lines`);
  for (const [key, { line }] of told.map) {
    if (ARGUMENT_KEYS.includes(key)) continue;
    throw refuse(line, `there is no key ${key}; an argument has ${ARGUMENT_KEYS.join(", ")}`);
  }
  const required = readText(told.map.get("required"), "required", refuse) ?? "true";
  if (required !== "true" && required !== "false") {
    throw refuse(told.map.get("required")?.line ?? told.line, `required is ${required}; write true or false`);
  }
  const description = readText(told.map.get("description"), "description", refuse);
  return { description, required: required === "true", values: readValues(told.map.get("values"), refuse) };
}

function readValues(value: Value | undefined, refuse: Refuse): readonly string[] {
  if (!value) return [];
  if (!("list" in value)) throw refuse(value.line, "values is no list; write [first, second]");
  return value.list.map((item) => readText(item, "a value", refuse) ?? "");
}

function readText(value: Value | undefined, key: string, refuse: Refuse): string | undefined {
  if (!value || "text" in value) return value?.text || undefined;
  throw refuse(value.line, `${key} is no text; put it in quotes`);
}

function isBegun(value: string, typed: string): boolean {
  return value.toLowerCase().startsWith(typed.toLowerCase());
}
