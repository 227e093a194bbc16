/**
 * The names of options that several kinds of handlers have. Each factory adds its own names.
 *
 * @module
 */
import { isPlain, type OptionRule, show } from "../core/call/known_options.ts";
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
  quota: true,
} as const satisfies Readonly<Record<string, OptionRule>>;

const META: OptionRule = {
  findProblem: (value) =>
    value === null || typeof value === "object" && isPlain(value)
      ? undefined
      : `is ${show(value)}; it must be a plain object`,
};

/** Options that clients see in lists. */
export const DESCRIPTION = {
  title: "text",
  description: "text",
  icons: ICONS,
  _meta: META,
} as const satisfies Readonly<Record<string, OptionRule>>;

/** The remedy for `extensions` among the options of a handler or a group. */
export const EXTENSIONS = "pass layers of extensions in use: [task(…)]";

/** Options that are layers, each with its remedy. The remedies apply to all kinds of handlers. */
export const HANDLER_ELSEWHERE = { extensions: EXTENSIONS } as const;

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
