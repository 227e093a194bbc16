/**
 * Collects the findings of an examination.
 */
import { toPrintableLine } from "../../core/kit/printable.ts";
import { NoResponse } from "./exchange.ts";

/**
 * A result of a check. A problem means that the server violates the protocol, admits clients that it should reject, or
 * rejects clients that it should admit. A note is a recommendation.
 */
export interface Finding {
  readonly level: "ok" | "note" | "problem";
  readonly check: string;
  /** The server's behavior, as a sentence. */
  readonly message: string;
  /** How to fix a problem or follow a note, as a sentence. */
  readonly fix?: string;
}

/** Adds findings under the name of one check. */
export interface Check {
  ok(message: string): void;
  note(message: string, fix: string): void;
  problem(message: string, fix: string): void;
}

export interface Report {
  readonly findings: readonly Finding[];
  /** Returns a check that adds findings under this name. */
  at(name: string): Check;
  /**
   * Runs a check, and reports a missing response as a problem. After `MAX_MISSING_RESPONSES` missing responses, no
   * further checks run. Returns `undefined` if the check did not run or got no response.
   */
  run<T>(name: string, check: (check: Check) => Promise<T>): Promise<T | undefined>;
}

/** The number of missing responses after which the examination ends. */
const MAX_MISSING_RESPONSES = 3;

/** Maximum length of a sentence, in characters. A longer sentence consists mostly of text from the server. */
const MAX_CHARACTERS = 500;

/** Creates an empty report. After `signal` aborts, no checks run and no findings are added. */
export function createReport(signal?: AbortSignal): Report {
  const findings: Finding[] = [];
  let missingResponses = 0;

  function at(name: string): Check {
    const add = (level: Finding["level"], message: string, fix?: string) => {
      // Do not report a missing response after the abort, because the examination has aborted the request itself.
      if (signal?.aborted) return;
      findings.push({ level, check: name, message: clean(message), ...fix !== undefined && { fix: clean(fix) } });
    };
    return {
      ok: (message) => add("ok", message),
      note: (message, fix) => add("note", message, fix),
      problem: (message, fix) => add("problem", message, fix),
    };
  }

  async function run<T>(name: string, runCheck: (check: Check) => Promise<T>): Promise<T | undefined> {
    if (missingResponses >= MAX_MISSING_RESPONSES || signal?.aborted) return;
    const check = at(name);
    try {
      return await runCheck(check);
    } catch (error) {
      if (!(error instanceof NoResponse)) throw error;
      if (signal?.aborted) return;
      check.problem(error.message, error.fix);
      if (++missingResponses === MAX_MISSING_RESPONSES) {
        at("end").problem(
          `${missingResponses} requests got no response, so the remaining checks were skipped`,
          "fix the problems above, and run doctor again",
        );
      }
    }
  }

  return { findings, at, run };
}

/** Removes control characters, because text from a server must not control the terminal. */
function clean(text: string): string {
  const printable = toPrintableLine(text.slice(0, 2 * MAX_CHARACTERS).replace(/[\t\r\n]+/g, " "));
  return printable.length > MAX_CHARACTERS ? `${printable.slice(0, MAX_CHARACTERS)}…` : printable;
}

/** Returns the messages of an error and of its causes. */
export function toReason(error: unknown): string {
  const reasons: string[] = [];
  for (let each = error; each instanceof Error && reasons.length < 4; each = each.cause) {
    const { message, name } = each;
    const [first] = each instanceof AggregateError ? each.errors : [];
    const reason = message || (first instanceof Error ? first.message : name);
    // Some errors end with the message of their cause.
    if (!reasons.at(-1)?.endsWith(reason)) reasons.push(reason);
  }
  return reasons.join(": ") || String(error);
}
