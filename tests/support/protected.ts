// A server that is protected by oauth(), and calls with tokens.
import { createServer, type Handler, type Server, type ServerOptions, tool } from "../../mod.ts";
import { oauth, type OAuthOptions } from "../../src/auth/oauth/oauth.ts";
import { RESOURCE, type TestIssuer } from "./issuer.ts";
import { toRequest } from "./requests.ts";

/** The URL of the metadata of the resource. */
export const METADATA = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";

/** Options of a protected server. */
export interface ProtectedOptions {
  readonly oauth?: Partial<OAuthOptions>;
  readonly server?: Partial<ServerOptions>;
  readonly handlers?: readonly Handler[];
}

const whoami = tool({ name: "whoami", run: (_, { principal }) => ({ ...principal }) });

/** Creates a server that trusts some issuers. Its tool `whoami` shows the principal. */
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

/** The response to a call. */
export interface Called {
  readonly status: number;
  readonly challenge: string | null;
  /** The result of `whoami`. */
  // deno-lint-ignore no-explicit-any
  readonly principal?: any;
  readonly message?: string;
}

/** Calls a tool with a token, or without a token. */
export async function callWith(
  server: Pick<Server, "fetch">,
  token: string | undefined,
  { name = "whoami", headers = {} }: { readonly name?: string; readonly headers?: Record<string, string> } = {},
): Promise<Called> {
  const authorization: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await server.fetch(toRequest("tools/call", { name }, { ...authorization, ...headers }));
  const text = await response.text();
  // A call that takes a long time gets a stream as its response.
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
  const json = isStream ? text.split("\n").findLast((line) => line.startsWith("data: {"))?.slice(6) : text;
  const { result, error } = JSON.parse(json ?? "{}");
  return {
    status: response.status,
    challenge: response.headers.get("www-authenticate"),
    principal: result?.structuredContent,
    message: error?.message,
  };
}

/** The challenge in the response to an invalid token. */
export function toInvalid(description: string): string {
  return `Bearer error="invalid_token", error_description="${description}", resource_metadata="${METADATA}"`;
}
