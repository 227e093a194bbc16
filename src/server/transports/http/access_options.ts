/**
 * Reads the options that decide who may use the server over HTTP. `access.ts`, which loads with the first request,
 * applies the options.
 */
import { quote } from "../../../core/protocol/errors.ts";
import { parseAuthority, toAddress, toOrigin } from "./address.ts";

/** Throws if the list is empty or an item is not a host. */
export function readHosts(hosts?: readonly string[]): readonly string[] {
  if (!hosts) return [];
  // Throw for an empty list. Otherwise an empty list would allow every host, as if the option were not set.
  if (!hosts.length) throw new TypeError("Cannot create a server: hosts is empty; list a host, or omit hosts");
  return hosts.map((each) =>
    parseAuthority(each)?.host ?? rejectOption("host", each, "a host such as mcp.example.com")
  );
}

/** Accepts the custom schemes of browser extensions, and `null`, which browsers send for pages without an origin. */
export function readOrigins(origins: readonly string[] = []): readonly string[] {
  return origins.map((each) =>
    each === "null" || /^[a-z][a-z\d+.-]*:\/\/[^/?#@\s]+$/i.test(each)
      ? toOrigin(each)
      : rejectOption("origin", each, "an origin such as https://app.example.com")
  );
}

/** Throws if `path` is not a plain path. */
export function readPath(path: string): string {
  if (isPlainPath(path)) return path;
  const [odd] = /[^\w/.~%;=,@!$&'()+-]/u.exec(path) ?? [];
  return rejectOption("path", path, `a plain path such as /mcp${odd ? `, because it contains ${quote(odd)}` : ""}`);
}

/** Tests whether a path has no parameters, and whether a URL parser leaves the path unchanged. */
export function isPlainPath(path: string): boolean {
  return !/[:*]/.test(path) && URL.parse(path, "http://x")?.pathname === path;
}

/** Returns `path` unchanged. Throws if a parameter is not a whole segment, or occurs twice. */
export function readTemplate(path: string): string {
  const names = path.match(/:\w+/g) ?? [];
  const isValid = !/[*{}]|[^/]:|:(?![a-z_]\w*(\/|$))|:__proto__/i.test(path) && new Set(names).size === names.length;
  if (isValid) readPath(path.replaceAll(":", ""));
  return isValid ? path : rejectOption(
    "path",
    path,
    "a path such as /tenants/:tenant/mcp, in which each parameter is a whole segment with a different name",
  );
}

/** Throws if an item is not an IP address. */
export function readProxies(proxies: readonly string[] = []): readonly string[] {
  return proxies.map((each) =>
    /^[0-9a-f]*[.:][0-9a-f.:]+$/.test(toAddress(each))
      ? toAddress(each)
      : rejectOption("proxy", each, "an IP address such as 10.0.0.1")
  );
}

function rejectOption(option: string, given: string, wanted: string): never {
  throw new TypeError(`Cannot use ${option} ${quote(given)}: it is not ${wanted}`);
}
