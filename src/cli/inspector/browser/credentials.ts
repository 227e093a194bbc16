/**
 * The chosen server, with its token and headers. The page stores the token and headers only for its browser tab, and
 * never shows them in a URL or in the log.
 */
import { endpoint } from "./config.ts";
import { type Json, parseObject, toObject, toText } from "./json.ts";

/** The chosen server and protocol revision. */
export interface Place {
  /**
   * `own`: the server that serves the page. `named`: the server named on the command line. `url`: the server at `url`.
   */
  readonly kind: "own" | "named" | "url";
  /** The URL. The empty string if `kind` is not `url`. */
  readonly url: string;
  /** The protocol revision to use. The empty string stands for the newest revision that the server supports. */
  readonly revision: string;
}

export interface Secrets {
  readonly token: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

const STORED = "inspector";
const MASK = "••••••";
/** Minimum length of a secret to mask, in characters, because shorter secrets also occur in ordinary words. */
const MIN_MASKED = 4;

/** The kind of the default server. The page uses this server if the user has not chosen another server. */
export const usualKind: Place["kind"] = endpoint === undefined ? "named" : "own";

/**
 * The key that the relay requires for connections to other servers. `undefined` if the page was opened without the key.
 */
export const key: string | undefined = moveKey() ?? toText(readStored().key);

export const place: Place = readPlace(readStored().place);

const { token, headers: entries } = getSecrets(place);

/** The headers for requests to the chosen server, including the token. */
export const headers: Readonly<Record<string, string>> = Object.fromEntries([
  ...token ? [["authorization", /\s/.test(token) ? token : `Bearer ${token}`] as const] : [],
  ...entries.filter(([header]) => header).map(([header, value]) => [header.toLowerCase(), value] as const),
]);

// Also mask the escaped form, because JSON may contain secrets in escaped form.
const masked = [token, ...entries.map(([, value]) => value)]
  .flatMap((secret) => [secret, ...secret.split(/\s+/)])
  .filter(({ length }) => length >= MIN_MASKED)
  .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)])
  .sort((a, b) => b.length - a.length);

export function mask(text: string): string {
  return masked.reduce((words, secret) => words.replaceAll(secret, MASK), text);
}

export function listMaskedHeaders(): readonly string[] {
  return Object.keys(headers).map((name) => `${name}: ${MASK}`);
}

export function getSecrets(place: Place): Secrets {
  const secrets = toObject(readStored().secrets);
  const { token, headers } = toObject(Object.hasOwn(secrets, toKey(place)) ? secrets[toKey(place)] : undefined);
  return {
    token: toText(token) ?? "",
    headers: Array.isArray(headers)
      ? headers.filter(Array.isArray).map(([header, value]) => [String(header), String(value)] as const)
      : [],
  };
}

/** Stores the chosen server and its secrets. The choice applies after the page is reloaded. */
export function saveChoice(place: Place, secrets: Secrets): void {
  const before = readStored();
  store({ ...before, place, secrets: { ...toObject(before.secrets), [toKey(place)]: secrets } });
}

/** Removes all tokens and headers from the tab. */
export function forgetSecrets(): void {
  const { secrets: _, ...rest } = readStored();
  store(rest);
}

// The storage key contains the URL, so that a token is never sent to a different server that the user chooses later.
function toKey({ kind, url }: Place): string {
  return kind === "url" ? `url ${url}` : kind;
}

/** Moves the key from the URL fragment to the tab's storage. Returns `undefined` if the fragment contains no key. */
function moveKey(): string | undefined {
  const parts = location.hash.slice(1).split("&");
  const found = parts.map((part) => /^key=([\da-f]{64})$/.exec(part)?.[1]).find((key) => key !== undefined);
  if (found === undefined) return;
  store({ ...readStored(), key: found });
  history.replaceState(null, "", `#${parts.filter((part) => !part.startsWith("key=")).join("&")}`);
  return found;
}

function readPlace(value: unknown): Place {
  const { kind, url, revision } = toObject(value);
  const chosen = toText(revision) ?? "";
  if (kind === "url" && typeof url === "string") return { kind, url, revision: chosen };
  return { kind: usualKind, url: "", revision: kind === usualKind ? chosen : "" };
}

function readStored(): Json {
  try {
    return parseObject(sessionStorage.getItem(STORED) ?? "{}");
  } catch {
    return {}; // Ignore the error, which means that the browser denies access to the storage.
  }
}

function store(value: Json): void {
  try {
    sessionStorage.setItem(STORED, JSON.stringify(value));
  } catch {
    // Ignore the error. Without storage, a choice is lost when the page is reloaded.
  }
}
