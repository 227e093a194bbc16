// Access tokens that are JWTs: which of them stand for a caller.
import { assertEquals } from "@std/assert";
import { createServer, type Server, tool } from "../../mod.ts";
import { oauth, type OAuthOptions } from "../../src/auth/oauth/oauth.ts";
import { RESOURCE, TestIssuer } from "../support/issuer.ts";
import { toRequest } from "../support/requests.ts";

function start(issuers: readonly TestIssuer[], options: Partial<OAuthOptions> = {}): Server {
  const auth = oauth({ resource: RESOURCE, issuers: issuers.map(({ name }) => name), ...options });
  const whoami = tool({ name: "whoami", run: (_, { principal }) => ({ ...principal }) });
  return createServer({ name: "me", version: "1.0.0", auth, handlers: [whoami], observer: { fault() {} } });
}

async function send(server: Server, token: string) {
  const response = await server.fetch(
    toRequest("tools/call", { name: "whoami" }, { authorization: `Bearer ${token}` }),
  );
  const { result, error } = await response.json();
  return {
    status: response.status,
    challenge: response.headers.get("www-authenticate"),
    principal: result?.structuredContent,
    error,
  };
}

Deno.test("a token of an issuer stands for its subject", async () => {
  await using issuer = await TestIssuer.start();
  const server = start([issuer]);
  const { status, principal, error } = await send(server, await issuer.sign({ claims: { scope: "a b" } }));
  assertEquals([status, error], [200, undefined]);
  assertEquals(principal.id, `oauth:${JSON.stringify([issuer.name, "ada"])}`);
  assertEquals(principal.scopes, ["a", "b"]);
  assertEquals(issuer.keyFetches, 1);
  const bad = await send(server, await issuer.sign({ claims: { aud: "other" } }));
  assertEquals([bad.status, bad.challenge], [
    401,
    'Bearer error="invalid_token", error_description="the token was not issued for this server", ' +
    'resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"',
  ]);
  await server.close();
});
