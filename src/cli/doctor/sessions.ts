/**
 * How sessions begin and end.
 *
 * @see specification/2025-11-25/basic/transports (Session Management)
 * @module
 */
import { type Dialect, legacyDialect } from "./dialect.ts";
import { type Answer, exchange, type Place } from "./exchange.ts";
import { endSession, readResult, tellAnswer } from "./revisions.ts";
import type { Report, Tell } from "./report.ts";

/** Looks at the session while it is open. */
export async function examineSession(place: Place, dialect: Dialect, report: Report): Promise<void> {
  const { sessionId, version, write } = dialect;
  const { look } = report;
  await look("initialized", async (tell) => {
    const answer = await exchange(place, write("notifications/initialized"));
    if (answer.status === 202) tell.ok("notifications are answered with 202");
    else if (answer.status < 300) {
      tell.note(`a notification is answered with ${tellAnswer(answer)}`, "answer it with 202 and no body");
    } else tell.problem(`a notification is answered with ${tellAnswer(answer)}`, "answer it with 202 and no body");
  });
  const tell = report.at("session");
  if (sessionId === undefined) {
    return tell.ok("the server hands out no Mcp-Session-Id: every request stands for itself");
  }
  if (/^[\x21-\x7e]+$/.test(sessionId)) tell.ok("initialize hands out an Mcp-Session-Id");
  else tell.problem("the Mcp-Session-Id has characters that a header cannot hold safely", "use visible ASCII alone");
  await look("session missing", async (tell) => {
    const answer = await exchange(place, legacyDialect(version).write("ping"));
    if (answer.status === 400) tell.ok("a request without Mcp-Session-Id is refused with 400");
    else if (readResult(answer)) tell.ok("a request without Mcp-Session-Id is served on its own");
    else {
      tell.note(
        `a request without Mcp-Session-Id is answered with ${tellAnswer(answer)}`,
        "answer 400; 404 would say that a session has ended",
      );
    }
  });
  await look("session unknown", async (tell) => {
    const answer = await exchange(place, legacyDialect(version, crypto.randomUUID()).write("ping"));
    if (answer.status === 404) return tell.ok("a session that is not known is answered with 404");
    tell.problem(
      `a session that is not known is answered with ${tellAnswer(answer)}`,
      "answer 404: only then clients begin a new session, after a restart of the server for example",
    );
  });
}

/** Ends the session, and looks whether it is over; whether the server was asked to end it. */
export async function examineEnd(place: Place, dialect: Dialect, { look }: Report): Promise<boolean> {
  if (dialect.sessionId === undefined) return true;
  const answer = await look("session end", async (tell) => {
    const answer = await endSession(place, dialect);
    if (answer) await tellEnd(place, { dialect, answer, tell });
    return answer;
  });
  return answer !== undefined;
}

async function tellEnd(
  place: Place,
  { dialect, answer, tell }: { readonly dialect: Dialect; readonly answer: Answer; readonly tell: Tell },
): Promise<void> {
  if (answer.status === 405) {
    return tell.note(
      "DELETE is answered with 405: clients cannot end their sessions",
      "take DELETE, or let idle sessions expire soon",
    );
  }
  if (answer.status >= 300) {
    const what = `DELETE is answered with ${tellAnswer(answer)}`;
    return tell.problem(what, "end the session with 200 or 204, or answer 405");
  }
  const after = await exchange(place, dialect.write("ping"));
  if (after.status === 404) return tell.ok(`DELETE ends the session (${answer.status}); after it comes 404`);
  tell.problem(
    `DELETE is answered with ${answer.status}, but a request of the session then with ${tellAnswer(after)}`,
    "end the session, and answer 404 to whoever names it afterwards",
  );
}
