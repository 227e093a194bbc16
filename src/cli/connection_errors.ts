/**
 * Explains why a server cannot be reached. The explanations are the same on every runtime.
 *
 * @module
 */

/** The reason why a connection failed, with a fix. */
export interface ConnectionProblem {
  /** The cause, without the URL. */
  readonly state: string;
  readonly remedy: string;
}

/**
 * Explains why a connection failed. Compares the messages, because the runtimes have no common error codes, and the
 * reason may be only in the cause of an error.
 */
export function explainConnectionError(error: unknown, url: string): ConnectionProblem {
  const { host, hostname, port, protocol } = new URL(url);
  const text = mapError(error);
  const explain = (state: string, remedy: string) => ({ state, remedy });
  if (/dns error|ENOTFOUND|EAI_AGAIN|getaddrinfo|lookup address/i.test(text)) {
    return explain(`the name ${hostname} has no address`, "check its spelling, and that this machine is online");
  }
  if (/NotCapable|Requires net access/i.test(text)) {
    return explain(`this program has no network permission: ${text}`, `run it with --allow-net=${host}`);
  }
  // The Fetch Standard blocks these ports, because they belong to other protocols.
  if (/port \d+ (is|are) blocked|bad port/i.test(text)) {
    return explain(`this runtime sends no requests to port ${port}`, "serve on another port");
  }
  if (/refused/i.test(text)) {
    return explain(
      `nothing listens at ${host}`,
      "start the server, and check the port that it prints; in a container it must listen on 0.0.0.0",
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
      "use https:// if the server expects TLS; otherwise check the log of the server",
    );
  }
  return explain(`the request failed: ${text}`, "check the URL and the log of the server");
}

/** Returns the messages of an error and its causes, without the text that runtimes add. */
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
