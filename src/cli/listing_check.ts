/**
 * Checks a server's tools, resources and prompts for properties that cause problems for clients or models.
 */
import type { ListedPrompt, ListedResource, ListedTemplate, ListedTool } from "../client/client.ts";
import { isObject } from "../core/kit/json.ts";
import { shorten } from "../core/kit/shorten.ts";
import { findHeaderParams, loadSchemaCompiler } from "../host.ts";
import type { JsonSchema } from "../library.ts";
import { type Finding, type Problem, toSentence } from "./finding.ts";
import { checkDirectories, type Directory, findContradiction, listParts } from "./directories.ts";
import { findInvisible, findOrder } from "./model_text.ts";

export interface Listing {
  readonly tools: readonly ListedTool[];
  /** The tools that clients see first, if the server has a search. The other tools take no tokens before a search. */
  readonly shortTools?: readonly ListedTool[];
  readonly resources: readonly ListedResource[];
  readonly templates: readonly ListedTemplate[];
  readonly prompts: readonly ListedPrompt[];
  /** What the server says to a model. */
  readonly instructions?: string;
}

/** Adds the number of the rule, which means nothing to a user who has named no directory. */
export function toNumbered(finding: Problem, { length }: readonly Directory[]): string {
  return toSentence(finding) + (length && finding.rule ? ` [${finding.rule}]` : "");
}

/** Number of items with the same problem above which the report counts them. */
const MAX_SAME = 3;

/** Returns a line for each finding. Many items with the same problem have one line. */
export function toFindingLines(findings: readonly Finding[], directories: readonly Directory[]): readonly string[] {
  const groups = Map.groupBy(findings, (each) => `${each.level} ${toSentence(each)}`);
  return [...groups.values()].flatMap((same) => {
    const toLine = (place: string) => `${same[0].level}: ${place}: ${toNumbered(same[0], directories)}`;
    if (same.length <= MAX_SAME) return same.map(({ place }) => toLine(place));
    const names = same.slice(0, MAX_SAME).map(({ place }) => place).join(", ");
    return [toLine(`${names} and ${same.length - MAX_SAME} more`)];
  });
}

const compileJsonSchema = await loadSchemaCompiler();

type Report = (level: Finding["level"], state: string, fix?: string) => void;

/** Names that common clients can pass to their models. */
const NAME = /^[\w-]{1,64}$/;
/**
 * Length of a tool's name, in characters, above which some clients omit the tool. These clients limit the total length
 * of the server's name and the tool's name to 60 characters.
 */
const LONG_NAME = 50;
/** Number of tools above which some clients do not offer all tools to a model. */
const MAX_TOOLS = 40;
/** Number of tokens of all listed tools above which `check` suggests a search, and `openapi` adds a search. */
export const MANY_TOKENS = 10_000;
const SEARCH = "add toolSearch() of @x/mcp/search, or search: true in a config file";
const DESCRIBE = "describe its purpose";
/** Length, in characters, above which some clients truncate a description. */
const MAX_DESCRIPTION = 1024;

export interface CheckOptions {
  /** Maximum number of tokens for all tools together. */
  readonly maxTokens: number;
  /**
   * Whether the user is the author of the schemas. Patterns from other authors are neither compiled nor run, because a
   * pattern with catastrophic backtracking may run forever.
   */
  readonly isTrusted: boolean;
  /** The directories whose rules are checked too. Defaults to none. */
  readonly directories?: readonly Directory[];
}

export function checkListing(
  listing: Listing,
  { maxTokens, isTrusted, directories = [] }: CheckOptions,
): readonly Finding[] {
  const { tools, resources, templates, prompts } = listing;
  const findings: Finding[] = [];
  const reportAt = (place: string): Report => (level, state, fix) =>
    findings.push({ level, place, state, ...fix === undefined ? {} : { fix } });
  const addTexts = (place: string, item: unknown) =>
    findings.push(...checkTexts(item, directories.length > 0).map((finding) => ({ place, ...finding })));
  const listed = new Set((listing.shortTools ?? tools).map(({ name }) => name));
  // The tools of a search are only in the short list.
  const searching = (listing.shortTools ?? []).filter(({ name }) => !tools.some((tool) => tool.name === name));
  for (const tool of tools) {
    const place = `tool ${tool.name}`;
    checkTool(tool, reportAt(place), { isTrusted, isListed: listed.has(tool.name) });
    const contradiction = findContradiction(tool);
    if (contradiction) findings.push({ place, ...contradiction });
    // The rules of directories say more about missing hints.
    if (!directories.length) checkHints(tool, reportAt(place));
    addTexts(place, tool);
  }
  findings.push(...checkDirectories({ ...listing, tools: [...searching, ...tools] }, directories));
  for (const prompt of prompts) {
    checkPrompt(prompt, reportAt(`prompt ${prompt.name}`));
    addTexts(`prompt ${prompt.name}`, prompt);
  }
  for (const template of templates) {
    checkDescription(template, reportAt(`template ${template.uriTemplate}`));
    addTexts(`template ${template.uriTemplate}`, template);
  }
  addTexts("instructions", listing.instructions);
  const uris = new Set<string>();
  for (const { uri, ...resource } of resources) {
    addTexts(`resource ${uri}`, resource);
    if (uris.has(uri)) reportAt(`resource ${uri}`)("warning", "it is listed twice", "change one of the two URIs");
    uris.add(uri);
  }
  const shown = listing.shortTools ?? tools;
  const tokens = shown.reduce((sum, tool) => sum + toTokens(tool), 0);
  if (tokens > maxTokens) {
    reportAt("tools")(
      "error",
      `the tools take about ${tokens} tokens, more than ${maxTokens}`,
      `shorten descriptions, or ${SEARCH}`,
    );
  } else if (tokens > MANY_TOKENS) {
    reportAt("tools")("warning", `the tools take about ${tokens} tokens of a model's context`, SEARCH);
  }
  if (shown.length > MAX_TOOLS) {
    reportAt("tools")(
      "warning",
      `the server has ${shown.length} tools, and some clients offer at most ${MAX_TOOLS} tools to a model`,
      `offer fewer tools, or ${SEARCH}`,
    );
  }
  return findings;
}

/** Estimates the number of tokens that a tool takes in a model's context, at four characters per token. */
export function toTokens({ name, description, inputSchema }: ListedTool): number {
  try {
    return Math.ceil(JSON.stringify({ name, description, inputSchema }).length / 4);
  } catch {
    return Infinity; // `JSON.stringify` failed, because the schema is nested too deeply.
  }
}

function checkTool(
  { name, title, description, inputSchema, outputSchema }: ListedTool,
  report: Report,
  { isTrusted, isListed }: { readonly isTrusted: boolean; readonly isListed: boolean },
): void {
  // Clients do not read the names and descriptions of tools behind a search, which writes them as text.
  if (isListed) checkName(name, report);
  if (!description?.trim()) {
    report(
      // A search shows the title instead.
      !isListed && title?.trim() ? "warning" : "error",
      "it has no description, so a model cannot know when to call the tool",
      "describe what the tool does",
    );
  } else if (isListed && description.length > MAX_DESCRIPTION) {
    report(
      "warning",
      `its description has ${description.length} characters, and some clients truncate descriptions to ` +
        `${MAX_DESCRIPTION} characters`,
      "shorten the description",
    );
  }
  checkInput(inputSchema, report, isTrusted);
  try {
    if (outputSchema) compileJsonSchema(outputSchema, { name: "its output schema", ignoresPatterns: !isTrusted });
    findHeaderParams(inputSchema);
  } catch (error) {
    report("error", error instanceof Error ? error.message : String(error));
  }
  if (outputSchema && outputSchema.type !== "object") {
    report("warning", "its output is not an object, but clients of older revisions require an object");
  }
}

function checkHints({ title, annotations = {} }: ListedTool, report: Report): void {
  const { readOnlyHint, destructiveHint } = annotations;
  if (typeof readOnlyHint === "boolean" || typeof destructiveHint === "boolean") return;
  const hasTitle = !!(title ?? annotations.title);
  report(
    "warning",
    `it has ${hasTitle ? "" : "no title and "}no hints, so clients treat it as a tool that may delete data`,
    `set ${hasTitle ? "" : "title, and "}annotations: readOnlyHint if it only reads, or else destructiveHint`,
  );
}

/** Reports texts with invisible characters, and texts with orders to the model, which are a guess. */
function checkTexts(item: unknown, isForDirectory: boolean): readonly Problem[] {
  const texts = listTexts(item);
  const invisible = texts.map(findInvisible).find((found) => found !== undefined);
  const order = texts.map(findOrder).find((found) => found !== undefined);
  return [
    ...invisible === undefined ? [] : [
      {
        level: isForDirectory ? "error" : "warning",
        rule: "D08",
        state: `its texts contain the invisible character ${invisible}, which can hide orders to the model`,
        fix: "remove the character",
      } as const,
    ],
    ...order === undefined ? [] : [
      {
        level: "warning",
        rule: "D09",
        state: `its texts may give an order to the model: ${JSON.stringify(shorten(order, 80))}`,
        fix: "describe what it does, not how the model must behave",
      } as const,
    ],
  ];
}

/** Lists all texts in a JSON value, and the names of its members. */
function listTexts(item: unknown): readonly string[] {
  const texts: string[] = [];
  const queue = [item];
  // Use a loop instead of recursion, because a schema may be nested more deeply than the stack allows.
  while (queue.length) {
    const next = queue.pop();
    if (typeof next === "string") texts.push(next);
    else if (typeof next === "object" && next !== null) {
      for (const [key, value] of Object.entries(next)) {
        texts.push(key);
        queue.push(value);
      }
    }
  }
  return texts;
}

function checkName(name: string, report: Report): void {
  if (!NAME.test(name)) {
    report("error", "some clients reject its name", "use 1 to 64 letters, digits, _ and -");
  } else if (name.length > LONG_NAME) {
    const cause = "some clients omit a tool if its name and the server's name together have more than 60 characters";
    report("warning", `its name has ${name.length} characters, and ${cause}`, "shorten the name");
  }
}

function checkInput(schema: JsonSchema, report: Report, isTrusted: boolean): void {
  checkParts(schema, report);
  const isChecked = isTrusted || !hasPattern(schema);
  const union = ["anyOf", "oneOf", "allOf"].find((key) => key in schema);
  if (union) {
    report(
      "warning",
      `its input has ${union} at the top level, and some clients reject such a schema`,
      `move ${union} into a property`,
    );
  }
  const properties = isObject(schema.properties) ? schema.properties : {};
  const missing = (Array.isArray(schema.required) ? schema.required : []).filter((name) =>
    !(String(name) in properties)
  );
  if (missing.length) report("error", `its input requires ${missing.join(", ")}, but does not declare such a property`);
  for (const [name, property] of Object.entries(properties)) {
    if (!isObject(property)) continue;
    if (!property.description) report("warning", `the argument ${name} has no description`, DESCRIBE);
    if (property.default === undefined || !isChecked) continue;
    const issues = compileJsonSchema({ ...property, $defs: schema.$defs ?? {} })(property.default);
    if (issues.length) report("error", `the default of ${name} does not match its schema: ${issues[0].message}`);
  }
}

/** Reports what the APIs of some models refuse. A whole request then fails, also for the other tools. */
function checkParts(schema: JsonSchema, report: Report): void {
  const parts = listParts(schema);
  const rules: readonly (readonly [(part: JsonSchema) => boolean, string, string])[] = [
    [isListOfAnything, "a list without items", "add items"],
    [isUntyped, "no type", "add a type"],
    [hasNumbers, "numbers in enum", "use texts, or minimum and maximum"],
  ];
  for (const [test, what, fix] of rules) {
    const names = parts.filter((part) => test(part.schema)).map(({ name }) => name);
    if (!names.length) continue;
    const [word, has] = names.length === 1 ? ["argument", "has"] : ["arguments", "have"];
    const shown = names.length > MAX_SHOWN ? `${names.slice(0, MAX_SHOWN).join(", ")} and others` : names.join(", ");
    report("warning", `the ${word} ${shown} ${has} ${what}, and some clients reject such a schema`, fix);
  }
}

/** Number of arguments that a message names. */
const MAX_SHOWN = 5;

function isListOfAnything({ type, items, prefixItems }: JsonSchema): boolean {
  return [type].flat().includes("array") && items === undefined && prefixItems === undefined;
}

const TYPING = ["type", "$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "enum", "const", "not", "if"];

function isUntyped(schema: JsonSchema): boolean {
  return !TYPING.some((keyword) => keyword in schema);
}

function hasNumbers({ enum: values }: JsonSchema): boolean {
  return Array.isArray(values) && values.some((value) => typeof value === "number");
}

/** Whether a schema contains a pattern, or may contain a pattern. */
function hasPattern(schema: unknown): boolean {
  const queue = [schema];
  // Use a loop instead of recursion, because a schema may be nested more deeply than the stack allows.
  while (queue.length) {
    const next = queue.pop();
    if (typeof next !== "object" || next === null) continue;
    for (const [key, value] of Object.entries(next)) {
      if (key === "pattern" && typeof value === "string" || key === "patternProperties") return true;
      queue.push(value);
    }
  }
  return false;
}

function checkPrompt(prompt: ListedPrompt, report: Report): void {
  checkDescription(prompt, report);
  for (const { name, description } of prompt.arguments ?? []) {
    if (!description) report("warning", `the argument ${name} has no description`, DESCRIBE);
  }
}

function checkDescription({ description }: { readonly description?: string }, report: Report): void {
  if (!description?.trim()) report("warning", "it has no description", DESCRIBE);
}
