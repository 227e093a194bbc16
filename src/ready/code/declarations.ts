/**
 * Writes the tools that a search has found as TypeScript declarations, for models that write programs.
 */
import { toComment, toKey, toTypeText } from "../../core/schema/type_text.ts";
import { quote } from "../../core/protocol/errors.ts";
import type { OwnNames } from "../search/narrowed_list.ts";
import type { Hits } from "../search/short_list.ts";
import type { SeenTool } from "../search/visible_tools.ts";

/** Number of characters per token, as `mcp check` counts them. */
const PER_TOKEN = 4;
/** Maximum length of the declarations of one search, in tokens. */
export const MAX_TOKENS = 2000;
/** Maximum length of one type in characters. */
const MAX_INPUT = 3000;
const MAX_OUTPUT = 1500;
/** Maximum length of a description in characters. */
const MAX_DESCRIPTION = 300;

export function writeDeclarations({ shown, total }: Hits, { names, query }: Writing): string {
  if (!shown.length) {
    return `No tool matches ${quote(query)}. Search again with other words, or with the words of another tool's name.`;
  }
  const { call, callReadOnly } = names;
  const lines = [
    `// ${shown.length} of ${
      Math.max(total, shown.length)
    } matching tools, best first. Await them in a program for ${callReadOnly} if ` +
    `they are marked as read-only, or else for ${call}.`,
    "declare const tools: {",
  ];
  const others: string[] = [];
  let room = MAX_TOKENS * PER_TOKEN - lines.join("").length;
  for (const tool of shown) {
    const full = writeTool(tool);
    const isFirst = lines.length === 2;
    // The last quarter is for the names of the tools that have no room.
    if (!isFirst && full.length > room - MAX_TOKENS) others.push(writeName(tool));
    else lines.push(...full.split("\n"));
    room -= isFirst || !others.length ? full.length : others.at(-1)?.length ?? 0;
  }
  lines.push("};");
  if (others.length) lines.push("// Search for the name of a tool below to see its declaration:", ...others);
  return lines.join("\n");
}

interface Writing {
  readonly names: OwnNames;
  readonly query: string;
}

function writeTool({ name, isReadOnly, wire, documented }: SeenTool): string {
  const { title, description, inputSchema, outputSchema } = wire();
  const text = [description, title].find((each) => typeof each === "string" && each.trim());
  const input = toTypeText(inputSchema, { maxLength: MAX_INPUT });
  const output = toTypeText(outputSchema, { maxLength: MAX_OUTPUT, comments: false });
  const { required } = Object(inputSchema);
  const isOptional = !Array.isArray(required) || !required.length;
  const result = outputSchema === undefined ? documented?.() : undefined;
  const type = result && toTypeText(result, { maxLength: MAX_OUTPUT, comments: false });
  const hint = type === undefined || type === "unknown"
    ? ""
    : ` /* documented, not checked: ${type.replaceAll("*/", "* /")} */`;
  const comment = typeof text === "string" ? `  /** ${toComment(text, MAX_DESCRIPTION)} */\n` : "";
  return `${comment}  ${toKey(name)}(input${isOptional ? "?" : ""}: ${input}): Promise<${output}${hint}>;${
    isReadOnly ? " // read-only" : ""
  }`;
}

function writeName({ name, wire }: SeenTool): string {
  const { title, description } = wire();
  const text = [description, title].find((each) => typeof each === "string" && each.trim());
  return `// - ${toKey(name)}${typeof text === "string" ? `: ${toComment(text, 100)}` : ""}`;
}
