/**
 * The metadata that tells a host how to show an app: the origins that the app uses, the permissions that the app
 * requests, and its appearance.
 */
import { isOriginSource } from "../../core/kit/origin_source.ts";

/** Options of an app that are sent to the host as metadata. */
export interface AppMetadata {
  /** Origins that the app uses, such as `https://api.example.com`. Hosts block all other origins. Defaults to no origins. */
  readonly csp?: {
    /** Origins that `fetch` and `WebSocket` may connect to. */
    readonly connectDomains?: readonly string[];
    /** Origins of images, scripts, style sheets, fonts and media. Wildcards are allowed: `https://*.example.com`. */
    readonly resourceDomains?: readonly string[];
    /** Origins that the app may show in frames. */
    readonly frameDomains?: readonly string[];
    /** Origins that the app may use in a `base` element. */
    readonly baseUriDomains?: readonly string[];
  };
  /**
   * Browser permissions that the app requests. The app must also work if a host denies the permissions. Defaults to no
   * permissions.
   */
  readonly permissions?: {
    /** Access to the camera. */
    readonly camera?: Readonly<Record<never, never>>;
    /** Access to the microphone. */
    readonly microphone?: Readonly<Record<never, never>>;
    /** Access to the device's location. */
    readonly geolocation?: Readonly<Record<never, never>>;
    /** Writing to the clipboard. */
    readonly clipboardWrite?: Readonly<Record<never, never>>;
  };
  /** Dedicated origin for the app's sandbox. Each host has its own format. By default, the host chooses an origin. */
  readonly domain?: string;
  /** Whether the host draws a border and a background around the app. By default, the host decides. */
  readonly prefersBorder?: boolean;
}

/** Describes why a value is not a list of origins. Returns `undefined` if the list is valid. */
export function findOriginProblem(value: unknown): string | undefined {
  if (!Array.isArray(value)) return "must be a list; write it in brackets";
  const odd: unknown = value.find((each) => !isOriginSource(each));
  if (odd === undefined && !value.includes(undefined)) return;
  const shown = JSON.stringify(odd)?.slice(0, 200) ?? String(odd);
  return `contains ${shown}, which is not an origin; write a scheme and a host, such as https://api.example.com`;
}

/** Returns the metadata that clients get for an app. Returns `undefined` if no option is set. */
export function toMetadata({ csp, permissions, domain, prefersBorder }: AppMetadata): object | undefined {
  const given = Object.entries({ csp, permissions, domain, prefersBorder }).filter(([, value]) => value !== undefined);
  return given.length ? structuredClone(Object.fromEntries(given)) : undefined;
}
