/**
 * Whether there is a server, and whether this is its address.
 *
 * @module
 */
import { isLoopbackHost } from "../../transports/http/access.ts";
import { type Answer, exchange, Lost, type Place } from "./exchange.ts";
import { modernDialect } from "./dialect.ts";
import { tellAnswer, toMs, tryAddress } from "./revisions.ts";
import type { Tell } from "./report.ts";

/** The first answer of a server that can be asked on; nothing if it cannot be reached, or something stands before it. */
export async function reach(place: Place, tell: Tell): Promise<Answer | undefined> {
  const { url } = place;
  const { host, protocol } = new URL(url);
  const dialect = modernDialect();
  let answer;
  try {
    answer = await exchange(place, dialect.write(dialect.idle));
  } catch (error) {
    if (!(error instanceof Lost)) throw error;
    const other = await findOther(place);
    return void tell.problem(
      error.what,
      other === undefined ? error.mend : `use ${other}, where there is a server`,
    );
  }
  const { status } = answer;
  const to = answer.headers.get("location");
  if (status >= 300 && status < 400 && to !== null) {
    const target = URL.canParse(to, url) ? new URL(to, url).href : to;
    return void tell.problem(
      `it redirects to ${target} (${status}), where many clients do not follow with what they post`,
      "give clients that address, and examine it in place of this one",
    );
  }
  if ([502, 503, 504].includes(status) && !answer.message) {
    return void tell.problem(
      `what stands in front of the server cannot reach it (${status})`,
      "look whether the server runs, and at the address that the proxy sends requests to",
    );
  }
  if (status === 429) {
    return void tell.problem("it lets nobody in for now (429)", "wait, or raise the limit on requests");
  }
  if (status === 403) {
    return void tell.problem(
      `it refuses this client: ${tellAnswer(answer)}`,
      "allow the host of this address (in @x/mcp: hosts), and look at what stands in front, such as a firewall",
    );
  }
  tell.ok(`${host} answers in ${toMs(answer.ms)}`);
  if (protocol === "http:" && !isLoopbackHost(host)) {
    tell.note("what is said goes over the network as plain text, tokens too", "put TLS in front, and use https://");
  }
  return answer;
}

// A name of this machine stands for two addresses, and a server often listens on one of them only.
async function findOther(place: Place): Promise<string | undefined> {
  const url = new URL(place.url);
  const names = ["127.0.0.1", "[::1]"];
  if (![...names, "localhost"].includes(url.hostname)) return;
  for (const name of names.filter((each) => each !== url.hostname)) {
    url.hostname = name;
    try {
      const timeoutMs = Math.min(1000, place.timeoutMs);
      if (await tryAddress({ ...place, url: url.href, timeoutMs }) !== undefined) return url.href;
    } catch {
      // There is nobody either.
    }
  }
}

/** Says that nobody speaks MCP at this address, and who does nearby. */
export async function findPath(place: Place, first: Answer, tell: Tell): Promise<void> {
  const url = new URL(place.url);
  const { pathname } = url;
  const slashed = pathname.endsWith("/") ? pathname.slice(0, -1) : `${pathname}/`;
  const found: string[] = [];
  for (const path of new Set(["/mcp", "/", "/sse", slashed])) {
    if (path === pathname || path === "") continue;
    url.pathname = path;
    // One of them that does not answer says nothing of the others.
    const how = await tryAddress({ ...place, url: url.href }).catch(() => undefined);
    if (how !== undefined) found.push(`${url.href} (${how})`);
  }
  tell.problem(
    `nobody speaks MCP at ${pathname}: it answers ${tellAnswer(first)}`,
    found.length
      ? `use ${found.join(" or ")}`
      : first.status >= 500
      ? "look into the server's log: it fails over initialize"
      : "give the path of the endpoint, which the server prints or its documentation names; /mcp, / and /sse are not it",
  );
}
