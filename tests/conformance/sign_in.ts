// The `auth` option for each authorization scenario, and the scenarios that must end with an error.
import { exportJWK, importPKCS8 } from "jose";
import type { ClientAuth } from "../../src/client/client.ts";
import {
  clientCredentials,
  enterpriseSignIn,
  signIn,
  type UserAgent,
  workloadIdentity,
} from "../../src/client/oauth/oauth.ts";

/** The values that the suite passes to the program for a scenario. */
type Context = Readonly<Record<string, string>>;

/** Scenarios in which the client has to stop with an error. */
export const REFUSED: ReadonlySet<string> = new Set(
  [
    "scope-retry-limit",
    "resource-mismatch",
    "metadata-issuer-mismatch",
    "iss-supported-missing",
    "iss-wrong-issuer",
    "iss-unexpected",
    "iss-normalized",
  ].map((name) => `auth/${name}`),
);

/** The client's metadata document. */
const DOCUMENT = "https://conformance-test.local/client-metadata.json";

/** Follows only one redirect, because the suite's authorization servers redirect the user back immediately. */
const userAgent: UserAgent = ({ path }) => ({
  redirectUri: `http://127.0.0.1:8765${path}`,
  async visit({ url }) {
    const response = await fetch(url, { redirect: "manual" });
    await response.body?.cancel();
    return response.headers.get("location") ?? "";
  },
  end: () => {},
});

/**
 * Finds the authorization server of a protected server. A user would know at which authorization server the client is
 * registered, but the suite does not pass this URL.
 */
async function findIssuer(server: string): Promise<string> {
  const { pathname } = new URL(server);
  for (const path of [pathname, ""]) {
    const response = await fetch(new URL(`/.well-known/oauth-protected-resource${path}`, server));
    const metadata = response.ok ? await response.json() : await response.body?.cancel();
    if (metadata) return metadata.authorization_servers[0];
  }
  return new URL(server).origin;
}

/** Creates the `auth` option that a user would choose for a scenario. */
export async function createAuth(scenario: string, context: Context, server: string): Promise<ClientAuth> {
  const { client_id: id, client_secret: secret, valid_jwt: assertion } = context;
  const hasCredential = [secret, assertion, context.private_key_pem].some((each) => each !== undefined);
  const issuer = context.issuer ?? (hasCredential ? await findIssuer(server) : undefined);
  switch (scenario) {
    case "auth/client-credentials-jwt": {
      const alg = context.signing_algorithm;
      const key = await exportJWK(await importPKCS8(context.private_key_pem, alg, { extractable: true }));
      return clientCredentials({ client: { id, key: { ...key, alg }, issuer } });
    }
    case "auth/client-credentials-basic":
      return clientCredentials({ client: { id, secret, issuer } });
    case "auth/enterprise-managed-authorization":
      return enterpriseSignIn({
        client: { id, secret, issuer },
        idToken: () => context.idp_id_token,
        identityProvider: { tokenEndpoint: context.idp_token_endpoint, client: { id: context.idp_client_id } },
      });
    case "auth/wif-jwt-bearer":
      return workloadIdentity({
        assertion: () => assertion,
        issuer: issuer ?? "",
        client: id === undefined ? undefined : { id },
      });
    // The suite's authorization server does not announce `iss`, so the user has to name the issuer.
    case "auth/basic-cimd":
      return signIn({ userAgent, client: { id: DOCUMENT, issuer: await findIssuer(server) } });
    default:
      return signIn({
        userAgent,
        clientMetadataUrl: DOCUMENT,
        client: id === undefined ? undefined : { id, secret, issuer },
        dpop: scenario.startsWith("auth/dpop"),
        // The server's metadata names its origin, which the client accepts only if the user trusts the whole origin.
        resource: scenario === "auth/metadata-var2" ? new URL(server).origin : undefined,
      });
  }
}
