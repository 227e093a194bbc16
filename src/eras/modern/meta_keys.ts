/**
 * What names the modern revision.
 *
 * @see specification/2026-07-28/basic (`_meta`)
 * @module
 */

/** The revision that this era speaks. */
export const VERSION = "2026-07-28";

/** Prefix of the protocol's own metadata. */
export const META = "io.modelcontextprotocol/";

/** The request's revision. */
export const META_VERSION = `${META}protocolVersion`;
/** What the client can do. */
export const META_CAPABILITIES = `${META}clientCapabilities`;
/** Who the client is. */
export const META_CLIENT = `${META}clientInfo`;
/** Least severe log message that the client wants. */
export const META_LEVEL = `${META}logLevel`;
/** Who the server is. */
export const META_SERVER = `${META}serverInfo`;
