/**
 * The modern revision and its metadata keys.
 *
 * @see specification/2026-07-28/basic (`_meta`)
 * @module
 */

/** The protocol revision of this era. */
export const VERSION = "2026-07-28";

/** Prefix of the protocol's own metadata. */
export const META = "io.modelcontextprotocol/";

/** Protocol revision of the request. */
export const META_VERSION = `${META}protocolVersion`;
/** Capabilities of the client. */
export const META_CAPABILITIES = `${META}clientCapabilities`;
/** Name and version of the client. */
export const META_CLIENT = `${META}clientInfo`;
/** Least severe log level that the client wants. */
export const META_LEVEL = `${META}logLevel`;
/** Name and version of the server. */
export const META_SERVER = `${META}serverInfo`;
