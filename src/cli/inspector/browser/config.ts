/**
 * The page's configuration, which the server embeds in the page.
 *
 * @module
 */
import { isObject } from "../../../kit/json.ts";
import { parseJson, toText } from "./json.ts";

const meta = document.querySelector<HTMLMetaElement>("meta[name=inspector]");
const parsed = parseJson(meta?.content ?? "");
const given = "value" in parsed && isObject(parsed.value) ? parsed.value : {};

/** The endpoint path, if the page is served by an MCP server. */
export const endpoint: string | undefined = toText(given.endpoint);

/** The URL of the server that serves the page. `undefined` without an endpoint. */
export const ownUrl: string | undefined = endpoint === undefined ? undefined : location.origin + endpoint;

/** The protocol revision that the page uses with its own server. */
export const protocol: string = toText(given.protocol) ?? "";

/** The version of this package. */
export const version: string = toText(given.version) ?? "";

/** The origin of the frames in which apps are shown. `undefined` if apps cannot be shown. */
export const sandbox: string | undefined = toText(given.sandbox);

/** The server named on the command line. */
export interface NamedServer {
  readonly name: string;
  /** Whether the page can send additional headers, which the user enters, to the server. */
  readonly hasHeaders: boolean;
}
