/**
 * Reads `--answer` and `--root`, and fills in forms with the answers.
 *
 * @module
 */
import type { ElicitResult } from "../../client/server_requests.ts";
import type { Args } from "../args.ts";
import { toBaseName } from "../path.ts";
import { platform } from "../platform.ts";
import { CliError, UsageError } from "../cli_error.ts";
import { findSuggestion } from "../../core/suggestions.ts";
import type { FieldValue, FormField } from "./form_field.ts";
import { reportLine } from "./terminal_output.ts";
import { toLine } from "./terminal_text.ts";

/** The answers on the command line. */
export interface PresetAnswers {
  /** The values of fields by name. */
  readonly values: ReadonlyMap<string, readonly string[]>;
  /** `accept`, `decline` or `cancel`, if given. */
  readonly action?: ElicitResult["action"];
  readonly roots: readonly { readonly uri: string; readonly name: string }[];
}

/** The part of a form that the command line fills in. */
export interface PresetContent {
  readonly content: Readonly<Record<string, FieldValue>>;
  /** Whether an answer was rejected, and its error printed. */
  readonly hasErrors: boolean;
}

/**
 * Reads `--answer` and `--root`.
 *
 * @throws {UsageError} for an `--answer` in another form, or two actions.
 * @throws {CliError} if a root is not a folder.
 */
export async function readPresetAnswers({ all }: Args): Promise<PresetAnswers> {
  const values = new Map<string, string[]>();
  let action: PresetAnswers["action"];
  for (const text of all.answer ?? []) {
    const equals = text.indexOf("=");
    const name = text.slice(0, Math.max(0, equals));
    if (equals > 0) values.set(name, [...values.get(name) ?? [], text.slice(equals + 1)]);
    else if (text === "accept" || text === "decline" || text === "cancel") {
      if ((action ?? text) !== text) throw new UsageError(`Cannot answer ${action} and ${text}: write one of them`);
      action = text;
    } else throw new UsageError(`Cannot answer ${text}: write name=value, accept, decline or cancel`);
  }
  return { values, action, roots: await Promise.all((all.root ?? []).map(toRoot)) };
}

async function toRoot(folder: string): Promise<PresetAnswers["roots"][number]> {
  const path = platform.toPath(folder);
  if ((await platform.files.stat(path))?.kind !== "folder") {
    throw new CliError(`Cannot use the root ${folder}: there is no folder ${path}; check the path`);
  }
  return { uri: platform.toFileUrl(folder), name: toBaseName(path) };
}

/** Fills in the fields of a form, and prints an error for each answer that does not fit. */
export function fillFields(fields: readonly FormField[], { values }: PresetAnswers): PresetContent {
  const content: [name: string, value: FieldValue][] = [];
  let hasErrors = reportMisspellings(fields, values);
  for (const { name, isList, read } of fields) {
    const texts = values.get(name);
    if (texts === undefined) continue;
    const result = isList || texts.length === 1 ? read(...texts) : { error: "it is given twice; write it once" };
    if ("value" in result) content.push([name, result.value]);
    else {
      hasErrors = true;
      reportLine(`Cannot answer ${toLine(name)}=${toLine(texts.join(","))}: ${result.error}`);
    }
  }
  // Not by assignment, because a field may be called `__proto__`.
  return { content: Object.fromEntries(content), hasErrors };
}

/** Reports answers whose names resemble a field without an answer. Other unknown names may belong to another form. */
function reportMisspellings(fields: readonly FormField[], values: PresetAnswers["values"]): boolean {
  const open = fields.map(({ name }) => name).filter((name) => !values.has(name));
  let isFound = false;
  for (const name of values.keys()) {
    const suggestion = fields.some((field) => field.name === name) ? undefined : findSuggestion(name, open);
    if (suggestion === undefined) continue;
    isFound = true;
    reportLine(`Cannot answer ${toLine(name)}: the form has no such field; did you mean ${toLine(suggestion)}?`);
  }
  return isFound;
}
