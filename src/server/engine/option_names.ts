/**
 * The names of the members of the server's `auth` option. Every server checks its options, so this file imports no code
 * of the authentication.
 */
import type { KnownOptions } from "../../core/known_options.ts";
import type { Authentication } from "./auth.ts";

export const AUTHENTICATION: KnownOptions<Extract<keyof Authentication, string>> = {
  names: {
    authenticate: "function",
    credentials: { names: { headers: "texts", cookies: "texts", query: "texts" } },
    challenge: true,
    routes: true,
    satisfies: "function",
    start: "function",
    renew: "function",
    rechecks: "function",
    scheme: true,
    readPrincipal: "function",
    checkPath: "function",
    checkHandler: "function",
  },
  hints: { verify: "authenticate" },
  hasOtherForms: true,
  isPlain: true,
};
