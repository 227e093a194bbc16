/**
 * What a server lists, for people.
 *
 * @module
 */
import type { Listed, ListedPrompt, ListedTool } from "../../client/listed.ts";
import { isObject } from "../../protocol/jsonrpc.ts";
import type { Listing } from "../listing_check.ts";
import { toLine, toLines, toPlain } from "./terminal_text.ts";
import { describeType, listArguments } from "./schema_text.ts";
import { screenWidth, type Style, writeLine } from "./terminal_output.ts";
import { toTable } from "./table.ts";

/** How a listing is shown. */
export interface ShowOptions {
  readonly width: number;
  readonly style: Style;
}

/** More would scroll away what one is looking for. */
const MOST_ITEMS = 1000;
const MOST_ARGUMENTS = 100;

/** The lines that show everything that is listed. */
export function* showListing(listing: Listing, options: ShowOptions): Generator<string> {
  const { tools, resources, templates, prompts } = listing;
  const { style } = options;
  yield* showSection("Tools", tools, options, (tool) => [
    `  ${style.bold(toLine(tool.name))}${style.dim(showHints(tool))}`,
    ...showText(tool, options),
    ...showTable(listToolArguments(tool), options),
  ]);
  yield* showSection("Resources", resources, options, (resource) => [
    `  ${style.bold(toLine(resource.uri))}${showFacts(resource, resource.name, style)}`,
    ...showText(resource, options),
  ]);
  yield* showSection("Resource templates", templates, options, (template) => [
    `  ${style.bold(toLine(template.uriTemplate))}${showFacts(template, template.name, style)}`,
    ...showText(template, options),
  ]);
  yield* showSection("Prompts", prompts, options, (prompt) => [
    `  ${style.bold(toLine(prompt.name))}`,
    ...showText(prompt, options),
    ...showTable(listPromptArguments(prompt), options),
  ]);
}

function* showSection<T>(
  title: string,
  items: readonly T[],
  { style }: ShowOptions,
  show: (item: T) => readonly string[],
): Generator<string> {
  if (!items.length) return;
  yield "";
  yield style.cyan(`${title} (${items.length})`);
  for (const item of items.slice(0, MOST_ITEMS)) {
    yield "";
    yield* show(item);
  }
  if (items.length > MOST_ITEMS) yield* ["", `  … and ${items.length - MOST_ITEMS} more; --json prints all`];
}

function showText({ title, description }: Listed, { width }: ShowOptions): readonly string[] {
  const texts = [title, description].filter((text) => typeof text === "string" && text.trim());
  return texts.flatMap((text) => toLines(toPlain(String(text).slice(0, 4000)).trim(), width - 4))
    .map((line) => line && `    ${line}`);
}

function showHints({ annotations }: ListedTool): string {
  if (!isObject(annotations)) return "";
  const { readOnlyHint, destructiveHint, idempotentHint } = annotations;
  const hints = [
    readOnlyHint === true && "read-only",
    destructiveHint === true && "destructive",
    idempotentHint === true && "idempotent",
  ].filter(Boolean);
  return hints.length ? `  ${hints.join(", ")}` : "";
}

function showFacts({ mimeType, size }: Listed, name: string, { dim }: Style): string {
  const facts = [name, mimeType, typeof size === "number" ? toSize(size) : undefined].filter(Boolean);
  return facts.map((fact) => `  ${dim(toLine(fact, 100))}`).join("");
}

/** A number of bytes for people. */
export function toSize(bytes: number): string {
  if (bytes < 1000) return `${bytes} byte${bytes === 1 ? "" : "s"}`;
  const power = Math.min(3, Math.floor(Math.log10(bytes) / 3));
  return `${(bytes / 1000 ** power).toFixed(1)} ${["", "kB", "MB", "GB"][power]}`;
}

function listToolArguments({ inputSchema }: ListedTool): readonly (readonly string[])[] {
  if (!isObject(inputSchema)) return [];
  return listArguments(inputSchema).map(({ name, schema, isRequired }) => {
    const { title, description = title, default: usual } = isObject(schema) ? schema : {};
    const need = usual !== undefined ? `= ${toLine(JSON.stringify(usual), 60)}` : isRequired ? "required" : "";
    return [toLine(name, 100), toLine(describeType(schema, inputSchema), 200), need, toLine(description ?? "")];
  });
}

function listPromptArguments({ arguments: args }: ListedPrompt): readonly (readonly string[])[] {
  return (Array.isArray(args) ? args : []).filter(isObject).map(({ name, required, title, description = title }) => [
    toLine(name, 100),
    required === true ? "required" : "",
    toLine(description ?? ""),
  ]);
}

function showTable(rows: readonly (readonly string[])[], { width, style }: ShowOptions): readonly string[] {
  const more = rows.length - MOST_ARGUMENTS;
  const styles = [style.cyan, style.dim, ...(rows[0]?.length === 4 ? [style.dim] : [])];
  return [
    ...toTable(rows.slice(0, MOST_ARGUMENTS), { indent: 6, width, styles }),
    ...more > 0 ? [`      … and ${more} more; --json prints all`] : [],
  ];
}

/** Writes names, each in a line with what it is for. */
export async function showNames(items: readonly Pick<Listed, "name" | "title" | "description">[]): Promise<void> {
  const rows = items.map(({ name, title, description = title }) => [toLine(name, 2000), toLine(description ?? "")]);
  if (rows.length) await writeLine(toTable(rows, { indent: 0, width: screenWidth() }).join("\n"));
}
