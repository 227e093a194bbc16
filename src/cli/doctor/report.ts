/**
 * What an examination has found so far.
 *
 * @module
 */
import { toPrintableLine } from "../../protocol/printable.ts";
import { Lost } from "./exchange.ts";

/**
 * One thing that was looked at. A problem breaks what the protocol demands, or keeps somebody out, or lets somebody in;
 * a note is worth knowing.
 */
export interface Finding {
  readonly level: "ok" | "note" | "problem";
  /** What was looked at, the same word for the same thing every time. */
  readonly check: string;
  /** What was seen, in one sentence. */
  readonly what: string;
  /** How to mend it, in one sentence. */
  readonly mend?: string;
}

/** Writes down what was seen of one thing. */
export interface Tell {
  ok(what: string): void;
  note(what: string, mend: string): void;
  problem(what: string, mend: string): void;
}

/** Where findings are written down. */
export interface Report {
  readonly findings: readonly Finding[];
  at(check: string): Tell;
  /** Looks at one thing. That no answer comes is a finding too; after some of these nothing more is looked at. */
  look<T>(check: string, look: (tell: Tell) => Promise<T>): Promise<T | undefined>;
}

/** How often a server may leave a request without an answer before it is left alone. */
const MOST_LOST = 3;

/** Characters of a sentence, most of which are the server's. */
const MOST_CHARACTERS = 500;

/** An empty report; once `signal` is aborted, nothing more is looked at. */
export function createReport(signal?: AbortSignal): Report {
  const findings: Finding[] = [];
  let lost = 0;

  function at(check: string): Tell {
    const add = (level: Finding["level"], what: string, mend?: string) =>
      void findings.push({ level, check, what: clean(what), ...mend !== undefined && { mend: clean(mend) } });
    return {
      ok: (what) => add("ok", what),
      note: (what, mend) => add("note", what, mend),
      problem: (what, mend) => add("problem", what, mend),
    };
  }

  async function look<T>(check: string, look: (tell: Tell) => Promise<T>): Promise<T | undefined> {
    if (lost >= MOST_LOST || signal?.aborted) return;
    const tell = at(check);
    try {
      return await look(tell);
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
      if (signal?.aborted) return;
      tell.problem(error.what, error.mend);
      if (++lost === MOST_LOST) {
        at("end").problem(
          `${lost} requests got no answer, so nothing more was asked`,
          "mend these first, and look again",
        );
      }
    }
  }

  return { findings, at, look };
}

// What a server wrote must not steer the terminal in which it is shown.
function clean(text: string): string {
  const plain = toPrintableLine(text.slice(0, 2 * MOST_CHARACTERS).replace(/[\t\r\n]+/g, " "));
  return plain.length > MOST_CHARACTERS ? `${plain.slice(0, MOST_CHARACTERS)}…` : plain;
}
