/**
 * Checks how a server handles invalid requests.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http
 */
import { HEADER_MISMATCH, METHOD_NOT_FOUND, PARSE_ERROR, UNSUPPORTED_VERSION } from "../protocol.ts";
import { isLoopbackHost } from "../../host.ts";
import { type Endpoint, exchange, modernWriter, type RequestWriter } from "./exchange.ts";
import { describeResponse, readResult } from "./revision_checks.ts";
import type { Report } from "./report.ts";

/** Checks how the server handles requests that are invalid in every revision. */
export async function checkInvalidRequests(endpoint: Endpoint, writer: RequestWriter, { run }: Report): Promise<void> {
  const { write, pingMethod } = writer;
  const { headers, body } = write(pingMethod);
  await run("content type", async (check) => {
    const response = await exchange(endpoint, { headers: { ...headers, "content-type": "text/plain" }, body });
    if (response.status === 415) return check.ok("a body with a content type other than JSON is rejected with 415");
    if (!readResult(response)) {
      return response.status >= 500
        ? check.problem(`a text/plain body gets ${describeResponse(response)}`, "reject the request with 415")
        : check.note(
          `a text/plain body gets ${describeResponse(response)}`,
          "reject the request with 415, so that clients know the reason",
        );
    }
    const fix = "reject every content type except application/json with 415";
    const message = "a text/plain body is read as JSON, and any web page can send text/plain without a CORS preflight";
    isLoopbackHost(new URL(endpoint.url).host) ? check.problem(message, fix) : check.note(message, fix);
  });
  await run("invalid JSON", async (check) => {
    const response = await exchange(endpoint, { headers, body: body?.slice(0, -1) });
    const code = response.message?.error?.code;
    if (response.status === 400 && code === PARSE_ERROR) {
      return check.ok("invalid JSON is rejected with 400 and -32700");
    }
    const fix = "respond with 400 and JSON-RPC error -32700";
    const message = `invalid JSON gets ${describeResponse(response)}`;
    const isRejected = response.message?.error !== undefined || (response.status >= 400 && response.status < 500);
    isRejected ? check.note(message, fix) : check.problem(message, fix);
  });
  await run("accept", async (check) => {
    const response = await exchange(endpoint, { headers: { ...headers, accept: "application/json" }, body });
    if (response.isStream) {
      check.problem(
        "a client that accepts only application/json gets a stream",
        "respond with JSON or 406",
      );
    } else if (readResult(response)) check.ok("a client that accepts only JSON gets JSON");
    else if (response.status === 406) {
      check.ok("a client that accepts only JSON is rejected with 406, which the protocol allows");
    } else check.note(`a client that accepts only JSON gets ${describeResponse(response)}`, "respond with JSON or 406");
  });
}

/** Checks how the server handles requests that are invalid in one revision. */
export async function checkRevisionRequests(endpoint: Endpoint, writer: RequestWriter, report: Report): Promise<void> {
  const { version, isModern, write } = writer;
  await report.run("unknown method", async (check) => {
    const response = await exchange(endpoint, write("doctor/unknown"));
    const isNotFound = response.message?.error?.code === METHOD_NOT_FOUND;
    if (isNotFound && (isModern ? response.status === 404 : response.status < 300)) {
      return check.ok(`an unknown method is rejected with -32601 (${version})`);
    }
    check.problem(
      `an unknown method gets ${describeResponse(response)} (${version})`,
      isModern
        ? "respond with 404 and JSON-RPC error -32601"
        : "respond with 200 and JSON-RPC error -32601; 404 means that the session has ended",
    );
  });
  await (isModern ? checkModernRequests : checkLegacyRequests)(endpoint, writer, report);
}

async function checkModernRequests(
  endpoint: Endpoint,
  { write, pingMethod }: RequestWriter,
  { run }: Report,
): Promise<void> {
  await run("version header", async (check) => {
    const response = await exchange(endpoint, modernWriter("1999-01-01").write(pingMethod));
    if (response.status === 400 && response.message?.error?.code === UNSUPPORTED_VERSION) {
      return check.ok("an unsupported revision is rejected with 400 and -32022");
    }
    check.problem(
      `a request in revision 1999-01-01 gets ${describeResponse(response)}`,
      "respond with 400 and JSON-RPC error -32022, and list the supported revisions in data.supported",
    );
  });
  await run("repeated headers", async (check) => {
    const { headers, body } = write(pingMethod);
    const response = await exchange(endpoint, { headers: { ...headers, "mcp-method": "tools/list" }, body });
    if (response.status === 400 && response.message?.error?.code === HEADER_MISMATCH) {
      return check.ok("an Mcp-Method header that differs from the body is rejected with 400 and -32020");
    }
    check.problem(
      `an Mcp-Method header that differs from the body gets ${describeResponse(response)}`,
      "compare Mcp-Method, Mcp-Name and MCP-Protocol-Version with the body, and respond with 400 and -32020",
    );
  });
}

async function checkLegacyRequests(
  endpoint: Endpoint,
  { write, pingMethod, version }: RequestWriter,
  { run }: Report,
): Promise<void> {
  if (version < "2025-06-18") return;
  await run("version header", async (check) => {
    const { headers, body } = write(pingMethod);
    const response = await exchange(endpoint, { headers: { ...headers, "mcp-protocol-version": "1999-01-01" }, body });
    if (response.status === 400) {
      return check.ok(`an unknown MCP-Protocol-Version is rejected with 400 (${version})`);
    }
    check.problem(
      `an unknown MCP-Protocol-Version gets ${describeResponse(response)} (${version})`,
      "respond with 400 to an unsupported revision",
    );
  });
}
