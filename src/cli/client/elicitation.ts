/**
 * Answers elicitation requests from a server with answers from the command line, or by prompting the user in the
 * terminal.
 *
 * @see specification/2026-07-28/client/elicitation
 */
import type { AnswerContext, AnswerOptions, ElicitRequest, ElicitResult } from "../../client/client.ts";
import { UsageError } from "../cli_error.ts";
import { type FieldValue, type FormField, toFields } from "./form_field.ts";
import { suggestName } from "./name_lookup.ts";
import { fillFields, type PresetAnswers } from "./preset_answers.ts";
import { promptLine } from "./terminal_input.ts";
import { canPrompt, createStyle, reportLine, type Style } from "./terminal_output.ts";
import { toLine, toPlain } from "./terminal_text.ts";

/** Runs work that waits for the user. The request timeout is paused until the work is done. */
export type Pause = <T>(work: () => Promise<T>) => Promise<T>;

const KEYS = ":decline refuses to answer, :cancel dismisses the question";

/** Asks one question at a time, because all questions share one terminal. */
export class Elicitor {
  readonly #answers: PresetAnswers;
  readonly #pauseWhile: Pause;
  readonly #style: Style = createStyle("errors");
  readonly #fieldNames = new Set<string>();
  /** Error messages for questions without a valid answer. A set, because the server may repeat a question. */
  readonly #errors = new Set<string>();
  readonly #rejectedNames = new Set<string>();
  #hasQuestion = false;
  #hasForm = false;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(answers: PresetAnswers, pauseWhile: Pause) {
    this.#answers = answers;
    this.#pauseWhile = pauseWhile;
  }

  /** Returns client options that answer elicitation requests. `name` is the server as the user named it. */
  toOptions(name: string): AnswerOptions {
    return {
      onElicit: (request, context) => this.#enqueue(() => this.#fillForm(name, request, context)),
      onElicitUrl: (request, context) => this.#enqueue(() => this.#openUrl(name, request, context)),
      roots: this.#answers.roots,
    };
  }

  /** Returns an error if a request had no valid answer, or if an `--answer` matched no field of any form. */
  findError(): UsageError | undefined {
    const known = [...this.#fieldNames];
    const unknown = this.#hasForm ? [...this.#answers.values.keys()].filter((name) => !known.includes(name)) : [];
    const unasked = unknown.filter((name) => !this.#rejectedNames.has(name)).map((name) =>
      `Cannot answer ${toLine(name)}: no form has such a field; ${suggestName(name, known)}`
    );
    const messages = [...this.#errors, ...unasked];
    return messages.length ? new UsageError(messages.join("\n")) : undefined;
  }

  /** Prints which `--answer` options were not used, because the server sent no matching elicitation request. */
  reportUnused(): void {
    const { values, action } = this.#answers;
    const names = this.#hasForm ? [] : [...values.keys()].map((name) => `${name}=…`);
    const unused = [...names, ...action && !this.#hasQuestion ? [action] : []].map((each) => `--answer ${each}`);
    if (!unused.length) return;
    const state = this.#hasQuestion ? "The server requested no values" : "The server asked no question";
    reportLine(toLine(`${state}, so ${unused.join(" ")} had no effect.`));
  }

  #enqueue<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(() => this.#pauseWhile(work));
    this.#queue = result.catch(() => {});
    return result;
  }

  #printQuestion(name: string, message: string): void {
    this.#hasQuestion = true;
    const text = toPlain(message.slice(0, 10_000)).trim();
    reportLine(`${this.#style.bold(`${name} asks:`)} ${text}`);
  }

  async #fillForm(name: string, request: ElicitRequest, { signal }: AnswerContext): Promise<ElicitResult> {
    this.#printQuestion(name, request.message);
    const fields = toFields(request.requestedSchema);
    this.#hasForm = true;
    for (const field of fields) this.#fieldNames.add(field.name);
    const { action } = this.#answers;
    if (action === "decline" || action === "cancel") return { action };
    const { content, errors } = fillFields(fields, this.#answers);
    const open = fields.filter((field) => !Object.hasOwn(content, field.name));
    const missing = open.filter(({ isRequired, hasDefault }) => isRequired && !hasDefault);
    const isComplete = fields.length > open.length && (!open.length || !canPrompt());
    if ((action === "accept" || isComplete) && !missing.length && !errors.size) return { action: "accept", content };
    if (action === "accept" || !canPrompt()) return this.#cancelForm(errors, missing);
    errors.forEach(reportLine);
    reportLine(this.#style.dim(`(Enter takes the value in brackets; ${KEYS})`));
    const filled = open.length ? await promptFields(open, signal) : await promptConsent(signal);
    return typeof filled === "string" ? { action: filled } : { action: "accept", content: { ...content, ...filled } };
  }

  /** Cancels a form. Does not respond with `decline`, because the user has not decided anything. */
  #cancelForm(errors: ReadonlyMap<string, string>, missing: readonly FormField[]): ElicitResult {
    for (const [name, error] of errors) {
      this.#rejectedNames.add(name);
      this.#errors.add(error);
    }
    // Do not report the missing fields, because the rejected answer may have been meant for one of them.
    if (errors.size) return { action: "cancel" };
    const names = missing.map(({ name }) => toLine(name));
    if (!names.length) return this.#cancelQuestion();
    const state = canPrompt() ? "the form has no default" : "there is no terminal for a prompt";
    const remedy = names.map((name) => `--answer ${name}=…`).join(" ");
    this.#errors.add(`Cannot answer ${names.join(", ")}: ${state}; add ${remedy}`);
    return { action: "cancel" };
  }

  #cancelQuestion(): { readonly action: "cancel" } {
    this.#errors.add("Cannot answer the question: there is no terminal for a prompt; add --answer accept");
    return { action: "cancel" };
  }

  async #openUrl(name: string, { message, url }: { message: string; url: string }, { signal }: AnswerContext) {
    this.#printQuestion(name, message);
    const host = this.#style.bold(toLine(new URL(url).host, 300));
    reportLine(`If you trust ${host}, open this page:\n  ${toPlain(url)}`);
    const { action } = this.#answers;
    if (action) return { action };
    if (!canPrompt()) return this.#cancelQuestion();
    reportLine(this.#style.dim(`(${KEYS})`));
    const consent = await promptConsent(signal);
    return { action: typeof consent === "string" ? consent : "accept" as const };
  }
}

type Refusal = "decline" | "cancel";

function toRefusal(line: string | undefined): Refusal | undefined {
  if (line === undefined) return "cancel";
  return line === ":decline" ? "decline" : line === ":cancel" ? "cancel" : undefined;
}

async function promptFields(
  fields: readonly FormField[],
  signal: AbortSignal,
): Promise<Record<string, FieldValue> | Refusal> {
  const content: Record<string, FieldValue> = {};
  for (const field of fields) {
    for (;;) {
      const line = await promptLine(field.prompt, signal);
      const refusal = toRefusal(line);
      if (refusal) return refusal;
      // Leave out a field without input: the client fills in the default, and a field without a default is optional.
      if (!line && (field.hasDefault || !field.isRequired)) break;
      const result = line ? field.read(line) : { error: "it is required" };
      if ("value" in result) {
        content[field.name] = result.value;
        break;
      }
      reportLine(`  Invalid: ${result.error}`);
    }
  }
  return content;
}

async function promptConsent(signal: AbortSignal): Promise<Record<string, never> | Refusal> {
  for (;;) {
    const line = await promptLine("Continue? (yes or no): ", signal);
    const refusal = toRefusal(line);
    if (refusal) return refusal;
    if (/^(y|yes)$/i.test(line ?? "")) return {};
    if (/^(n|no)$/i.test(line ?? "")) return "decline";
  }
}
