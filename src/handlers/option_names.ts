/**
 * The names of options that several kinds of handlers have. Each factory adds its own names.
 *
 * @module
 */
import type { OptionRule } from "../core/call/known_options.ts";
import { GUARDS } from "../core/visibility/guards.ts";
import { ICONS } from "../core/icons.ts";

/** Options of tools, prompts, resources and providers. */
export const HANDLER = {
  name: true,
  use: "functions",
  services: true,
  guards: GUARDS,
  mapError: "function",
  tags: "texts",
  allow: "function",
  scopes: true,
  requires: "list",
  extensions: true,
  quota: true,
} as const satisfies Readonly<Record<string, OptionRule>>;

/** Options that clients see in lists. */
export const DESCRIPTION = {
  title: true,
  description: true,
  icons: ICONS,
  _meta: true,
} as const satisfies Readonly<Record<string, OptionRule>>;

/** Option names of other libraries, each with the name to use instead. The hints apply to all kinds of handlers. */
export const HANDLER_HINTS = {
  middleware: "use",
  middlewares: "use",
  canAccess: "allow",
  authorize: "allow",
  permissions: "scopes",
  roles: "scopes",
  timeoutMs: "quota",
  limits: "quota",
  rateLimit: "quota",
  needs: "requires",
  describeError: "mapError",
} as const;
