// The sources of tokens for the scenarios about authorization, and which of them must end with an error.
import { exportJWK, importPKCS8 } from "jose";
import type { ClientAuth } from "../../src/client/client.ts";
import {
  clientCredentials,
  enterpriseSignIn,
  signIn,
  type UserAgent,
  workloadIdentity,
} from "../../src/client/oauth/oauth.ts";

/** What the suite tells a scenario. */
type Context = Readonly<Record<string, string>>;

/** Scenarios in which the client has to give up. */
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

/** The authorization servers of the suite send the user back at once. */
const userAgent: UserAgent = () => ({
  redirectUri: "http://127.0.0.1:8765/callback",
  async visit({ url }) {
    const response = await fetch(url, { redirect: "manual" });
    await response.body?.cancel();
    return response.headers.get("location") ?? "";
  },
  end: () => {},
});

/** Returns the source of tokens that a user would choose for a scenario. */
export async function createAuth(scenario: string, context: Context): Promise<ClientAuth> {
  const { client_id: id, client_secret: secret, issuer } = context;
  switch (scenario) {
    case "auth/client-credentials-jwt": {
      const alg = context.signing_algorithm;
      const key = await exportJWK(await importPKCS8(context.private_key_pem, alg, { extractable: true }));
      return clientCredentials({ client: { id, key: { ...key, alg } } });
    }
    case "auth/client-credentials-basic":
      return clientCredentials({ client: { id, secret } });
    case "auth/enterprise-managed-authorization":
      return enterpriseSignIn({
        client: { id, secret },
        idToken: () => context.idp_id_token,
        identityProvider: { tokenEndpoint: context.idp_token_endpoint, client: { id: context.idp_client_id } },
      });
    case "auth/wif-jwt-bearer":
      return workloadIdentity({ assertion: () => context.valid_jwt, client: id === undefined ? undefined : { id } });
    default:
      return signIn({
        userAgent,
        clientMetadataUrl: "https://conformance-test.local/client-metadata.json",
        client: id === undefined ? undefined : { id, secret, issuer },
        dpop: scenario.startsWith("auth/dpop"),
      });
  }
}
