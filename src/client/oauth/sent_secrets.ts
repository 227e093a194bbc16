/**
 * The secrets of a request to an authorization server, which must not be in the text of an error.
 *
 * @module
 */
import { fromBase64 } from "../../kit/base64.ts";

/** Fields of requests that are not secret. All others are, so that a new one is not shown. */
const PUBLIC_FIELDS: ReadonlySet<string> = new Set([
  "grant_type",
  "client_id",
  "client_assertion_type",
  "redirect_uri",
  "resource",
  "scope",
  "audience",
  "requested_token_type",
  "subject_token_type",
  "token_type_hint",
]);

/** Lists the secrets of a request: those of its form, and those of its `Authorization` header. */
export function listSecrets({ body, headers }: RequestInit): readonly string[] {
  const fields = body instanceof URLSearchParams ? [...body] : [];
  const values = fields.filter(([name]) => !PUBLIC_FIELDS.has(name)).map(([, value]) => value);
  return [...values, ...listBasic(new Headers(headers).get("authorization") ?? "")];
}

/** The secret of a client in a header, in the forms in which it can be repeated. */
function listBasic(header: string): readonly string[] {
  const credentials = header.replace(/^Basic /i, "");
  const bytes = fromBase64(credentials);
  if (!bytes) return [];
  const text = new TextDecoder().decode(bytes);
  const encoded = text.slice(text.indexOf(":") + 1);
  return [credentials, encoded, new URLSearchParams(`_=${encoded}`).get("_") ?? ""];
}

/** Replaces secrets in a text. In JSON they are also found if the text writes their characters as escapes. */
export function hideSecrets(text: string, secrets: readonly string[]): string {
  const all = [...new Set(secrets.flatMap((each) => [each, encodeURIComponent(each)]))].filter(Boolean);
  // A secret may be a part of another one, whose rest would stay.
  all.sort((a, b) => b.length - a.length);
  const hide = (from: string) => all.reduce((rest, secret) => rest.replaceAll(secret, "…"), from);
  try {
    return JSON.stringify(JSON.parse(text, (_, value) => typeof value === "string" ? hide(value) : value));
  } catch {
    return hide(text);
  }
}
