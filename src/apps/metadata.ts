/**
 * What an app declares to hosts: the origins that it uses, the permissions that it requests, and how it is shown.
 *
 * @module
 */
import { isOriginSource } from "../kit/origin_source.ts";

/** Origins that an app uses, such as `https://api.example.com`. Hosts block all other origins. */
export interface AppCsp {
  /** Origins for `fetch` and WebSocket. */
  readonly connectDomains?: readonly string[];
  /** Origins for images, scripts, style sheets, fonts and media, also `https://*.example.com`. */
  readonly resourceDomains?: readonly string[];
  /** Origins of frames in the app. */
  readonly frameDomains?: readonly string[];
  /** Origins that a `base` element may use. */
  readonly baseUriDomains?: readonly string[];
}

/** Permissions of the browser that an app requests. A host may deny them, so the app must also work without them. */
export interface AppPermissions {
  /** The camera. */
  readonly camera?: Readonly<Record<never, never>>;
  /** The microphone. */
  readonly microphone?: Readonly<Record<never, never>>;
  /** The location of the device. */
  readonly geolocation?: Readonly<Record<never, never>>;
  /** Writing to the clipboard. */
  readonly clipboardWrite?: Readonly<Record<never, never>>;
}

/** Options of an app that hosts read. */
export interface AppMetadata {
  /** Origins that the app uses. Defaults to no origins. */
  readonly csp?: AppCsp;
  /** Permissions that the app requests. Defaults to no permissions. */
  readonly permissions?: AppPermissions;
  /** Origin that the host gives to the app, in a format of the host. Defaults to the choice of the host. */
  readonly domain?: string;
  /** Whether the host draws a border and a background. Defaults to the choice of the host. */
  readonly prefersBorder?: boolean;
}

/** Explains why a value is not a list of origins. Returns `undefined` if the list is valid. */
export function findOriginProblem(value: unknown): string | undefined {
  if (!Array.isArray(value)) return "is not a list; write an array of origins";
  const odd: unknown = value.find((each) => !isOriginSource(each));
  if (odd === undefined && !value.includes(undefined)) return;
  const shown = JSON.stringify(odd)?.slice(0, 200) ?? String(odd);
  return `contains ${shown}, which is not an origin; write a scheme and a host, such as https://api.example.com`;
}

/**
 * Returns the metadata of an app for lists and contents of its resource. Returns `undefined` if the app has no
 * metadata.
 */
export function toMetadata({ csp, permissions, domain, prefersBorder }: AppMetadata): object | undefined {
  const given = Object.entries({ csp, permissions, domain, prefersBorder }).filter(([, value]) => value !== undefined);
  return given.length ? structuredClone(Object.fromEntries(given)) : undefined;
}
