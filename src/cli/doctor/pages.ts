/**
 * What web pages may do: those that should be let in, and those that must not.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http (Security & Endpoint)
 * @module
 */
import { isLoopbackHost } from "../../transports/http/access.ts";
import type { Dialect } from "./dialect.ts";
import { type Answer, exchange, type Place, type Sent } from "./exchange.ts";
import { readResult } from "./revisions.ts";
import type { Report, Tell } from "./report.ts";

/** Sends a request that names another host than the one it goes to; the status. */
export type SendAs = (
  url: string,
  sent: { readonly headers: Readonly<Record<string, string>>; readonly body: string; readonly timeoutMs: number },
) => Promise<number>;

/** Which page should be let in, and how to name another host. */
export interface PageOptions {
  readonly report: Report;
  /** The origin of a page that the user wants to be let in. */
  readonly origin?: string;
  readonly sendAs?: SendAs;
}

/** The page of the official inspector. */
const INSPECTOR = "http://localhost:6274";
/** Names that nobody has. */
const STRANGER = "https://stranger.invalid";
const STRANGE_HOST = "stranger.invalid";

/** Looks at what pages may do. */
export async function examinePages(place: Place, dialect: Dialect, options: PageOptions): Promise<void> {
  const { report, origin = INSPECTOR, sendAs } = options;
  const isNear = isLoopbackHost(new URL(place.url).host);
  const sent = dialect.write(dialect.idle);
  const isRefused = await report.look("foreign origin", async (tell) => {
    const answer = await exchange(place, withHeaders(sent, { origin: STRANGER }));
    if (!readResult(answer)) {
      tell.ok(`a page of an origin that nobody knows is refused with ${answer.status}`);
      return true;
    }
    const what = `a page of any origin is answered: ${STRANGER} got a result`;
    isNear
      ? tell.problem(
        `${what}, and with DNS rebinding any web page can use this server`,
        "refuse an Origin that is not listed with 403",
      )
      : tell.note(what, "refuse an Origin that is not listed with 403, unless every page may use this server");
    return false;
  });
  if (isNear && place.url.startsWith("http:")) {
    await report.look("foreign host", (tell) => examineHost(place, sent, { tell, sendAs }));
  }
  await report.look(
    "cors",
    (tell) => examineCors(place, dialect, { tell, origin, isWanted: options.origin !== undefined, isRefused, isNear }),
  );
}

function withHeaders({ headers, ...sent }: Sent, more: Readonly<Record<string, string>>): Sent {
  return { ...sent, headers: { ...headers, ...more } };
}

async function examineHost(
  place: Place,
  { headers = {}, body = "" }: Sent,
  { tell, sendAs }: { readonly tell: Tell; readonly sendAs?: SendAs },
): Promise<void> {
  const { port } = new URL(place.url);
  const host = port ? `${STRANGE_HOST}:${port}` : STRANGE_HOST;
  const given = Object.entries({ ...place.headers, ...headers }).flatMap(([name, value]) =>
    value === null ? [] : [[name, value]]
  );
  let status;
  try {
    status = await sendAs?.(place.url, {
      headers: { ...Object.fromEntries(given), host },
      body,
      timeoutMs: place.timeoutMs,
    });
  } catch (error) {
    // A connection that is closed on such a request is a refusal, too.
    const state = error instanceof Error ? error.message : String(error);
    return tell.ok(`a request for the host ${STRANGE_HOST} is not answered: ${state}`);
  }
  if (status === undefined) {
    return tell.note("whether a request for another host is refused was not tried", "look at it from Deno or Bun");
  }
  if (status >= 400) return tell.ok(`a request for the host ${STRANGE_HOST} is refused with ${status}`);
  tell.problem(
    `a request for the host ${STRANGE_HOST} is answered (${status}): with DNS rebinding any web page can use this server`,
    "refuse a Host that is not localhost or an address of this machine with 403",
  );
}

interface CorsLook {
  readonly tell: Tell;
  readonly origin: string;
  /** Whether the user wants the page to be let in. */
  readonly isWanted: boolean;
  readonly isRefused?: boolean;
  readonly isNear: boolean;
}

async function examineCors(place: Place, dialect: Dialect, cors: CorsLook): Promise<void> {
  const { tell, origin, isWanted, isRefused, isNear } = cors;
  const wanted = [
    "content-type",
    "mcp-protocol-version",
    ...dialect.isModern ? ["mcp-method", "mcp-name"] : ["mcp-session-id", "last-event-id"],
    ...Object.keys(place.headers).map((name) => name.toLowerCase()),
  ];
  // A browser asks without the user's headers.
  const asked = await exchange({ ...place, headers: {} }, {
    method: "OPTIONS",
    headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": wanted.join(",") },
  });
  const allow = asked.headers.get("access-control-allow-origin");
  if (allow !== origin && allow !== "*") {
    const what = `a page of ${origin} may not call: OPTIONS is answered with ${asked.status} and ${
      allow === null ? "no Access-Control-Allow-Origin" : `Access-Control-Allow-Origin: ${allow}`
    }`;
    const remedy = asked.status === 401
      ? "answer OPTIONS before you look for a token, which browsers do not send with it"
      : `answer OPTIONS with 204 and Access-Control-Allow-Origin: ${origin}`;
    const also = `${remedy}; in @x/mcp: cors: { origins: ["${origin}"] }`;
    return isWanted ? tell.problem(what, also) : tell.note(`${what}, which matters to clients in browsers alone`, also);
  }
  if (asked.status < 200 || asked.status > 299) {
    tell.problem(`OPTIONS is answered with ${asked.status}, which browsers take for a no`, "answer it with 204");
  }
  const headers = readNames(asked, "access-control-allow-headers");
  // A star does not stand for this one.
  const missing = wanted.filter((name) =>
    !headers.includes(name) && (!headers.includes("*") || name === "authorization")
  );
  if (missing.length) {
    tell.problem(
      `pages of ${origin} may not send ${missing.join(", ")}`,
      `add ${missing.length > 1 ? "these" : "it"} to Access-Control-Allow-Headers in the answer to OPTIONS`,
    );
  }
  const methods = readNames(asked, "access-control-allow-methods");
  if (dialect.sessionId !== undefined && !methods.includes("delete") && !methods.includes("*")) {
    tell.problem(`pages of ${origin} may not end sessions`, "add DELETE to Access-Control-Allow-Methods");
  }
  const answer = await exchange(place, withHeaders(dialect.write(dialect.idle), { origin }));
  const given = answer.headers.get("access-control-allow-origin");
  if (given !== origin && given !== "*") {
    tell.problem(
      `OPTIONS allows ${origin}, but the answer to POST has no Access-Control-Allow-Origin for it`,
      "put that header on every answer, errors too",
    );
  }
  const exposed = readNames(answer, "access-control-expose-headers");
  const hidden = [...dialect.sessionId === undefined ? [] : ["mcp-session-id"], "www-authenticate"]
    .filter((name) => !exposed.includes(name) && !exposed.includes("*"));
  if (hidden.includes("mcp-session-id")) {
    tell.problem(
      `pages of ${origin} cannot read Mcp-Session-Id, so they cannot go on after initialize`,
      "add Mcp-Session-Id to Access-Control-Expose-Headers",
    );
  } else if (hidden.length && "authorization" in place.headers) {
    tell.note("pages cannot read WWW-Authenticate", "add it to Access-Control-Expose-Headers");
  }
  if (allow === "*" && isNear && !isRefused) {
    tell.problem("every web page may call this server and read its answers", `list origins in place of "*"`);
  }
  if (!missing.length) tell.ok(`a page of ${origin} may call`);
}

function readNames({ headers }: Answer, name: string): readonly string[] {
  return (headers.get(name) ?? "").toLowerCase().split(",").map((each) => each.trim());
}
