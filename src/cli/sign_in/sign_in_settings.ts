/**
 * Reads the options of a command that signs in.
 */
import type { Args } from "../args.ts";
import { UsageError } from "../cli_error.ts";
import { platform } from "../platform.ts";

export interface SignInSettings {
  readonly clientId?: string;
  readonly clientSecret?: string;
  /** The only authorization server at which to use the client. */
  readonly issuer?: string;
  readonly clientMetadataUrl?: string;
  /** A resource that contains the server, and that the user trusts. */
  readonly resource?: string;
  /** Scopes to request in addition to the scopes that the server names. */
  readonly scopes?: readonly string[];
  readonly port?: number;
  readonly opens: boolean;
  readonly signInMs: number;
}

/** The client name that the authorization server shows to users. */
export const CLIENT_NAME = "@x/mcp command line";

/** Milliseconds that a user may take to sign in. */
export const SIGN_IN_MS = 300_000;

/** @throws {UsageError} if an option is invalid. */
export function readSettings({ flags, all }: Args): SignInSettings {
  const { "client-id": clientId, "client-metadata": clientMetadataUrl, "client-env": variable, issuer, resource } =
    flags;
  if (variable !== undefined && clientId === undefined) {
    throw new UsageError("Cannot use --client-env: no client is named; add --client-id ID");
  }
  if (issuer !== undefined && clientId === undefined && clientMetadataUrl === undefined) {
    throw new UsageError("Cannot use --issuer: no client is named; add --client-id ID or --client-metadata URL");
  }
  if (variable !== undefined && issuer === undefined) {
    const remedy = "add --issuer with the URL of the authorization server that issued the secret";
    throw new UsageError(`Cannot use --client-env ${variable}: no authorization server is named; ${remedy}`);
  }
  if (issuer !== undefined && !URL.canParse(issuer)) {
    throw new UsageError(`Cannot use --issuer ${issuer}: it is not a URL; write the URL of the authorization server`);
  }
  if (clientMetadataUrl !== undefined && URL.parse(clientMetadataUrl)?.protocol !== "https:") {
    throw new UsageError(
      `Cannot use --client-metadata ${clientMetadataUrl}: it is not an https URL; write a URL ` +
        "that begins with https://",
    );
  }
  if (resource !== undefined && !URL.canParse(resource)) {
    throw new UsageError(
      `Cannot use --resource ${resource}: it is not a URL; write a URL such as https://mcp.example.com`,
    );
  }
  const clientSecret = variable === undefined ? undefined : platform.env(variable);
  if (variable !== undefined && !clientSecret) {
    throw new UsageError(`Cannot use --client-env ${variable}: the environment has no such variable; set the variable`);
  }
  const port = readPort(flags["redirect-port"]);
  return {
    clientId,
    clientSecret,
    issuer,
    clientMetadataUrl,
    resource,
    scopes: all.scope,
    port,
    opens: !("no-browser" in flags),
    signInMs: SIGN_IN_MS,
  };
}

function readPort(text: string | undefined): number | undefined {
  if (text === undefined) return;
  const port = Number(text);
  if (/^\d+$/.test(text) && port > 0 && port <= 65_535) return port;
  throw new UsageError(`Cannot use --redirect-port ${text}: it is not a port; write a number between 1 and 65535`);
}
