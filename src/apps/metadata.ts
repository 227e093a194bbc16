/**
 * What an app declares to hosts: the origins that it uses, the permissions that it asks for, and how it is shown.
 *
 * @module
 */
import { isOriginSource } from "../kit/origin_source.ts";

/** Origins that an app uses, such as `https://api.example.com`. Hosts block all others. */
export interface AppCsp {
  /** Origins for `fetch` and WebSocket. */
  readonly connectDomains?: readonly string[];
  /** Origins for images, scripts, style sheets, fonts and media, also `https://*.example.com`. */
  readonly resourceDomains?: readonly string[];
  /** Origins of frames in the app. */
  readonly frameDomains?: readonly string[];
  /** Origins that a `base` element may name. */
  readonly baseUriDomains?: readonly string[];
}

/** Permissions of the browser that an app asks for. A host may refuse them, so that the app must do without. */
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

/** Options of an app for the host. */
export interface AppMetadata {
  /** Origins that the app uses. Defaults to none. */
  readonly csp?: AppCsp;
  /** Permissions that the app asks for. Defaults to none. */
  readonly permissions?: AppPermissions;
  /** Origin that the host gives to the app, in a format of the host. Defaults to the choice of the host. */
  readonly domain?: string;
  /** Whether the host draws a border and a background. Defaults to the choice of the host. */
  readonly prefersBorder?: boolean;
}

/** Returns what is wrong with a list of origins. */
export function findOriginProblem(value: unknown): string | undefined {
  if (!Array.isArray(value)) return "is not a list; write an array of origins";
  const odd: unknown = value.find((each) => !isOriginSource(each));
  if (odd === undefined && !value.includes(undefined)) return;
  const shown = JSON.stringify(odd)?.slice(0, 200) ?? String(odd);
  return `holds ${shown}, which is not an origin; write a scheme and a host, such as https://api.example.com`;
}

/** Returns the metadata that the resource of an app has in lists and contents. `undefined` if there is none. */
export function toMetadata({ csp, permissions, domain, prefersBorder }: AppMetadata): object | undefined {
  const given = Object.entries({ csp, permissions, domain, prefersBorder }).filter(([, value]) => value !== undefined);
  return given.length ? structuredClone(Object.fromEntries(given)) : undefined;
}
