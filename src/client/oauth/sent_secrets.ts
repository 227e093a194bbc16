/**
 * Removes the secrets in a request to an authorization server from text that may become part of an error message.
 */
import { fromBase64 } from "../../core/kit/base64.ts";

/** All other form fields are treated as secret, so that a new field is never shown by mistake. */
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

/** Lists the secrets in the form and in the `Authorization` header of a request. */
export function listSecrets({ body, headers }: RequestInit): readonly string[] {
  const fields = body instanceof URLSearchParams ? [...body] : [];
  const values = fields.filter(([name]) => !PUBLIC_FIELDS.has(name)).map(([, value]) => value);
  return [...values, ...listBasic(new Headers(headers).get("authorization") ?? "")];
}

/** Returns the client secret in an `Authorization` header, in all encodings that a response may contain. */
function listBasic(header: string): readonly string[] {
  const credentials = header.replace(/^Basic /i, "");
  const bytes = fromBase64(credentials);
  if (!bytes) return [];
  const text = new TextDecoder().decode(bytes);
  const encoded = text.slice(text.indexOf(":") + 1);
  return [credentials, encoded, new URLSearchParams(`_=${encoded}`).get("_") ?? ""];
}

/** Replaces secrets in a text by `…`. In JSON, also replaces secrets with escaped characters. */
export function hideSecrets(text: string, secrets: readonly string[]): string {
  const all = [...new Set(secrets.flatMap((each) => [each, encodeURIComponent(each)]))].filter(Boolean);
  // Replace longer secrets first. Otherwise, replacing a short secret inside a longer secret would leave the remaining
  // characters of the longer secret visible.
  all.sort((a, b) => b.length - a.length);
  const hide = (from: string) => all.reduce((rest, secret) => rest.replaceAll(secret, "…"), from);
  try {
    return JSON.stringify(JSON.parse(text, (_, value) => typeof value === "string" ? hide(value) : value));
  } catch {
    return hide(text);
  }
}
