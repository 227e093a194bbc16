/**
 * Lists the URLs at which an authorization server may publish its metadata, in the order that the specification requires.
 *
 * @see specification/2026-07-28/basic/authorization/authorization-server-discovery
 */
export function listMetadataUrls({ origin, pathname }: URL): readonly string[] {
  const path = pathname.replace(/\/$/, "");
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    ...path ? [`${origin}${path}/.well-known/openid-configuration`] : [],
  ];
}
