/**
 * Validates the icons and web page URLs that clients show.
 *
 * @see specification/2026-07-28/basic (Icons)
 */
import { quote } from "../../core/protocol/errors.ts";
import { isObject } from "../../core/protocol/jsonrpc.ts";
import type { Icon } from "../../core/protocol/types.ts";
import { type OptionRule, show } from "../../core/known_options.ts";

/**
 * The fields of an icon, each with a test and a remedy for the error message. `src` may only be an `https:` or `data:`
 * URL, because clients must reject other schemes, such as `javascript:` and `file:`.
 */
const FIELDS: Readonly<Record<keyof Icon, readonly [test: (value: unknown) => boolean, state: string]>> = {
  src: [isSource, "use an https URL, or an image data URL such as data:image/png;base64,…"],
  mimeType: [
    (value) => typeof value === "string" && /^image\/[\w.+-]+$/i.test(value),
    "use an image type such as image/png",
  ],
  sizes: [
    (value) => Array.isArray(value) && value.every((size) => /^(\d+x\d+|any)$/.test(size)),
    'use a list such as ["48x48"] or ["any"]',
  ],
  theme: [(value) => value === "light" || value === "dark", 'use "light" or "dark"'],
};

export const ICONS: OptionRule = { findProblem };

export const WEB_PAGE: OptionRule = {
  test: (value) =>
    value === null || typeof value === "string" && /^https?:\/\/\S+$/i.test(value) && URL.canParse(value),
  remedy: "it must be a well-formed http or https URL",
};

interface ResourceName {
  readonly uri?: string;
  readonly uriTemplate?: string;
}

/** Removes all icons of an entry if an icon is invalid, because clients must not receive it. Reports the problem. */
export function withoutUnsafeIcons<E extends { readonly icons?: readonly Icon[] } & ResourceName>(
  entry: E,
  report: (error: unknown) => unknown,
): E {
  const problem = entry.icons === undefined ? undefined : findProblem(entry.icons);
  if (problem === undefined) return entry;
  report(new TypeError(`Cannot list the icons of resource ${quote(entry.uri ?? entry.uriTemplate)}: icons ${problem}`));
  return { ...entry, icons: undefined };
}

/** Tests whether a client may receive an icon of another server, which may have unknown fields. */
export function isIcon(icon: unknown): boolean {
  const { src, mimeType, sizes, theme } = Object(icon);
  return findProblem([{ src, mimeType, sizes, theme }]) === undefined;
}

function findProblem(icons: unknown): string | undefined {
  if (icons === null) return;
  if (!Array.isArray(icons)) return "must be a list; write it in brackets";
  for (const icon of icons) {
    if (!isObject(icon)) return `contains ${show(icon)}; each icon must be an object such as { src: "https://…" }`;
    for (const [name, [test, state]] of Object.entries(FIELDS)) {
      const value = icon[name];
      if ((value !== undefined || name === "src") && !test(value)) {
        return `contains an icon with the ${name} ${show(value)}; ${state}`;
      }
    }
    const unknown = Object.keys(icon).find((name) => !Object.hasOwn(FIELDS, name));
    if (unknown !== undefined) {
      return `contains an icon with the unknown field ${unknown}; use only ${Object.keys(FIELDS).join(", ")}`;
    }
  }
}

function isSource(value: unknown): boolean {
  if (typeof value !== "string") return false;
  return /^https:\/\/\S+$/i.test(value) ? URL.canParse(value) : /^data:image\/[\w.+-]+[;,][^\s]*$/i.test(value);
}
