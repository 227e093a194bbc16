/**
 * Checks how sessions begin and end.
 *
 * @see specification/2025-11-25/basic/transports (Session Management)
 */
import { type Endpoint, exchange, legacyWriter, type RequestWriter, type ServerResponse } from "./exchange.ts";
import { describeResponse, endSession, readResult } from "./revision_checks.ts";
import type { Check, Report } from "./report.ts";

export async function checkSession(endpoint: Endpoint, writer: RequestWriter, report: Report): Promise<void> {
  const { sessionId, version, write } = writer;
  const { run } = report;
  await run("initialized", async (check) => {
    const response = await exchange(endpoint, write("notifications/initialized"));
    if (response.status === 202) check.ok("a notification gets 202");
    else if (response.status < 300) {
      check.note(`a notification gets ${describeResponse(response)}`, "respond with 202 and no body");
    } else check.problem(`a notification gets ${describeResponse(response)}`, "respond with 202 and no body");
  });
  const check = report.at("session");
  if (sessionId === undefined) {
    return check.ok("the server assigns no Mcp-Session-Id, so its requests are stateless");
  }
  if (/^[\x21-\x7e]+$/.test(sessionId)) check.ok("initialize assigns an Mcp-Session-Id");
  else {check.problem(
      "the Mcp-Session-Id contains characters that are not safe in a header",
      "use only visible ASCII characters",
    );}
  await run("session missing", async (check) => {
    const response = await exchange(endpoint, legacyWriter(version).write("ping"));
    if (response.status === 400) check.ok("a request without Mcp-Session-Id is rejected with 400");
    else if (readResult(response)) check.ok("a request without Mcp-Session-Id is served without a session");
    else {
      check.note(
        `a request without Mcp-Session-Id gets ${describeResponse(response)}`,
        "respond with 400; 404 means that a session has ended",
      );
    }
  });
  await run("session unknown", async (check) => {
    const response = await exchange(endpoint, legacyWriter(version, crypto.randomUUID()).write("ping"));
    if (response.status === 404) return check.ok("an unknown session gets 404");
    check.problem(
      `an unknown session gets ${describeResponse(response)}`,
      "respond with 404, because clients begin a new session only after 404, for example after the server has " +
        "restarted",
    );
  });
}

/** Ends the session and checks that it has ended. Returns whether the request to end the session was sent. */
export async function checkSessionEnd(endpoint: Endpoint, writer: RequestWriter, { run }: Report): Promise<boolean> {
  if (writer.sessionId === undefined) return true;
  const response = await run("session end", async (check) => {
    const response = await endSession(endpoint, writer);
    if (response) await checkEndResponse(endpoint, { writer, response, check });
    return response;
  });
  return response !== undefined;
}

async function checkEndResponse(
  endpoint: Endpoint,
  { writer, response, check }: {
    readonly writer: RequestWriter;
    readonly response: ServerResponse;
    readonly check: Check;
  },
): Promise<void> {
  if (response.status === 405) {
    return check.note(
      "DELETE gets 405, so clients cannot end their sessions",
      "support DELETE, or let idle sessions expire soon",
    );
  }
  if (response.status >= 300) {
    return check.problem(
      `DELETE gets ${describeResponse(response)}`,
      "end the session and respond with 200 or 204, or respond with 405",
    );
  }
  const after = await exchange(endpoint, writer.write("ping"));
  if (after.status === 404) return check.ok(`DELETE ends the session (${response.status}), and later requests get 404`);
  check.problem(
    `DELETE gets ${response.status}, but a later request in the session gets ${describeResponse(after)}`,
    "end the session, and respond with 404 to later requests in the session",
  );
}
