/**
 * Authenticates callers by a function.
 *
 * @module
 */
import type { Authenticate, Authentication, Credentials } from "../core/auth.ts";
import { checkOptions, type KnownOptions } from "../core/call/known_options.ts";

/** Options of {@linkcode customAuth}. */
export interface CustomAuthOptions extends Credentials {
  /**
   * Challenge for callers without valid credentials. A function returns the challenge for one concrete path. Defaults
   * to the scheme `Bearer`.
   */
  readonly challenge?: Authentication["challenge"];
}

const OPTIONS: KnownOptions<keyof CustomAuthOptions> = {
  names: { challenge: true, headers: "texts", cookies: "texts", query: "texts" },
  hints: { header: "headers", cookie: "cookies" },
};

/**
 * Authenticates callers by a function, and names where their credentials are. Choose ids that no other scheme uses.
 *
 * ```ts
 * import { createServer } from "@x/mcp";
 * import { customAuth } from "@x/mcp/auth";
 *
 * const sessions = new Map([["8c1f0a", "ada"]]);
 * const auth = customAuth((request) => {
 *   const user = sessions.get(/(?:^|; )sid=(\w+)/.exec(request.headers.get("cookie") ?? "")?.[1] ?? "");
 *   return user === undefined ? undefined : { id: `site:${user}` };
 * }, { cookies: ["sid"] });
 *
 * export default createServer({ name: "notes", version: "1.0.0", auth });
 * ```
 *
 * @throws {TypeError} if an option is unknown. Handlers could see credentials that it should have named.
 */
export function customAuth(verify: Authenticate, options: CustomAuthOptions = {}): Authentication {
  checkOptions("use customAuth()", options, OPTIONS);
  if (typeof verify !== "function") {
    throw new TypeError("Cannot use customAuth(): its first parameter is not a function");
  }
  const { challenge, headers, cookies, query } = options;
  return { authenticate: verify, credentials: { headers, cookies, query }, challenge };
}
