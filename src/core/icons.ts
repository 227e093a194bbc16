/**
 * Checks icons and links to web pages that clients show.
 *
 * @see specification/2026-07-28/basic (Icons)
 * @module
 */
import { isObject } from "../protocol/jsonrpc.ts";
import type { Icon } from "../protocol/types.ts";
import { type OptionRule, show } from "./call/known_options.ts";

/**
 * The fields of an icon, with a test for each. Only `https:` and `data:` URLs are allowed, because clients refuse other
 * schemes, such as `javascript:` and `file:`.
 */
const FIELDS: Readonly<Record<keyof Icon, readonly [test: (value: unknown) => boolean, state: string]>> = {
  src: [isSource, "use an https URL, or data:image/png;base64,… and such"],
  mimeType: [(value) => typeof value === "string" && /^image\/[\w.+-]+$/i.test(value), "use image/png or such"],
  sizes: [
    (value) => Array.isArray(value) && value.every((size) => /^(\d+x\d+|any)$/.test(size)),
    'use a list such as ["48x48"] or ["any"]',
  ],
  theme: [(value) => value === "light" || value === "dark", 'use "light" or "dark"'],
};

/** The rule for options that contain icons. */
export const ICONS: OptionRule = { findProblem };

/** The rule for options that contain the URL of a web page. */
export const WEB_PAGE: OptionRule = {
  findProblem: (value) =>
    typeof value === "string" && /^https?:\/\/\S+$/i.test(value) && URL.canParse(value)
      ? undefined
      : `is ${show(value)}; use an https or http URL`,
};

/**
 * Removes invalid icons from an entry, because clients must not show invalid icons. Reports the problem to the
 * observer.
 */
export function withoutUnsafeIcons<E extends { readonly icons?: readonly Icon[] }>(
  entry: E,
  report: (error: unknown) => unknown,
): E {
  const problem = entry.icons === undefined ? undefined : findProblem(entry.icons);
  if (problem === undefined) return entry;
  report(new TypeError(`Cannot list a resource with its icons: icons ${problem}`));
  return { ...entry, icons: undefined };
}

function findProblem(icons: unknown): string | undefined {
  if (!Array.isArray(icons)) return `is ${show(icons)}; it must be a list; write it in brackets`;
  for (const icon of icons) {
    if (!isObject(icon)) return `contains ${show(icon)}; it must be a list of { src }`;
    for (const [name, [test, state]] of Object.entries(FIELDS)) {
      const value = icon[name];
      if ((value !== undefined || name === "src") && !test(value)) {
        return `contains the ${name} ${show(value)}; ${state}`;
      }
    }
    const unknown = Object.keys(icon).find((name) => !Object.hasOwn(FIELDS, name));
    if (unknown !== undefined) {
      return `contains the unknown field ${unknown}; an icon has ${Object.keys(FIELDS).join(", ")}`;
    }
  }
}

function isSource(value: unknown): boolean {
  if (typeof value !== "string") return false;
  return /^https:\/\/\S+$/i.test(value) ? URL.canParse(value) : /^data:image\/[\w.+-]+[;,][^\s]*$/i.test(value);
}
