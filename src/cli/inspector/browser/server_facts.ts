/**
 * The name and capabilities of the server, and the capabilities that the page declares.
 *
 * @module
 */
import { type Json, toText } from "./json.ts";

/** The facts of the latest discovery. */
export const server: { identity: Json; capabilities: Json } = { identity: {}, capabilities: {} };

/** The title or name of the server. */
export function getServerName(): string {
  return toText(server.identity.title) ?? toText(server.identity.name) ?? "the server";
}

/** The capabilities and the log level that the page declares in its requests. */
export const client: { capabilities: Json; logLevel?: string } = { capabilities: {} };
