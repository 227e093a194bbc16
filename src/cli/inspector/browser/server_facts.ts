/**
 * The name and capabilities of the server, and the capabilities that the page declares.
 */
import { type Json, toText } from "./json.ts";

/** The server's identity and capabilities from the latest `server/discover` result. */
export const server: { identity: Json; capabilities: Json } = { identity: {}, capabilities: {} };

export function getServerName(): string {
  return toText(server.identity.title) ?? toText(server.identity.name) ?? "the server";
}

/** The capabilities and the log level that the page declares in its requests. */
export const client: { capabilities: Json; logLevel?: string } = { capabilities: {} };
