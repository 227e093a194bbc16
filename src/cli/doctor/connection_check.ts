/**
 * Checks whether a server responds at a URL, and suggests other URLs if no server responds.
 */
import { isLoopbackHost } from "../../host.ts";
import { type Endpoint, exchange, modernWriter, NoResponse, type ServerResponse } from "./exchange.ts";
import { describeResponse, formatMs, identifyEndpoint } from "./revision_checks.ts";
import type { Check } from "./report.ts";

/** Returns `undefined` if the server cannot be reached, or if a proxy responds in place of the server. */
export async function checkConnection(endpoint: Endpoint, check: Check): Promise<ServerResponse | undefined> {
  const { url } = endpoint;
  const { host, protocol } = new URL(url);
  const writer = modernWriter();
  let response;
  try {
    response = await exchange(endpoint, writer.write(writer.pingMethod));
  } catch (error) {
    if (!(error instanceof NoResponse)) throw error;
    const other = await findLoopbackAddress(endpoint);
    return void check.problem(
      error.message,
      other === undefined ? error.fix : `use ${other}, where a server responds`,
    );
  }
  const { status } = response;
  const location = response.headers.get("location");
  if (status >= 300 && status < 400 && location !== null) {
    const target = URL.canParse(location, url) ? new URL(location, url).href : location;
    return void check.problem(
      `the server redirects to ${target} (${status}), and many clients do not follow redirects of POST requests`,
      `give clients the URL ${target}, and run doctor with this URL`,
    );
  }
  if ([502, 503, 504].includes(status) && !response.message) {
    return void check.problem(
      `the proxy in front of the server cannot reach the server (${status})`,
      "check that the server is running, and that the proxy forwards requests to its address",
    );
  }
  if (status === 429) {
    return void check.problem(
      "the server rejects requests because of a rate limit (429)",
      "retry later, or raise the limit",
    );
  }
  if (status === 403) {
    return void check.problem(
      `the server rejects this client: ${describeResponse(response)}`,
      "allow the host of this URL (in @x/mcp: hosts), and check what is in front of the server, such as a firewall",
    );
  }
  check.ok(`${host} responds in ${formatMs(response.ms)}`);
  if (protocol === "http:" && !isLoopbackHost(host)) {
    check.note("requests and tokens are sent unencrypted", "put TLS in front of the server, and use https://");
  }
  return response;
}

/** Tries the other loopback addresses, because many servers listen only on one address. */
async function findLoopbackAddress(endpoint: Endpoint): Promise<string | undefined> {
  const url = new URL(endpoint.url);
  const names = ["127.0.0.1", "[::1]"];
  if (![...names, "localhost"].includes(url.hostname)) return;
  for (const name of names.filter((each) => each !== url.hostname)) {
    url.hostname = name;
    const timeoutMs = Math.min(1000, endpoint.timeoutMs);
    if (await identifyEndpoint({ ...endpoint, url: url.href, timeoutMs })) return url.href;
  }
}

/** Reports that a URL is not an MCP endpoint, and suggests endpoints at other paths on the host. */
export async function suggestEndpoint(endpoint: Endpoint, first: ServerResponse, check: Check): Promise<void> {
  const url = new URL(endpoint.url);
  const { pathname } = url;
  const slashed = pathname.endsWith("/") ? pathname.slice(0, -1) : `${pathname}/`;
  const found: string[] = [];
  for (const path of new Set(["/mcp", "/", "/sse", slashed])) {
    if (path === pathname || path === "") continue;
    url.pathname = path;
    const identified = await identifyEndpoint({ ...endpoint, url: url.href });
    if (identified) found.push(`${url.href} (${identified.description})`);
  }
  check.problem(
    `there is no MCP endpoint at ${pathname}: the response is ${describeResponse(first)}`,
    found.length
      ? `use ${found.join(" or ")}`
      : first.status >= 500
      ? "check the server's log, because the server fails on initialize"
      : "use the path that the server prints or that its documentation names; the endpoint is not at /mcp, / or /sse",
  );
}
