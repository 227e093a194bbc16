/**
 * Converts responses of authorization servers that report errors in another way than OAuth requires.
 */
import type { TextResponse } from "./body_pieces.ts";
import { isObject, parseJson } from "./json.ts";

/** Members that only successful responses contain: of a token, of an introspection and of a registration. */
const RESULTS = ["access_token", "active", "client_id"];

/**
 * Creates the response of an authorization server's endpoint. A body with `error` and without a result becomes a
 * response with status 400, because some authorization servers send an error code with status 200. The headers of such
 * a response state only JSON and the nonce, because readers ignore the error code if there is a challenge, or if the
 * body has another type.
 *
 * @see RFC 6749, section 5.2
 */
export function toOAuthResponse({ status, headers, text }: TextResponse): Response {
  if (status >= 500 || !hasOnlyError(text)) {
    return new Response([204, 205, 304].includes(status) ? null : text, { status, headers });
  }
  const nonce = headers.get("dpop-nonce");
  return new Response(text, {
    status: status >= 400 ? status : 400,
    headers: { "content-type": "application/json", ...nonce === null ? {} : { "dpop-nonce": nonce } },
  });
}

function hasOnlyError(text: string): boolean {
  const json = parseJson(text);
  return isObject(json) && typeof json.error === "string" && json.error !== "" &&
    RESULTS.every((name) => (json[name] ?? "") === "");
}
