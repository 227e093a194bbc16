/**
 * The chosen server, and the token and headers for it. They are stored for the tab only, and never appear in a URL or in
 * the log.
 *
 * @module
 */
import type { Browser } from "./dom.ts";
import type { Json, JsonTools } from "./json_tools.ts";

/** A choice of server. */
export type Place =
  /** The server that serves the page. */
  | { readonly kind: "own" }
  /** The server named on the command line. */
  | { readonly kind: "named" }
  | { readonly kind: "url"; readonly url: string };

/** The token and headers for one server. */
export interface Secrets {
  readonly token: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** The chosen server and its credentials. */
export interface Credentials {
  /** The key for connections to other servers; `undefined` if the page was opened without it. */
  readonly key: string | undefined;
  readonly place: Place;
  /** The token and headers entered for a server. */
  getSecrets(place: Place): Secrets;
  /** The headers of requests to the server. */
  readonly headers: Readonly<Record<string, string>>;
  /** Masks the secrets in text. */
  mask(text: string): string;
  /** Stores a choice, which applies after the page is reloaded. */
  save(place: Place, secrets: Secrets): void;
  /** Removes every token and header from the tab. */
  forget(): void;
}

/** Facts about the page. */
export interface CredentialsParts {
  readonly browser: Browser;
  readonly json: JsonTools;
  /** The server that is talked to if nothing was chosen. */
  readonly usual: Place;
}

/** Reads the stored choice, and removes the key from the URL. */
export function createCredentials({ browser, json, usual }: CredentialsParts): Credentials {
  const { location, history, sessionStorage } = browser;
  const { isObject, parse, text } = json;
  const name = "inspector";
  const mask = "••••••";
  const shortest = 4; // characters of a secret, because shorter ones are part of many words

  const kept = read();
  const parts = location.hash.slice(1).split("&");
  const given = parts.map((part) => /^key=([\da-f]{64})$/.exec(part)?.[1]).find((found) => found !== undefined);
  const key = given ?? text(kept.key);
  if (given !== undefined) {
    write({ ...kept, key });
    history.replaceState(null, "", `#${parts.filter((part) => !part.startsWith("key=")).join("&")}`);
  }
  const place = toPlace(kept.place) ?? usual;
  const { token, headers: entries } = getSecrets(place);
  const headers = Object.fromEntries([
    ...token ? [["authorization", /\s/.test(token) ? token : `Bearer ${token}`] as const] : [],
    ...entries.filter(([header]) => header).map(([header, value]) => [header.toLowerCase(), value] as const),
  ]);
  // Secrets in JSON may be escaped.
  const secrets = [token, ...entries.map(([, value]) => value)]
    .flatMap((secret) => [secret, ...secret.split(/\s+/)])
    .filter(({ length }) => length >= shortest)
    .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)])
    .sort((a, b) => b.length - a.length);

  function read(): Json {
    try {
      const parsed = parse(sessionStorage.getItem(name) ?? "{}");
      return "value" in parsed && isObject(parsed.value) ? parsed.value : {};
    } catch {
      return {}; // The browser denies storage.
    }
  }

  function write(value: Json): void {
    try {
      sessionStorage.setItem(name, JSON.stringify(value));
    } catch {
      // Without storage, a choice is lost on reload.
    }
  }

  function toPlace(value: unknown): Place | undefined {
    const { kind, url } = isObject(value) ? value : {};
    if (kind === "url") return typeof url === "string" ? { kind, url } : undefined;
    return kind === usual.kind ? usual : undefined;
  }

  // A token must not be sent to another server that the user connects to later.
  function toKey(place: Place): string {
    return place.kind === "url" ? `url ${place.url}` : place.kind;
  }

  function getSecrets(place: Place): Secrets {
    const { secrets } = read();
    const found = isObject(secrets) && Object.hasOwn(secrets, toKey(place)) ? secrets[toKey(place)] : undefined;
    const { token, headers } = isObject(found) ? found : {};
    return {
      token: text(token) ?? "",
      headers: Array.isArray(headers)
        ? headers.filter(Array.isArray).map(([header, value]) => [String(header), String(value)] as const)
        : [],
    };
  }

  function save(place: Place, secrets: Secrets): void {
    const before = read();
    const others = isObject(before.secrets) ? before.secrets : {};
    write({ ...before, place, secrets: { ...others, [toKey(place)]: secrets } });
  }

  function forget(): void {
    const { secrets: _, ...rest } = read();
    write(rest);
  }

  return {
    key,
    place,
    getSecrets,
    headers,
    mask: (words) => secrets.reduce((masked, secret) => masked.replaceAll(secret, mask), words),
    save,
    forget,
  };
}
