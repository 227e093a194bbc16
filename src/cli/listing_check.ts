/**
 * What clients and models stumble over in what a server lists.
 *
 * @module
 */
import type { ListedPrompt, ListedResource, ListedTemplate, ListedTool } from "../client/listed.ts";
import { isObject } from "../protocol/jsonrpc.ts";
import { findHeaderParams, type HeaderParam } from "../schema/header_params.ts";
import { compileJsonSchema } from "../schema/json_check.ts";
import type { JsonSchema } from "../schema/json_schema.ts";

/** Everything that a server lists. */
export interface Listing {
  readonly tools: readonly ListedTool[];
  readonly resources: readonly ListedResource[];
  readonly templates: readonly ListedTemplate[];
  readonly prompts: readonly ListedPrompt[];
}

/** Something that was found: an error keeps somebody from using it, a warning makes it harder. */
export interface Finding {
  readonly level: "error" | "warning";
  /** Such as `tool add`. */
  readonly place: string;
  /** What is wrong, and what would be right. */
  readonly state: string;
}

type Tell = (level: Finding["level"], state: string) => void;

// What the models of large clients take as a name, and how many tools these offer at once.
const NAME = /^[\w-]{1,64}$/;
const MOST_TOOLS = 40;
const LONGEST = 1024;

/** How a listing is looked at. */
export interface MistakesOptions {
  /** How many tokens the tools may cost. */
  readonly most: number;
  /**
   * Whether the author of the schemas is the user. A pattern runs as its author wrote it: one of a stranger that
   * backtracks would never end, so it is neither compiled nor run.
   */
  readonly isTrusted: boolean;
}

/** Looks at everything that is listed. */
export function findMistakes(listing: Listing, { most, isTrusted }: MistakesOptions): readonly Finding[] {
  const { tools, resources, templates, prompts } = listing;
  const findings: Finding[] = [];
  const at = (place: string): Tell => (level, state) => findings.push({ level, place, state });
  for (const tool of tools) checkTool(tool, at(`tool ${tool.name}`), isTrusted);
  for (const prompt of prompts) checkPrompt(prompt, at(`prompt ${prompt.name}`));
  for (const template of templates) checkDescription(template, at(`template ${template.uriTemplate}`));
  const uris = new Set<string>();
  for (const { uri } of resources) {
    if (uris.has(uri)) at(`resource ${uri}`)("warning", "it is listed twice; give one of the two another URI");
    uris.add(uri);
  }
  const tokens = tools.reduce((sum, tool) => sum + toTokens(tool), 0);
  if (tokens > most) {
    at("tools")("error", `they cost about ${tokens} tokens, more than ${most}; shorten descriptions, or offer fewer`);
  }
  if (tools.length > MOST_TOOLS) {
    at("tools")("warning", `there are ${tools.length}; some clients offer a model no more than ${MOST_TOOLS}`);
  }
  return findings;
}

/** About how many tokens a model reads to know of a tool: four characters are about one. */
export function toTokens({ name, description, inputSchema }: ListedTool): number {
  try {
    return Math.ceil(JSON.stringify({ name, description, inputSchema }).length / 4);
  } catch {
    return Infinity; // It is nested more deeply than can be written.
  }
}

/** The parameters that clients repeat in headers; none if the schema says so in a wrong way. */
export function listHeaders(schema: JsonSchema): readonly HeaderParam[] {
  try {
    return findHeaderParams(schema);
  } catch {
    return [];
  }
}

function checkTool(
  { name, description, inputSchema, outputSchema, annotations }: ListedTool,
  tell: Tell,
  isTrusted: boolean,
): void {
  if (!NAME.test(name)) {
    tell("error", "clients refuse its name; use 1 to 64 letters, digits, _ and -");
  }
  if (!description?.trim()) {
    tell("error", "it has no description, so a model cannot know when to call it; say what it does");
  } else if (description.length > LONGEST) {
    tell("warning", `its description has ${description.length} characters; some clients cut it off at ${LONGEST}`);
  }
  checkInput(inputSchema, tell, isTrusted);
  try {
    if (outputSchema && (isTrusted || !hasPattern(outputSchema))) compileJsonSchema(outputSchema, "its output schema");
    findHeaderParams(inputSchema);
  } catch (error) {
    tell("error", error instanceof Error ? error.message : String(error));
  }
  if (outputSchema && outputSchema.type !== "object") {
    tell("warning", "its output is no object, which clients of older revisions expect");
  }
  if (annotations?.readOnlyHint && annotations.destructiveHint) {
    tell("error", "it says that it changes nothing, and that it may destroy something; take one of the hints away");
  }
}

function checkInput(schema: JsonSchema, tell: Tell, isTrusted: boolean): void {
  const isChecked = isTrusted || !hasPattern(schema);
  const union = ["anyOf", "oneOf", "allOf"].find((key) => key in schema);
  if (union) tell("warning", `its input has ${union} at the top, which some clients refuse; put it into a property`);
  const properties = isObject(schema.properties) ? schema.properties : {};
  const missing = (Array.isArray(schema.required) ? schema.required : []).filter((name) =>
    !(String(name) in properties)
  );
  if (missing.length) tell("error", `its input requires ${missing.join(", ")}, which is no property of it`);
  for (const [name, property] of Object.entries(properties)) {
    if (!isObject(property)) continue;
    if (!property.description) tell("warning", `the argument ${name} has no description`);
    if (property.default === undefined || !isChecked) continue;
    const issues = compileJsonSchema({ ...property, $defs: schema.$defs ?? {} })(property.default);
    if (issues.length) tell("error", `the default of ${name} does not fit its own schema: ${issues[0].message}`);
  }
}

/** Whether a pattern is anywhere in a schema, or something that looks like one. */
function hasPattern(schema: unknown): boolean {
  const waiting = [schema];
  // Not recursive, because a stranger can nest deeper than the stack is.
  while (waiting.length) {
    const next = waiting.pop();
    if (typeof next !== "object" || next === null) continue;
    for (const [key, value] of Object.entries(next)) {
      if (key === "pattern" && typeof value === "string" || key === "patternProperties") return true;
      waiting.push(value);
    }
  }
  return false;
}

function checkPrompt(prompt: ListedPrompt, tell: Tell): void {
  checkDescription(prompt, tell);
  for (const { name, description } of prompt.arguments ?? []) {
    if (!description) tell("warning", `the argument ${name} has no description`);
  }
}

function checkDescription({ description }: { readonly description?: string }, tell: Tell): void {
  if (!description?.trim()) tell("warning", "it has no description");
}
