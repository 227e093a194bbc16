/**
 * Reads the options that decide who may use the server over HTTP. The checks of requests are in `access.ts`, which is
 * loaded with the first request.
 *
 * @module
 */
import { quote } from "../../protocol/errors.ts";
import { parseAuthority, toAddress, toOrigin } from "./address.ts";

/** Normalizes the option `hosts`. */
export function readHosts(hosts?: readonly string[]): readonly string[] {
  if (!hosts) return [];
  // An empty list would allow every host, like a missing list.
  if (!hosts.length) throw new TypeError("Cannot create a server: hosts is empty; list a host, or leave it out");
  return hosts.map((each) => parseAuthority(each)?.host ?? rejectOption(each, "a host like mcp.example.com"));
}

/**
 * Normalizes the option `origins`. Accepts the custom schemes of browser extensions, and `null`, which pages without an
 * origin send.
 */
export function readOrigins(origins: readonly string[] = []): readonly string[] {
  return origins.map((each) =>
    each === "null" || /^[a-z][a-z\d+.-]*:\/\/[^/?#@\s]+$/i.test(each)
      ? toOrigin(each)
      : rejectOption(each, "an origin like https://app.example.com")
  );
}

/** Returns the option `path` unchanged. Throws if it is not a plain path. */
export function readPath(path: string): string {
  if (isPlainPath(path)) return path;
  const [odd] = /[^\w/.~%;=,@!$&'()+-]/u.exec(path) ?? [];
  return rejectOption(path, `a plain path like /mcp${odd ? `, because of ${quote(odd)}` : ""}`);
}

/** Tests whether a path has no parameters, and is spelled as in a parsed URL. */
export function isPlainPath(path: string): boolean {
  return !/[:*]/.test(path) && URL.parse(path, "http://x")?.pathname === path;
}

/**
 * Returns a path with parameters, such as `/tenants/:tenant/mcp`, unchanged. Throws if a parameter is not a whole
 * segment.
 */
export function readTemplate(path: string): string {
  const names = path.match(/:\w+/g) ?? [];
  const isValid = !/[*{}]|[^/]:|:(?![a-z_]\w*(\/|$))|:__proto__/i.test(path) && new Set(names).size === names.length;
  if (isValid) readPath(path.replaceAll(":", ""));
  return isValid ? path : rejectOption(path, "a path like /tenants/:tenant/mcp, with different names");
}

/** Normalizes the option `proxies`. */
export function readProxies(proxies: readonly string[] = []): readonly string[] {
  return proxies.map((each) =>
    /^[0-9a-f]*[.:][0-9a-f.:]+$/.test(toAddress(each))
      ? toAddress(each)
      : rejectOption(each, "an address like 10.0.0.1")
  );
}

function rejectOption(given: string, wanted: string): never {
  throw new TypeError(`Cannot create a server: ${quote(given)} is not ${wanted}`);
}
