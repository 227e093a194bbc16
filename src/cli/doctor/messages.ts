/**
 * What is done about requests that are not as they should be.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http
 * @module
 */
import { HEADER_MISMATCH, METHOD_NOT_FOUND, PARSE_ERROR, UNSUPPORTED_VERSION } from "../../protocol/errors.ts";
import { isLoopbackHost } from "../../transports/http/access.ts";
import { type Dialect, modernDialect } from "./dialect.ts";
import { exchange, type Place } from "./exchange.ts";
import { readResult, tellAnswer } from "./revisions.ts";
import type { Report } from "./report.ts";

/** Looks at what is the same in all revisions. */
export async function examineMessages(place: Place, dialect: Dialect, { look }: Report): Promise<void> {
  const { write, idle } = dialect;
  const { headers, body } = write(idle);
  await look("content type", async (tell) => {
    const answer = await exchange(place, { headers: { ...headers, "content-type": "text/plain" }, body });
    if (answer.status === 415) return tell.ok("a body that is not announced as JSON is refused with 415");
    if (!readResult(answer)) {
      return answer.status >= 500
        ? tell.problem(`a body of text/plain is answered with ${tellAnswer(answer)}`, "refuse it with 415")
        : tell.note(`a body of text/plain is answered with ${tellAnswer(answer)}`, "415 would say why");
    }
    const remedy = "refuse what is not Content-Type: application/json with 415";
    const what = "a body of text/plain is answered as if it were JSON: any web page may send one without asking first";
    isLoopbackHost(new URL(place.url).host) ? tell.problem(what, remedy) : tell.note(what, remedy);
  });
  await look("broken JSON", async (tell) => {
    const answer = await exchange(place, { headers, body: body?.slice(0, -1) });
    const code = answer.message?.error?.code;
    if (answer.status === 400 && code === PARSE_ERROR) return tell.ok("broken JSON is refused with 400 and -32700");
    const remedy = "answer 400 with the JSON-RPC error -32700";
    const what = `broken JSON is answered with ${tellAnswer(answer)}`;
    const isRefused = answer.message?.error !== undefined || (answer.status >= 400 && answer.status < 500);
    isRefused ? tell.note(what, remedy) : tell.problem(what, remedy);
  });
  await look("accept", async (tell) => {
    const answer = await exchange(place, { headers: { ...headers, accept: "application/json" }, body });
    if (answer.isStream) {
      tell.problem(
        "a client whose Accept lists application/json alone gets a stream",
        "answer it with JSON, or with 406",
      );
    } else if (readResult(answer)) tell.ok("a client that accepts JSON alone gets JSON");
    else if (answer.status === 406) tell.ok("a client that accepts JSON alone is refused with 406, as it may be");
    else tell.note(`a client that accepts JSON alone gets ${tellAnswer(answer)}`, "answer it with JSON, or with 406");
  });
}

/** Looks at what is the business of one revision. */
export async function examineDialect(place: Place, dialect: Dialect, report: Report): Promise<void> {
  const { version, isModern, write } = dialect;
  await report.look("unknown method", async (tell) => {
    const answer = await exchange(place, write("doctor/unknown"));
    const isTold = answer.message?.error?.code === METHOD_NOT_FOUND;
    if (isTold && (isModern ? answer.status === 404 : answer.status < 300)) {
      return tell.ok(`a method that is not there is refused with -32601 (${version})`);
    }
    tell.problem(
      `a method that is not there is answered with ${tellAnswer(answer)} (${version})`,
      isModern
        ? "answer 404 with the JSON-RPC error -32601"
        : "answer 200 with the JSON-RPC error -32601; 404 would say that the session has ended",
    );
  });
  await (isModern ? examineModern : examineLegacy)(place, dialect, report);
}

async function examineModern(place: Place, { write, idle }: Dialect, { look }: Report): Promise<void> {
  await look("version header", async (tell) => {
    const answer = await exchange(place, modernDialect("1999-01-01").write(idle));
    if (answer.status === 400 && answer.message?.error?.code === UNSUPPORTED_VERSION) {
      return tell.ok("a revision that is not served is refused with 400 and -32022");
    }
    tell.problem(
      `a request of the revision 1999-01-01 is answered with ${tellAnswer(answer)}`,
      "answer 400 with the JSON-RPC error -32022, and name the revisions that are served in data.supported",
    );
  });
  await look("repeated headers", async (tell) => {
    const { headers, body } = write(idle);
    const answer = await exchange(place, { headers: { ...headers, "mcp-method": "tools/list" }, body });
    if (answer.status === 400 && answer.message?.error?.code === HEADER_MISMATCH) {
      return tell.ok("a Mcp-Method header that the body contradicts is refused with 400 and -32020");
    }
    tell.problem(
      `a Mcp-Method header that the body contradicts is answered with ${tellAnswer(answer)}`,
      "compare Mcp-Method, Mcp-Name and MCP-Protocol-Version with the body, and answer 400 with -32020",
    );
  });
}

async function examineLegacy(place: Place, { write, idle, version }: Dialect, { look }: Report): Promise<void> {
  if (version < "2025-06-18") return;
  await look("version header", async (tell) => {
    const { headers, body } = write(idle);
    const answer = await exchange(place, { headers: { ...headers, "mcp-protocol-version": "1999-01-01" }, body });
    if (answer.status === 400) {
      return tell.ok(`a MCP-Protocol-Version that nobody knows is refused with 400 (${version})`);
    }
    tell.problem(
      `a MCP-Protocol-Version that nobody knows is answered with ${tellAnswer(answer)} (${version})`,
      "answer 400 to a revision that is not served",
    );
  });
}
