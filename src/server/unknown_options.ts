/**
 * Finds options that are ignored because of their names. A type checker rejects them, but JavaScript files have none.
 * Loaded in development and for `mcp check`.
 *
 * @module
 */
import { quote } from "../protocol/errors.ts";
import type { Attribute } from "../core/extension.ts";
import type { Handler } from "../core/feature.ts";
import { INTERNALS } from "../core/internals.ts";
import type { Service } from "../core/service.ts";
import { toDefinition } from "../core/container.ts";
import { findUnknown, type KnownOptions, toEntries, type Unknown } from "../core/known_options.ts";
import {
  ATTRIBUTE,
  EXTENSION,
  EXTENSION_PARTS,
  FIXED_RESOURCE,
  KEYED_SERVICE,
  PROMPT,
  PROVIDER,
  SERVER,
  SERVICE,
  TEMPLATE,
  TOOL,
} from "./option_names.ts";

/** An option that is ignored. */
export interface UnknownOption extends Unknown {
  /** The kind of what has the option, such as `tool`. */
  readonly kind: string;
  /** Its name, such as `add`. */
  readonly name: string;
}

/** Formats the warning with its remedy. */
export function toUnknownOption({ kind, name, option, remedy }: UnknownOption): string {
  return `Cannot use the option ${option} of ${kind} ${quote(name)}: there is no such option; ${remedy}`;
}

/** Finds unknown options of `createServer`. */
export function findInServer(options: { readonly name: string }): readonly UnknownOption[] {
  return find({ kind: "server", name: options.name }, options, SERVER);
}

/** Finds unknown options of handlers, of those in groups, and of the services that they use. */
export function findInHandlers(handlers: readonly Handler[]): readonly UnknownOption[] {
  const all = [...new Set(handlers.flatMap((handler) => [handler, ...handler[INTERNALS].also ?? []]))];
  const services = new Set(all.flatMap((handler) => listServices(handler[INTERNALS].options)));
  return [...all.flatMap(findInHandler), ...[...services].flatMap(findInService)];
}

/** The server, handler or service that has an option. */
type Place = Pick<UnknownOption, "kind" | "name">;

function findInHandler({ [INTERNALS]: { feature, key: name, options } }: Handler): readonly UnknownOption[] {
  const known = options && toKnown(feature.name, options);
  // Completers have no options of their own.
  if (!known) return [];
  const place = { kind: feature.name.replace(/s$/, ""), name };
  const nested = known === EXTENSION ? findInExtension(place, options) : findInAttributes(place, options);
  return [...find(place, options, known), ...nested];
}

const KINDS: Readonly<Record<string, KnownOptions>> = {
  tools: TOOL,
  prompts: PROMPT,
  extensions: EXTENSION,
};

function toKnown(feature: string, options: { readonly uri?: unknown; readonly scheme?: unknown }) {
  if (feature !== "resources") return KINDS[feature];
  if (options.scheme !== undefined) return PROVIDER;
  return /[{}]/.test(String(options.uri)) ? TEMPLATE : FIXED_RESOURCE;
}

function findInExtension(place: Place, options: object): readonly UnknownOption[] {
  const given: Readonly<Record<string, unknown>> = { ...options };
  return Object.entries(EXTENSION_PARTS).flatMap(([part, known]) =>
    toEntries(given[part]).flatMap(([name, value]) => find(place, value, known, `${part}.${name}.`))
  );
}

function findInAttributes({ kind, name }: Place, options: { readonly extensions?: unknown }): readonly UnknownOption[] {
  const { extensions } = options;
  if (!Array.isArray(extensions)) return [];
  // The factory of the handler has checked them.
  return extensions.flatMap(({ extension, [INTERNALS]: { options } }: Attribute) =>
    find({ kind: `attribute of ${extension} for ${kind}`, name }, options, ATTRIBUTE)
  );
}

function listServices(options: { readonly services?: unknown } | undefined): readonly Service[] {
  // As above.
  return toEntries(options?.services).map(([, service]) => service as Service);
}

function findInService(service: Service): readonly UnknownOption[] {
  const { key, options } = toDefinition(service);
  return find({ kind: "service", name: service.name }, options, key ? KEYED_SERVICE : SERVICE);
}

function find(place: Place, given: unknown, known: KnownOptions, path?: string): readonly UnknownOption[] {
  return findUnknown(given, known, path).map((unknown) => ({ ...place, ...unknown }));
}
