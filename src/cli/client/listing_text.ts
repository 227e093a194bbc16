/**
 * Formats the tools, resources and prompts of a server for the terminal.
 */
import type { Listed, ListedPrompt, ListedTool } from "../../client/client.ts";
import { isObject } from "../../core/kit/json.ts";
import type { Listing } from "../listing_check.ts";
import { toLine, toLines, toPlain, toTable } from "./terminal_text.ts";
import { describeType, listArguments } from "./schema_text.ts";
import { reportLine, type Style, terminalWidth, writeLine } from "./terminal_output.ts";

export interface FormatOptions {
  /** Maximum width of a line, in columns. */
  readonly width: number;
  readonly style: Style;
}

/** Maximum number of items in a section. */
const MAX_ITEMS = 1000;
/** Maximum number of arguments that are listed for a tool or a prompt. */
const MAX_ARGUMENTS = 100;

export function* formatListing(listing: Listing, options: FormatOptions): Generator<string> {
  const { tools, resources, templates, prompts } = listing;
  const { style } = options;
  yield* formatSection("Tools", tools, options, (tool) => [
    `  ${style.bold(toLine(tool.name))}${style.dim(formatHints(tool))}`,
    ...formatDescription(tool, options),
    ...formatTable(listToolArguments(tool), options),
  ]);
  yield* formatSection("Resources", resources, options, (resource) => [
    `  ${style.bold(toLine(resource.uri))}${formatDetails(resource, resource.name, style)}`,
    ...formatDescription(resource, options),
  ]);
  yield* formatSection("Resource templates", templates, options, (template) => [
    `  ${style.bold(toLine(template.uriTemplate))}${formatDetails(template, template.name, style)}`,
    ...formatDescription(template, options),
  ]);
  yield* formatSection("Prompts", prompts, options, (prompt) => [
    `  ${style.bold(toLine(prompt.name))}`,
    ...formatDescription(prompt, options),
    ...formatTable(listPromptArguments(prompt), options),
  ]);
}

function* formatSection<T>(
  title: string,
  items: readonly T[],
  { style }: FormatOptions,
  format: (item: T) => readonly string[],
): Generator<string> {
  if (!items.length) return;
  yield "";
  yield style.cyan(`${title} (${items.length})`);
  for (const item of items.slice(0, MAX_ITEMS)) {
    yield "";
    yield* format(item);
  }
  if (items.length > MAX_ITEMS) yield* ["", `  … and ${items.length - MAX_ITEMS} more; --json prints all`];
}

function formatDescription({ title, description }: Listed, { width }: FormatOptions): readonly string[] {
  const texts = [title, description].filter((text) => typeof text === "string" && text.trim());
  return texts.flatMap((text) => toLines(toPlain(String(text).slice(0, 4000)).trim(), width - 4))
    .map((line) => line && `    ${line}`);
}

function formatHints({ annotations }: ListedTool): string {
  if (!isObject(annotations)) return "";
  const { readOnlyHint, destructiveHint, idempotentHint } = annotations;
  const hints = [
    readOnlyHint === true && "read-only",
    destructiveHint === true && "destructive",
    idempotentHint === true && "idempotent",
  ].filter(Boolean);
  return hints.length ? `  ${hints.join(", ")}` : "";
}

function formatDetails({ mimeType, size }: Listed, name: string, { dim }: Style): string {
  const details = [name, mimeType, typeof size === "number" ? toSize(size) : undefined].filter(Boolean);
  return details.map((each) => `  ${dim(toLine(each, 100))}`).join("");
}

/** Formats a number of bytes, such as `1.5 kB`. */
export function toSize(bytes: number): string {
  if (bytes < 1000) return `${bytes} byte${bytes === 1 ? "" : "s"}`;
  const power = Math.min(3, Math.floor(Math.log10(bytes) / 3));
  return `${(bytes / 1000 ** power).toFixed(1)} ${["", "kB", "MB", "GB"][power]}`;
}

function listToolArguments({ inputSchema }: ListedTool): readonly (readonly string[])[] {
  if (!isObject(inputSchema)) return [];
  return listArguments(inputSchema).map(({ name, schema, isRequired }) => {
    const { title, description = title, default: defaultValue } = isObject(schema) ? schema : {};
    const defaultText = defaultValue === undefined ? undefined : `= ${toLine(JSON.stringify(defaultValue), 60)}`;
    const presence = defaultText ?? (isRequired ? "required" : "");
    return [toLine(name, 100), toLine(describeType(schema, inputSchema), 200), presence, toLine(description ?? "")];
  });
}

function listPromptArguments({ arguments: args }: ListedPrompt): readonly (readonly string[])[] {
  return (Array.isArray(args) ? args : []).filter(isObject).map(({ name, required, title, description = title }) => [
    toLine(name, 100),
    required === true ? "required" : "",
    toLine(description ?? ""),
  ]);
}

function formatTable(rows: readonly (readonly string[])[], { width, style }: FormatOptions): readonly string[] {
  const more = rows.length - MAX_ARGUMENTS;
  const styles = [style.cyan, style.dim, ...(rows[0]?.length === 4 ? [style.dim] : [])];
  return [
    ...toTable(rows.slice(0, MAX_ARGUMENTS), { indent: 6, width, styles }),
    ...more > 0 ? [`      … and ${more} more; --json prints all`] : [],
  ];
}

/** Prints an item per line, or that the server has no items of this kind. */
export async function printNames(
  items: readonly Pick<Listed, "name" | "title" | "description">[],
  kind: string,
): Promise<void> {
  const rows = items.map(({ name, title, description = title }) => [toLine(name, 2000), toLine(description ?? "")]);
  if (!rows.length) reportLine(`The server has no ${kind}.`);
  else await writeLine(toTable(rows, { indent: 0, width: terminalWidth() }).join("\n"));
}
