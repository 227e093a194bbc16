/**
 * The names of options that several kinds of handlers have. Each factory adds its own names.
 */
import { isPlain, type KnownOptions, type OptionRule } from "../../core/known_options.ts";
import type { ToolAnnotations } from "../../core/protocol/types.ts";
import { ICONS } from "../engine/icons.ts";

/** Options of tools, prompts, resources and providers. */
export const HANDLER = {
  name: true,
  use: "functions",
  services: true,
  mapError: "function",
  tags: "texts",
  allow: "function",
  scopes: true,
  requires: "list",
} as const satisfies Readonly<Record<string, OptionRule>>;

const META: OptionRule = {
  test: (value) => value === null || typeof value === "object" && isPlain(value),
  remedy: "it must be a plain object",
};

/** Options that clients see in lists. */
export const DESCRIPTION = {
  title: "text",
  description: "text",
  icons: ICONS,
  _meta: META,
} as const satisfies Readonly<Record<string, OptionRule>>;

export const ANNOTATIONS: KnownOptions<keyof ToolAnnotations> = {
  names: {
    title: "text",
    readOnlyHint: "hint",
    destructiveHint: "hint",
    idempotentHint: "hint",
    openWorldHint: "hint",
  },
  isNullable: true,
};

/** Option names of other libraries, each with the name to use instead. The hints apply to all kinds of handlers. */
export const HANDLER_HINTS = {
  middleware: "use",
  middlewares: "use",
  canAccess: "allow",
  authorize: "allow",
  permissions: "scopes",
  roles: "scopes",
  needs: "requires",
  describeError: "mapError",
} as const;

export const QUOTA = "quota is a layer: use: [quota(…)]";

export const GUARD = "guard is a layer: use: [guard(…)]";

export const EXTENSIONS = "pass layers of extensions in use: [task(…)]";

/** Options that are layers, each with its remedy. The remedies apply to all kinds of handlers. */
export const HANDLER_ELSEWHERE = {
  guards: GUARD,
  guard: GUARD,
  quota: QUOTA,
  timeoutMs: QUOTA,
  limits: QUOTA,
  rateLimit: QUOTA,
  extensions: EXTENSIONS,
} as const;
