/**
 * Answers the elicitation requests of a server: with the answers on the command line, or by asking in the terminal.
 *
 * @see specification/2026-07-28/client/elicitation
 * @module
 */
import type { AnswerContext, AnswerOptions, ElicitRequest, ElicitResult } from "../../client/server_requests.ts";
import { UsageError } from "../cli_error.ts";
import { type FieldValue, type FormField, toFields } from "./form_field.ts";
import { promptLine } from "./line_input.ts";
import { suggestName } from "./name_lookup.ts";
import { fillFields, type PresetAnswers } from "./preset_answers.ts";
import { canPrompt, createStyle, reportLine, type Style } from "./terminal_output.ts";
import { toLine, toPlain } from "./terminal_text.ts";

/** Answers elicitation requests. */
export interface Elicitor {
  /** The options of a client of the server that the user called `name`. */
  toOptions(name: string): AnswerOptions;
  /** @throws {UsageError} if there was a form, and an answer is for a field that no form had. */
  checkUnusedAnswers(): void;
}

/** Runs work that waits for the user. */
export type Pause = <T>(work: () => Promise<T>) => Promise<T>;

/** Creates an elicitor. It asks one question at a time, because there is one terminal. */
export function createElicitor(answers: PresetAnswers, pauseWhile: Pause): Elicitor {
  return new TerminalElicitor(answers, pauseWhile);
}

const KEYS = ":decline refuses, :cancel dismisses the question";

class TerminalElicitor implements Elicitor {
  readonly #answers: PresetAnswers;
  readonly #pauseWhile: Pause;
  readonly #style: Style = createStyle("errors");
  readonly #fieldNames = new Set<string>();
  #hasForm = false;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(answers: PresetAnswers, pauseWhile: Pause) {
    this.#answers = answers;
    this.#pauseWhile = pauseWhile;
  }

  toOptions(name: string): AnswerOptions {
    return {
      onElicit: (request, context) => this.#enqueue(() => this.#fillForm(name, request, context)),
      onElicitUrl: (request, context) => this.#enqueue(() => this.#openUrl(name, request, context)),
      roots: this.#answers.roots,
    };
  }

  checkUnusedAnswers(): void {
    const unknown = [...this.#answers.values.keys()].find((name) => !this.#fieldNames.has(name));
    if (unknown === undefined || !this.#hasForm) return;
    const suggestion = suggestName(unknown, [...this.#fieldNames]);
    throw new UsageError(`Cannot answer ${toLine(unknown)}: no form has such a field; ${suggestion}`);
  }

  #enqueue<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(() => this.#pauseWhile(work));
    this.#queue = result.catch(() => {});
    return result;
  }

  #printQuestion(name: string, message: string): void {
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
    const { content, hasErrors } = fillFields(fields, this.#answers);
    const open = fields.filter((field) => !Object.hasOwn(content, field.name));
    const missing = open.find(({ isRequired, hasDefault }) => isRequired && !hasDefault);
    const isComplete = fields.length > open.length && (!open.length || !canPrompt());
    if ((action === "accept" || isComplete) && !missing && !hasErrors) return { action: "accept", content };
    if (action === "accept" || !canPrompt()) return cancel(missing && `--answer ${toLine(missing.name)}=…`);
    reportLine(this.#style.dim(`(Enter takes the value in brackets; ${KEYS})`));
    const filled = open.length ? await promptFields(open, signal) : await promptConsent(signal);
    return typeof filled === "string" ? { action: filled } : { action: "accept", content: { ...content, ...filled } };
  }

  async #openUrl(name: string, { message, url }: { message: string; url: string }, { signal }: AnswerContext) {
    this.#printQuestion(name, message);
    const host = this.#style.bold(toLine(new URL(url).host, 300));
    reportLine(`Open this page of ${host}, if you trust it:\n  ${toPlain(url)}`);
    const { action } = this.#answers;
    if (action) return { action };
    if (!canPrompt()) return cancel("--answer accept");
    reportLine(this.#style.dim(`(${KEYS})`));
    const consent = await promptConsent(signal);
    return { action: typeof consent === "string" ? consent : "accept" as const };
  }
}

/** Cancels, because `decline` would be a decision of the user. */
function cancel(remedy = "--answer accept"): ElicitResult {
  reportLine(`Cannot ask in the terminal: there is none; answer with ${remedy}`);
  return { action: "cancel" };
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
      // The client fills in the default of a field without a value.
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
