/**
 * The modern revision, and the keys of its metadata.
 *
 * @see specification/2026-07-28/basic (`_meta`)
 */

/** The protocol revision of this era. */
export const VERSION = "2026-07-28";

export const META = "io.modelcontextprotocol/";

export const META_VERSION = `${META}protocolVersion`;
export const META_CAPABILITIES = `${META}clientCapabilities`;
export const META_CLIENT = `${META}clientInfo`;
/** Key of the least severe log level that the client wants. */
export const META_LEVEL = `${META}logLevel`;
export const META_SERVER = `${META}serverInfo`;
