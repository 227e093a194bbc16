/**
 * Explains why a server cannot be reached. The explanations are the same on all runtimes.
 */

export interface ConnectionProblem {
  /** The reason, without the URL. */
  readonly state: string;
  readonly remedy: string;
}

/** Depends on the messages of the error and its causes, because the runtimes have no common error codes. */
export function explainConnectionError(error: unknown, url: string): ConnectionProblem {
  const { host, hostname, port, protocol } = new URL(url);
  const text = mapError(error);
  const explain = (state: string, remedy: string) => ({ state, remedy });
  if (/dns error|ENOTFOUND|EAI_AGAIN|getaddrinfo|lookup address/i.test(text)) {
    return explain(
      `the host name ${hostname} has no address`,
      "check the spelling of the host name, and that this machine is online",
    );
  }
  if (/NotCapable|Requires net access/i.test(text)) {
    return explain(`this program has no network permission: ${text}`, `run the program with --allow-net=${host}`);
  }
  // The Fetch Standard blocks ports that are reserved for protocols other than HTTP.
  if (/port \d+ (is|are) blocked|bad port/i.test(text)) {
    return explain(`this runtime sends no requests to port ${port}`, "serve on a different port");
  }
  if (/refused/i.test(text)) {
    return explain(
      `nothing listens at ${host}`,
      "start the server, and check the port that it prints; in a container, the server must listen on 0.0.0.0",
    );
  }
  if (/certificate|cert_|self.signed|UNABLE_TO_VERIFY|ALTNAME|UnknownIssuer|NotValidFor|Expired/i.test(text)) {
    return explain(
      `the certificate is not trusted: ${text}`,
      "use a certificate that clients trust for this name; to trust your own CA, set DENO_CERT, or NODE_EXTRA_CA_CERTS on Bun",
    );
  }
  if (protocol === "https:" && /InvalidContentType|corrupt message|EPROTO|handshake|wrong version/i.test(text)) {
    return explain(`${host} does not speak TLS`, `use http:// instead of https://, or put TLS in front of the server`);
  }
  if (protocol === "http:" && /invalid HTTP|malformed|parse|unexpected message|closed|reset/i.test(text)) {
    return explain(
      `${host} closed the connection or sent something other than HTTP`,
      "use https:// if the server expects TLS; otherwise check the server's log",
    );
  }
  return explain(`the request failed: ${text}`, "check the URL and the server's log");
}

/** Returns the messages of an error and its causes, without the prefixes that runtimes add. */
function mapError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined;
  const message = NOISE.reduce((text, noise) => text.replace(noise, ""), error.message);
  const coded = code === undefined || message.includes(code) ? message : `${message} (${code})`;
  const cause = error.cause === undefined ? "" : mapError(error.cause);
  return [coded, cause].filter(Boolean).join(": ");
}

const NOISE = [
  /^(fetch failed|error sending request (for|from) .*?\)):? ?/i,
  /^client error \(\w+\): ?/i,
  /\. For more information, pass `verbose: true` in the second argument to fetch\(\)/,
];
