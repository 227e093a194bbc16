/**
 * Which server the page talks to, and what it shows there: a token and headers. All of it is kept for the tab only,
 * and never stands in an address or in the log.
 *
 * @module
 */
import type { Browser } from "./dom.ts";
import type { Json, JsonTools } from "./json.ts";

/** A server to talk to. */
export type Place =
  /** The one that serves the page. */
  | { readonly kind: "own" }
  /** The one that the command line names. */
  | { readonly kind: "given" }
  | { readonly kind: "url"; readonly url: string };

/** What is shown to one server, and to no other. */
export interface Secrets {
  readonly token: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** Which server, and what is shown to it. */
export interface Access {
  /** Lets the page connect to other servers; `undefined` if it was opened without. */
  readonly key: string | undefined;
  readonly place: Place;
  /** What was entered for a server. */
  secretsOf(place: Place): Secrets;
  /** The headers of requests to the server. */
  readonly headers: Readonly<Record<string, string>>;
  /** A text without what is secret in it. */
  mask(text: string): string;
  /** Keeps a choice for the tab, until the page is loaded anew. */
  save(place: Place, secrets: Secrets): void;
  /** Removes every token and header from the tab. */
  forget(): void;
}

/** What is known of the page. */
export interface AccessParts {
  readonly browser: Browser;
  readonly json: JsonTools;
  /** The server that is talked to if nothing was chosen. */
  readonly usual: Place;
}

/** Reads what was kept, and takes the key out of the address. */
export function createAccess({ browser, json, usual }: AccessParts): Access {
  const { location, history, sessionStorage } = browser;
  const { isObject, parse, text } = json;
  const name = "inspector";
  const mask = "••••••";
  const shortest = 4; // characters of a secret: shorter ones stand in too many words

  const kept = read();
  const parts = location.hash.slice(1).split("&");
  const given = parts.map((part) => /^key=([\da-f]{64})$/.exec(part)?.[1]).find((found) => found !== undefined);
  const key = given ?? text(kept.key);
  if (given !== undefined) {
    write({ ...kept, key });
    history.replaceState(null, "", `#${parts.filter((part) => !part.startsWith("key=")).join("&")}`);
  }
  const place = toPlace(kept.place) ?? usual;
  const { token, headers: entries } = secretsOf(place);
  const headers = Object.fromEntries([
    ...token ? [["authorization", /\s/.test(token) ? token : `Bearer ${token}`] as const] : [],
    ...entries.filter(([header]) => header).map(([header, value]) => [header.toLowerCase(), value] as const),
  ]);
  // A secret in JSON may be written with escapes.
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
      return {}; // The browser keeps nothing for this page.
    }
  }

  function write(value: Json): void {
    try {
      sessionStorage.setItem(name, JSON.stringify(value));
    } catch {
      // As above: then a choice lasts no longer than the page.
    }
  }

  function toPlace(value: unknown): Place | undefined {
    const { kind, url } = isObject(value) ? value : {};
    if (kind === "url") return typeof url === "string" ? { kind, url } : undefined;
    return kind === usual.kind ? usual : undefined;
  }

  // A token is for one server: it must not go to another one that a person connects to later.
  function toKey(place: Place): string {
    return place.kind === "url" ? `url ${place.url}` : place.kind;
  }

  function secretsOf(place: Place): Secrets {
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
    secretsOf,
    headers,
    mask: (words) => secrets.reduce((masked, secret) => masked.replaceAll(secret, mask), words),
    save,
    forget,
  };
}
