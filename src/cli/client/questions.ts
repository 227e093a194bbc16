/**
 * Answers what a server asks the user: in the terminal, or with what was written on the command line.
 *
 * @see specification/2026-07-28/client/elicitation
 * @module
 */
import type { AnswerContext, AnswerOptions, ElicitRequest, ElicitResult } from "../../client/server_requests.ts";
import type { Args } from "../args.ts";
import { platform } from "../platform.ts";
import { findSuggestion } from "../suggestions.ts";
import { toBaseName } from "../path.ts";
import { UsageProblem } from "../problem.ts";
import { type Field, type FieldValue, toFields } from "./field.ts";
import { toLine, toPlain } from "./terminal_text.ts";
import { canAsk, styleOf, tellLine } from "./screen.ts";
import { suggest } from "./suggest.ts";
import { askLine } from "./typed_lines.ts";

/** What the usage of a command says of questions. */
export const QUESTIONS_USAGE =
  `What the server asks is asked in the terminal. Where there is none it is not answered, but for:

--answer N=V  an answer by the name of its field; may be there more than once, also for each item of a list
--answer A    accept, which takes the defaults; decline; or cancel
--root DIR    a folder that the server is told it may work on; may be there more than once`;

/** What was answered before anything was asked. */
export interface Given {
  readonly values: ReadonlyMap<string, readonly string[]>;
  readonly action?: ElicitResult["action"];
  readonly roots: readonly { readonly uri: string; readonly name: string }[];
}

/** Reads `--answer` and `--root`. @throws {Problem} for an answer that is none. */
export function readGiven({ all }: Args): Given {
  const values = new Map<string, string[]>();
  let action: Given["action"];
  for (const text of all.answer ?? []) {
    const at = text.indexOf("=");
    const name = text.slice(0, Math.max(0, at));
    if (at > 0) values.set(name, [...values.get(name) ?? [], text.slice(at + 1)]);
    else if (text === "accept" || text === "decline" || text === "cancel") action = text;
    else throw new UsageProblem(`Cannot answer ${text}: write name=value, accept, decline or cancel`);
  }
  const roots = (all.root ?? []).map((path) => ({
    uri: platform.toFileUrl(path),
    name: toBaseName(platform.toPath(path)),
  }));
  return { values, action, roots };
}

/** How questions are answered. */
export interface QuestionOptions {
  readonly given: Given;
  /** How the user named the server. */
  readonly name: string;
  /** Runs what a person takes the time for. */
  readonly hold: <T>(work: () => Promise<T>) => Promise<T>;
}

const KEYS = ":decline refuses, :cancel closes the question";

/** The functions that answer, and what became of the answers. */
export interface Answers {
  readonly options: AnswerOptions;
  /** @throws {UsageProblem} for an answer to a field that no form had, if there was a form. */
  checkUsed(): void;
}

/** The functions that answer. One question is asked after the other: there is one terminal. */
export function toAnswers({ given, name, hold }: QuestionOptions): Answers {
  const asked = new Set<string>();
  let hasForm = false;
  const style = styleOf("errors");
  let last: Promise<unknown> = Promise.resolve();

  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = last.then(() => hold(work));
    last = turn.catch(() => {});
    return turn;
  }

  function tellQuestion(message: string): void {
    const text = toPlain(message.slice(0, 10_000)).trim();
    tellLine(`${style.bold(`${name} asks:`)} ${text}`);
  }

  async function fill(request: ElicitRequest, { signal }: AnswerContext): Promise<ElicitResult> {
    tellQuestion(request.message);
    const fields = toFields(request.requestedSchema);
    hasForm = true;
    for (const { name } of fields) asked.add(name);
    const { action } = given;
    if (action === "decline" || action === "cancel") return { action };
    const { content, isSpoilt } = readValues(fields, given);
    const open = fields.filter(({ name }) => !Object.hasOwn(content, name));
    const missing = open.find(({ isRequired, hasDefault }) => isRequired && !hasDefault);
    const isGiven = fields.length > open.length;
    if (action === "accept" || isGiven && (!open.length || !canAsk())) {
      if (!missing && !isSpoilt) return { action: "accept", content };
    }
    if (action === "accept" || !canAsk()) return refuse(missing && `--answer ${toLine(missing.name)}=…`);
    tellLine(style.dim(`(Enter takes what stands in brackets; ${KEYS})`));
    const filled = open.length ? await askFields(open, signal) : await askConsent(signal);
    return typeof filled === "string" ? { action: filled } : { action: "accept", content: { ...content, ...filled } };
  }

  async function visit({ message, url }: { message: string; url: string }, { signal }: AnswerContext) {
    tellQuestion(message);
    tellLine(`Open this page of ${style.bold(toLine(new URL(url).host, 300))}, if you trust it:\n  ${toPlain(url)}`);
    if (given.action) return { action: given.action };
    if (!canAsk()) return refuse("--answer accept");
    tellLine(style.dim(`(${KEYS})`));
    const consent = await askConsent(signal);
    return { action: typeof consent === "string" ? consent : "accept" as const };
  }

  function checkUsed(): void {
    const unknown = [...given.values.keys()].find((name) => !asked.has(name));
    if (unknown === undefined || !hasForm) return;
    throw new UsageProblem(
      `Cannot answer ${toLine(unknown)}: no form has such a field; ${suggest(unknown, [...asked])}`,
    );
  }

  return {
    checkUsed,
    options: {
      onElicit: (request, context) => inTurn(() => fill(request, context)),
      onElicitUrl: (request, context) => inTurn(() => visit(request, context)),
      roots: given.roots,
    },
  };
}

// Nobody has said no: the question is closed without a choice.
function refuse(remedy = "--answer accept"): ElicitResult {
  tellLine(`This is not answered: no person is at the terminal; answer with ${remedy}`);
  return { action: "cancel" };
}

interface Values {
  readonly content: Readonly<Record<string, FieldValue>>;
  /** Whether one of them cannot be taken. */
  readonly isSpoilt: boolean;
}

function readValues(fields: readonly Field[], { values }: Given): Values {
  const content: Record<string, FieldValue> = {};
  let isSpoilt = false;
  const open = fields.map(({ name }) => name).filter((name) => !values.has(name));
  for (const unknown of values.keys()) {
    // Another form may have it, unless it is a slip of the pen.
    const near = fields.some(({ name }) => name === unknown) ? undefined : findSuggestion(unknown, open);
    if (near === undefined) continue;
    isSpoilt = true;
    tellLine(`Cannot answer ${toLine(unknown)}: the form has no such field; did you mean ${toLine(near)}?`);
  }
  for (const { name, isList, read } of fields) {
    const texts = values.get(name);
    if (texts === undefined) continue;
    const text = texts.join(",");
    const outcome = isList || texts.length === 1 ? read(text) : { problem: "it is there twice; write it once" };
    if ("value" in outcome) content[name] = outcome.value;
    else {
      isSpoilt = true;
      tellLine(`Cannot answer ${toLine(name)}=${toLine(text)}: ${outcome.problem}`);
    }
  }
  return { content, isSpoilt };
}

type Refusal = "decline" | "cancel";

function toRefusal(line: string | undefined): Refusal | undefined {
  if (line === undefined) return "cancel";
  return line === ":decline" ? "decline" : line === ":cancel" ? "cancel" : undefined;
}

async function askFields(fields: readonly Field[], signal: AbortSignal): Promise<Record<string, FieldValue> | Refusal> {
  const content: Record<string, FieldValue> = {};
  for (const field of fields) {
    for (;;) {
      const line = await askLine(field.question, signal);
      const refusal = toRefusal(line);
      if (refusal) return refusal;
      // What is left out gets its default.
      if (!line && (field.hasDefault || !field.isRequired)) break;
      const outcome = line ? field.read(line) : { problem: "it is needed" };
      if ("value" in outcome) {
        content[field.name] = outcome.value;
        break;
      }
      tellLine(`  Not taken: ${outcome.problem}`);
    }
  }
  return content;
}

async function askConsent(signal: AbortSignal): Promise<Record<string, never> | Refusal> {
  for (;;) {
    const line = await askLine("Go on? (yes or no): ", signal);
    const refusal = toRefusal(line);
    if (refusal) return refusal;
    if (/^(y|yes)$/i.test(line ?? "")) return {};
    if (/^(n|no)$/i.test(line ?? "")) return "decline";
  }
}
