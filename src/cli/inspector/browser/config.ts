/**
 * The page's configuration, which the server embeds in the page.
 */
import { isObject } from "../../../core/kit/json.ts";
import { parseJson, toText } from "./json.ts";

const meta = document.querySelector<HTMLMetaElement>("meta[name=inspector]");
const parsed = parseJson(meta?.content ?? "");
const given = "value" in parsed && isObject(parsed.value) ? parsed.value : {};

/** The path of the MCP endpoint, if an MCP server serves the page. */
export const endpoint: string | undefined = toText(given.endpoint);

/** The endpoint URL of the server that serves the page. `undefined` if the server has no endpoint. */
export const ownUrl: string | undefined = endpoint === undefined ? undefined : location.origin + endpoint;

/** The protocol revision that the page uses with its own server. */
export const protocol: string = toText(given.protocol) ?? "";

export const version: string = toText(given.version) ?? "";

/** The origin of the frames that show apps. `undefined` if the page cannot show apps. */
export const sandbox: string | undefined = toText(given.sandbox);

/** The server named on the command line. */
export interface NamedServer {
  readonly name: string;
  /** Whether the user can enter additional headers for requests to the server. */
  readonly hasHeaders: boolean;
}
