/**
 * Reads `--answer` and `--root`, and fills in forms with the answers.
 */
import type { ElicitResult } from "../../client/client.ts";
import type { Args } from "../args.ts";
import { toBaseName } from "../../ready/files/path.ts";
import { platform } from "../platform.ts";
import { CliError, UsageError } from "../cli_error.ts";
import { findSuggestion } from "../../core/kit/suggestions.ts";
import type { FieldValue, FormField } from "./form_field.ts";
import { toLine } from "./terminal_text.ts";

/** The answers that `--answer` and `--root` give. */
export interface PresetAnswers {
  /** The values from `--answer NAME=VALUE`, by field name. */
  readonly values: ReadonlyMap<string, readonly string[]>;
  /** The action from `--answer accept`, `--answer decline` or `--answer cancel`. */
  readonly action?: ElicitResult["action"];
  readonly roots: readonly { readonly uri: string; readonly name: string }[];
}

/** The fields of a form that `--answer` fills in. */
export interface PresetContent {
  readonly content: Readonly<Record<string, FieldValue>>;
  /** The reasons why answers were rejected, by field name. */
  readonly errors: ReadonlyMap<string, string>;
}

/**
 * @throws {UsageError} if an `--answer` is malformed, if there are two actions, or if there are values although the
 * action is not `accept`.
 * @throws {CliError} if a root is not a folder.
 */
export async function readPresetAnswers({ all }: Args): Promise<PresetAnswers> {
  const values = new Map<string, string[]>();
  let action: PresetAnswers["action"];
  for (const text of all.answer ?? []) {
    const equals = text.indexOf("=");
    const name = text.slice(0, Math.max(0, equals)).trim();
    if (name) values.set(name, [...values.get(name) ?? [], text.slice(equals + 1)]);
    else if (text === "accept" || text === "decline" || text === "cancel") {
      if ((action ?? text) !== text) {
        throw new UsageError(
          `Cannot answer both ${action} and ${text}: a command can give only one of these answers; remove one of the two`,
        );
      }
      action = text;
    } else {
      throw new UsageError(
        `Cannot use --answer ${text}: it is not a valid answer; write name=value, accept, decline or cancel`,
      );
    }
  }
  const [name] = values.keys();
  if (name !== undefined && (action === "decline" || action === "cancel")) {
    throw new UsageError(
      `Cannot use --answer ${action} together with --answer ${name}=…: an answer has values only if it accepts; remove one of the two`,
    );
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

/** Fills in the fields of a form that have answers, and explains which answers are invalid. */
export function fillFields(fields: readonly FormField[], { values }: PresetAnswers): PresetContent {
  const content: [name: string, value: FieldValue][] = [];
  const errors = findMisspellings(fields, values);
  for (const { name, isList, read } of fields) {
    const texts = values.get(name);
    if (texts === undefined) continue;
    const isMixed = !isList && texts.length > 1;
    const result = isMixed ? { error: "the field takes one value" } : read(...texts);
    if ("value" in result) content.push([name, result.value]);
    else {
      const remedy = isMixed ? "write only one --answer" : "correct the value";
      errors.set(name, `Cannot answer ${toLine(name)}=${toLine(texts.join(","))}: ${result.error}; ${remedy}`);
    }
  }
  // Use `fromEntries`, because an assignment to `__proto__` would not add a field.
  return { content: Object.fromEntries(content), errors };
}

/** Unknown names that resemble no field are ignored, because they may belong to another form. */
function findMisspellings(fields: readonly FormField[], values: PresetAnswers["values"]): Map<string, string> {
  const open = fields.map(({ name }) => name).filter((name) => !values.has(name));
  const errors = new Map<string, string>();
  for (const name of values.keys()) {
    const suggestion = fields.some((field) => field.name === name) ? undefined : findSuggestion(name, open);
    if (suggestion === undefined) continue;
    errors.set(name, `Cannot answer ${toLine(name)}: the form has no such field; did you mean ${toLine(suggestion)}?`);
  }
  return errors;
}
