/**
 * Removes the secrets of a request to an authorization server from texts that may become part of an error message.
 *
 * @module
 */
import { fromBase64 } from "../../kit/base64.ts";

/** Form fields that are not secret. All other fields are treated as secret, including fields added later. */
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

/** Lists the secrets of a request: in its form, and in its `Authorization` header. */
export function listSecrets({ body, headers }: RequestInit): readonly string[] {
  const fields = body instanceof URLSearchParams ? [...body] : [];
  const values = fields.filter(([name]) => !PUBLIC_FIELDS.has(name)).map(([, value]) => value);
  return [...values, ...listBasic(new Headers(headers).get("authorization") ?? "")];
}

/** Returns the client secret from an `Authorization` header, in all encodings in which a response may repeat it. */
function listBasic(header: string): readonly string[] {
  const credentials = header.replace(/^Basic /i, "");
  const bytes = fromBase64(credentials);
  if (!bytes) return [];
  const text = new TextDecoder().decode(bytes);
  const encoded = text.slice(text.indexOf(":") + 1);
  return [credentials, encoded, new URLSearchParams(`_=${encoded}`).get("_") ?? ""];
}

/** Replaces secrets in a text. In JSON, also finds secrets whose characters are escaped. */
export function hideSecrets(text: string, secrets: readonly string[]): string {
  const all = [...new Set(secrets.flatMap((each) => [each, encodeURIComponent(each)]))].filter(Boolean);
  // Replace the longest secret first, because it may contain a shorter secret, and its remaining characters would be
  // shown.
  all.sort((a, b) => b.length - a.length);
  const hide = (from: string) => all.reduce((rest, secret) => rest.replaceAll(secret, "…"), from);
  try {
    return JSON.stringify(JSON.parse(text, (_, value) => typeof value === "string" ? hide(value) : value));
  } catch {
    return hide(text);
  }
}
