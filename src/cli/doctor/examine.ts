/**
 * Walks through a server as clients do. Nothing changes there but sessions, which are begun and ended; no tool is
 * called.
 *
 * @module
 */
import { examineRefusal, examineToken } from "./auth.ts";
import { type Dialect, LEGACY, MODERN } from "./dialect.ts";
import type { Place } from "./exchange.ts";
import { examineDialect, examineMessages } from "./messages.ts";
import { examineLatency, examineOffer } from "./offer.ts";
import { examinePages, type SendAs } from "./pages.ts";
import { findPath, reach } from "./reach.ts";
import { begin, discover, endSession, namesEndpoint, shakeHands } from "./revisions.ts";
import { examineEnd, examineSession } from "./sessions.ts";
import { createReport, type Finding, type Report } from "./report.ts";
import { examineStream } from "./streams.ts";

/** What is examined, and how. */
export interface ExamineOptions {
  readonly url: string;
  /** Headers of every request, with names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds for each request; 5000 if nothing is said. */
  readonly timeoutMs?: number;
  /** Milliseconds to wait for a sign of life on a quiet stream; none if nothing is said. */
  readonly heartbeatMs?: number;
  /** The origin of a web page that should be let in. */
  readonly origin?: string;
  /** Stops, with what was found until then. */
  readonly signal?: AbortSignal;
  readonly fetch?: (request: Request) => Promise<Response>;
  readonly sendAs?: SendAs;
}

/** Examines a server; what was found, in the order in which it was looked at. */
export async function examine(options: ExamineOptions): Promise<readonly Finding[]> {
  const { url, headers = {}, timeoutMs = 5000, signal } = options;
  const fetch = options.fetch ?? ((request: Request) => globalThis.fetch(request));
  const report = createReport(signal);
  const place = { url, headers, timeoutMs, fetch };
  const sessions = new Set<Dialect>();
  try {
    await walk({ ...place, signal }, report, { ...options, sessions });
  } finally {
    // Whatever came between.
    for (const session of sessions) await endSession(place, session).catch(() => {});
  }
  return report.findings;
}

interface Walk extends ExamineOptions {
  /** Those that are open. */
  readonly sessions: Set<Dialect>;
}

async function walk(place: Place, report: Report, { heartbeatMs, origin, sendAs, sessions }: Walk): Promise<void> {
  const first = await report.look("reach", (tell) => reach(place, tell));
  if (!first) return;
  if (first.status === 401) return await examineRefusal(place, first, report);
  const found = discover(first, report.at(MODERN));
  const old = await report.look("handshake", (tell) => shakeHands(place, { tell, sessions }));
  const [modern, legacy] = [found?.modern, old?.legacy];
  const dialect = modern ?? legacy;
  if (!dialect) return await examineOther(place, report);
  tellMissing(report, { modern: modern !== undefined, legacy: legacy !== undefined });
  if (legacy) await examineSession(place, legacy, report);
  await examineToken(place, dialect, report);
  await examineMessages(place, dialect, report);
  for (const each of [modern, legacy]) if (each) await examineDialect(place, each, report);
  // Beside each other: who waits for signs of life waits once.
  const spoken = [modern, legacy].filter((each) => each !== undefined);
  await Promise.all(spoken.map((each) => examineStream(place, each, { report, heartbeatMs })));
  // Pages have more to be allowed where there are sessions.
  await examinePages(place, legacy ?? dialect, { report, origin, sendAs });
  await examineLatency(place, dialect, report);
  if (legacy && await examineEnd(place, legacy, report)) sessions.delete(legacy);
  await examineOffer(place, report);
}

/** Looks what else a server could be that takes neither question nor handshake. */
async function examineOther(place: Place, report: Report): Promise<void> {
  const isFirst = await report.look("first transport", () => namesEndpoint(place));
  if (isFirst) {
    report.at("first transport").note(
      "it speaks the transport of 2024-11-05 alone, HTTP with SSE, which newer clients give up",
      "serve Streamable HTTP, at one address for everything",
    );
    return await examineOffer(place, report);
  }
  const refused = await report.look("path", async (tell) => {
    const answer = await begin(place, LEGACY[0]);
    if (answer.status === 401) return answer;
    const { error } = answer.message ?? {};
    if (!error || [404, 405].includes(answer.status)) return void await findPath(place, answer, tell);
    tell.problem(
      `initialize is refused with the error ${error.code}, ${JSON.stringify(error.message)} (${answer.status})`,
      "take server/discover or initialize from a client that was not there before; look at the server's log",
    );
  });
  if (refused) await examineRefusal(place, refused, report);
}

function tellMissing({ at }: Report, has: { readonly modern: boolean; readonly legacy: boolean }): void {
  if (!has.modern) {
    at(MODERN).note(`${MODERN} is not served: clients of it fall back on a handshake`, `serve it beside ${LEGACY[0]}`);
  }
  if (!has.legacy) {
    at("handshake").note(
      `no handshake is taken: clients of ${LEGACY[0]} and before, which most still are, cannot connect`,
      "serve the older revisions beside it (in @x/mcp: createServer of mod.ts, not of modern.ts)",
    );
  }
}
