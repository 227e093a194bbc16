// A server that oauth() protects, and calls with tokens.
import { createServer, type Handler, type Server, type ServerOptions, tool } from "../../mod.ts";
import { oauth, type OAuthOptions } from "../../src/auth/oauth/oauth.ts";
import { RESOURCE, type TestIssuer } from "./issuer.ts";
import { readReply, toRequest } from "./requests.ts";

/** The URL of the resource metadata. */
export const METADATA = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";

/** The options of `protect`. */
export interface ProtectedOptions {
  readonly oauth?: Partial<OAuthOptions>;
  readonly server?: Partial<ServerOptions>;
  readonly handlers?: readonly Handler[];
}

const whoami = tool({ name: "whoami", run: (_, { principal }) => ({ ...principal }) });

/** Creates a server that trusts the given issuers. Its tool `whoami` returns the principal. */
export function protect(issuers: readonly TestIssuer[], options: ProtectedOptions = {}): Server {
  const auth = oauth({ resource: RESOURCE, issuers: issuers.map(({ name }) => name), ...options.oauth });
  return createServer({
    name: "me",
    version: "1.0.0",
    auth,
    handlers: [whoami, ...options.handlers ?? []],
    observer: { fault() {} },
    ...options.server,
  });
}

/** The response to a call, with its challenge and the parsed result. */
export interface Called {
  readonly status: number;
  readonly challenge: string | null;
  /** The principal that `whoami` returned. */
  // deno-lint-ignore no-explicit-any
  readonly principal?: any;
  readonly message?: string;
}

/** Calls `whoami` with or without a token. */
export async function callWith(
  server: Pick<Server, "fetch">,
  token: string | undefined,
  { name = "whoami", headers = {} }: { readonly name?: string; readonly headers?: Record<string, string> } = {},
): Promise<Called> {
  const authorization: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await server.fetch(toRequest("tools/call", { name }, { ...authorization, ...headers }));
  const { result, error } = await readReply(response);
  return {
    status: response.status,
    challenge: response.headers.get("www-authenticate"),
    principal: result?.structuredContent,
    message: error?.message,
  };
}

/** Returns the challenge in the response to an invalid token. */
export function toInvalid(description: string): string {
  return `Bearer error="invalid_token", error_description="${description}", resource_metadata="${METADATA}"`;
}
