// The messages for failed connections are the same on every runtime.
import { assertEquals } from "@std/assert";
import { explainConnectionError } from "../../src/cli/connection_errors.ts";
import { sentence } from "../support/messages.ts";

const deno = (text: string, url = "x") =>
  new TypeError("fetch failed", { cause: new Error(`error sending request for url (${url}): client error (${text}`) });
const bun = (code: string, text: string) => Object.assign(new TypeError(text), { code });
const HINT = ". For more information, pass `verbose: true` in the second argument to fetch()";

/** The state that is reported for a URL, with the errors that Deno 2.9 and Bun 1.4 throw. */
const errors: readonly (readonly [url: string, title: string, state: string, errors: readonly Error[]])[] = [
  ["http://x.test:80/", "the host name x.test has no address", sentence("x.test"), [
    deno("Connect): dns error: failed to lookup address information: Name or service not known"),
    bun("ENOTFOUND", "getaddrinfo ENOTFOUND x.test"),
  ]],
  ["http://127.0.0.1:9/", "nothing listens at 127.0.0.1:9", sentence("127.0.0.1:9"), [
    deno("Connect): tcp connect error: Connection refused (os error 111)"),
    bun("ECONNREFUSED", "ECONNREFUSED: Unable to connect. Is the computer able to access the url?"),
  ]],
  ["http://x.test/", "x.test closed the connection or sent something other than HTTP", sentence("x.test"), [
    deno("SendRequest): connection closed before message completed"),
    deno("SendRequest): received unexpected message from connection"),
    new TypeError("fetch failed", {
      cause: new Error(
        "error sending request from 127.0.0.1:5 for http://x.test/ (127.0.0.1:80): client error (SendRequest): invalid " +
          "HTTP version parsed",
      ),
    }),
    bun("ECONNRESET", `ECONNRESET: The socket connection was closed unexpectedly${HINT}`),
    bun("Malformed_HTTP_Response", `Malformed_HTTP_Response fetching "http://x.test/"${HINT}`),
  ]],
  ["https://x.test/", "x.test does not speak TLS", sentence("x.test"), [
    deno("Connect): received corrupt message of type InvalidContentType"),
    bun("EPROTO", "EPROTO: The TLS handshake failed. Does the server speak TLS on this port?"),
  ]],
  [
    "https://x.test/",
    "the certificate is not trusted: invalid peer certificate: UnknownIssuer",
    sentence("UnknownIssuer"),
    [
      deno("Connect): invalid peer certificate: UnknownIssuer"),
    ],
  ],
  [
    "https://x.test/",
    "the certificate is not trusted: self signed certificate (DEPTH_ZERO_SELF_SIGNED_CERT)",
    sentence("DEPTH_ZERO_SELF_SIGNED_CERT"),
    [
      bun("DEPTH_ZERO_SELF_SIGNED_CERT", "self signed certificate"),
    ],
  ],
  ["http://x.test:1/", "this runtime sends no requests to port 1", sentence(1), [
    new TypeError("Fetch failed: Requests to port 1 are blocked"),
  ]],
];

for (const [url, title, expected, each] of errors) {
  Deno.test(`a failed connection to ${url} is explained as: ${title}`, () => {
    for (const error of each) assertEquals(explainConnectionError(error, url).state, expected);
  });
}
