/**
 * Writes the result of a search as text for a model.
 */
import { quote } from "../../core/protocol/errors.ts";
import { shorten } from "../../core/kit/shorten.ts";
import type { OwnNames } from "./narrowed_list.ts";
import type { Hits } from "./short_list.ts";
import type { SeenTool } from "./visible_tools.ts";

export interface HitsOptions {
  readonly names: OwnNames;
  readonly query: string;
}

/** Maximum number of tools that are shown with their input schemas. */
const FULL = 2;
/** Maximum length of a description in characters, of a tool that is shown in full, and of a tool on one line. */
const MAX_DESCRIPTION = 2000;
const MAX_LINE = 160;
/** Maximum length of an input schema in characters. */
const MAX_SCHEMA = 20_000;

export function writeHits({ shown, total, near = FULL }: Hits, { names, query }: HitsOptions): string {
  if (!shown.length) {
    return `No tool matches ${
      quote(query)
    }. Search again with other words, such as a synonym or what the tool works on.`;
  }
  const hasReadOnly = shown.some(({ isReadOnly }) => isReadOnly);
  // The number of all tools that match would only say how common the words are.
  const kind = total > shown.length ? "best" : "matching";
  const all = shown.length === 1 ? `The ${kind} tool` : `The ${shown.length} ${kind} tools, most relevant first`;
  const lines = [
    `${all}. Call a tool with ${names.call}` +
    (hasReadOnly ? `, or with ${names.callReadOnly} if it is marked as read-only.` : "."),
    ...shown.slice(0, Math.min(FULL, near)).map(writeFull),
  ];
  const others = shown.slice(Math.min(FULL, near));
  if (others.length) {
    lines.push(`To see the inputSchema of a tool below, search for its name:`, ...others.map(writeLine));
  }
  return lines.join("\n");
}

function writeFull(tool: SeenTool): string {
  const { name, title, description, inputSchema } = tool.wire();
  const schema = toJson(inputSchema);
  const isLong = schema === undefined || schema.length > MAX_SCHEMA;
  const shown = {
    name,
    title: cut(title, MAX_LINE),
    description: cut(description, MAX_DESCRIPTION),
    ...tool.isReadOnly ? { readOnly: true } : {},
    inputSchema: isLong ? `Too long to show. ${writeArguments(tool) ?? ""}` : inputSchema,
  };
  return JSON.stringify(shown);
}

function writeLine(tool: SeenTool): string {
  const { name, title, description } = tool.wire();
  const text = cut(description, MAX_LINE) ?? cut(title, MAX_LINE) ?? "";
  // Another server may list a name with line breaks, which must not look like lines for other tools.
  const shown = /^[\w./-]+$/.test(name) ? name : JSON.stringify(name);
  return `- ${shown}${tool.isReadOnly ? " (read-only)" : ""}${text ? `: ${text.replace(/\s+/g, " ").trim()}` : ""}`;
}

function writeArguments(tool: SeenTool): string | undefined {
  const { required } = Object(tool.wire().inputSchema);
  if (Array.isArray(required) && required.length) return shorten(`Required: ${required.join(", ")}`, MAX_DESCRIPTION);
}

/** Shortens a text of another server, which may be a value of another type. */
function cut(text: unknown, length: number): string | undefined {
  return typeof text === "string" && text ? shorten(text, length) : undefined;
}

function toJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return; // The schema is nested too deeply.
  }
}
