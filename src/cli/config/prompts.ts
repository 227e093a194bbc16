/**
 * Prompts from Markdown files.
 */
import { type Prompt, prompt } from "../../library.ts";
import { CliError } from "../cli_error.ts";
import { toBaseName } from "../../ready/files/path.ts";
import { type Document, FrontMatterError, parseMarkdown, type Value } from "./front_matter.ts";
import { parseTemplate, type Template } from "../../ready/template.ts";

interface Argument {
  readonly description?: string;
  readonly required: boolean;
  /** Values that completion suggests. */
  readonly values: readonly string[];
}

/**
 * Creates a prompt from a Markdown file. Its front matter may declare the name and the arguments. If no arguments are
 * declared, each `{{name}}` in the text is an argument.
 *
 * @throws {CliError} with file and line if the file cannot be used.
 */
export function readPrompt(text: string, file: string): Prompt {
  const document = parseFile(text, file);
  const { frontMatter, bodyLine } = document;
  const toProblem = (line: number, state: string) => new CliError(`Cannot use ${file}:${line}: ${state}`);
  for (const [key, { line }] of frontMatter) {
    if (!KEYS.includes(key)) throw toProblem(line, `unknown key ${key}; the known keys are ${KEYS.join(", ")}`);
  }
  const lines = parseBody(document, toProblem);
  const names = [...new Set(lines.flatMap(({ names }) => names))];
  const declared = frontMatter.get("arguments");
  const args = declared
    ? readArguments(declared, toProblem)
    : new Map<string, Argument>(names.map((name) => [name, { required: true, values: [] }]));
  for (const name of names) {
    if (args.has(name)) continue;
    const line = bodyLine + lines.findIndex(({ names }) => names.includes(name));
    throw toProblem(line, `{{${name}}} is not an argument; add ${name} to the arguments in the front matter`);
  }
  const properties = Object.fromEntries(
    [...args].map(([name, { description }]) => [name, { type: "string", description }]),
  );
  return prompt({
    name: readText(frontMatter.get("name"), "name", toProblem) ?? toBaseName(file).replace(/\.[^.]*$/, ""),
    title: readText(frontMatter.get("title"), "title", toProblem),
    description: readText(frontMatter.get("description"), "description", toProblem),
    input: {
      type: "object",
      properties,
      required: [...args].flatMap(([name, { required }]) => required ? name : []),
    },
    complete: Object.fromEntries(
      [...args].flatMap(([name, { values }]) =>
        values.length ? [[name, (typed: string) => values.filter((value) => startsWith(value, typed))]] : []
      ),
    ),
    run: (input) => lines.map(({ fill }) => fill((name) => String(input[name] ?? ""))).join("\n").trim(),
  });
}

const KEYS = ["name", "title", "description", "arguments"];
const ARGUMENT_KEYS = ["description", "required", "values"];

type ToProblem = (line: number, state: string) => CliError;

function parseFile(text: string, file: string): Document {
  try {
    return parseMarkdown(text);
  } catch (error) {
    if (!(error instanceof FrontMatterError)) throw error;
    throw new CliError(`Cannot use ${file}:${error.line}: ${error.message}`);
  }
}

/** Parses the body line by line, so that errors have a line number. */
function parseBody({ body, bodyLine }: Document, toProblem: ToProblem): readonly Template[] {
  return body.split("\n").map((line, i) => {
    try {
      return parseTemplate(line);
    } catch (error) {
      throw toProblem(bodyLine + i, error instanceof Error ? error.message : String(error));
    }
  });
}

function readArguments(value: Value, toProblem: ToProblem): ReadonlyMap<string, Argument> {
  if ("list" in value) return new Map(value.list.map((item) => readListItem(item, toProblem)));
  if (!("map" in value)) {
    throw toProblem(
      value.line,
      "arguments is not a list of names; write [first, second], or one line for each argument",
    );
  }
  return new Map([...value.map].map(([name, declaration]) => [name, readArgument(name, declaration, toProblem)]));
}

/** Reads an item in the list of arguments: a name, or a map that contains a name. */
function readListItem(item: Value, toProblem: ToProblem): [string, Argument] {
  if ("text" in item) return [item.text, { required: true, values: [] }];
  const name = "map" in item ? readText(item.map.get("name"), "name", toProblem) : undefined;
  if (!("map" in item) || name === undefined) {
    throw toProblem(item.line, "an argument has no name; write its name, or a map with the key name");
  }
  const { line } = item;
  const map = new Map([...item.map].filter(([key]) => key !== "name"));
  return [name, readArgument(name, { line, map }, toProblem)];
}

function readArgument(name: string, declaration: Value, toProblem: ToProblem): Argument {
  if ("text" in declaration) return { description: declaration.text || undefined, required: true, values: [] };
  if ("list" in declaration) {
    throw toProblem(declaration.line, `the argument ${name} is a list; write ${name}: description, or a map`);
  }
  for (const [key, { line }] of declaration.map) {
    if (ARGUMENT_KEYS.includes(key)) continue;
    throw toProblem(line, `unknown key ${key}; the keys of an argument are ${ARGUMENT_KEYS.join(", ")}`);
  }
  const required = readText(declaration.map.get("required"), "required", toProblem) ?? "true";
  if (required !== "true" && required !== "false") {
    throw toProblem(
      declaration.map.get("required")?.line ?? declaration.line,
      `required is ${required}; write true or false`,
    );
  }
  const description = readText(declaration.map.get("description"), "description", toProblem);
  return { description, required: required === "true", values: readValues(declaration.map.get("values"), toProblem) };
}

function readValues(value: Value | undefined, toProblem: ToProblem): readonly string[] {
  if (!value) return [];
  if (!("list" in value)) throw toProblem(value.line, "values is not a list; write [first, second]");
  return value.list.map((item) => readText(item, "a value", toProblem) ?? "");
}

function readText(value: Value | undefined, key: string, toProblem: ToProblem): string | undefined {
  if (!value || "text" in value) return value?.text || undefined;
  throw toProblem(value.line, `${key} is a list or a map; write a single string`);
}

function startsWith(value: string, typed: string): boolean {
  return value.toLowerCase().startsWith(typed.toLowerCase());
}
