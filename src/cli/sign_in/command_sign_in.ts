/**
 * The token source of a command. The user signs in from the terminal, and the tokens are stored in the user's
 * configuration folder.
 */
import { type SignIn, signIn, type UserAgent } from "../../client/oauth/oauth.ts";
import { type AskPage, pageUserAgent } from "./page_user_agent.ts";
import { refuseSignIn, terminalUserAgent } from "./terminal_user_agent.ts";
import { tokenFolder, toTokenPath } from "./token_folder.ts";
import { CLIENT_NAME, type SignInSettings } from "./sign_in_settings.ts";

interface Asking {
  readonly isForced: boolean;
  readonly askPage?: AskPage;
  readonly storedFor?: string;
}

export function createSignIn(settings: SignInSettings, asking: Asking): SignIn {
  const { clientSecret, issuer, clientMetadataUrl, resource, scopes, port, opens, signInMs } = settings;
  // If the user names the issuer, the URL of the document is the id of a client at this issuer.
  const clientId = settings.clientId ?? (issuer === undefined ? undefined : clientMetadataUrl);
  return signIn({
    userAgent: toUserAgent(asking, { port, opens }),
    clientName: CLIENT_NAME,
    clientMetadataUrl,
    client: clientId === undefined ? undefined : { id: clientId, secret: clientSecret, issuer },
    resource,
    scopes,
    store: tokenFolder(toTokenPath()),
    signInMs,
  });
}

function toUserAgent(
  { isForced, askPage, storedFor }: Asking,
  { port, opens }: Pick<SignInSettings, "port" | "opens">,
): UserAgent {
  if (storedFor !== undefined) return () => Promise.reject(refuseSignIn({ server: storedFor, scopes: [] }));
  return askPage ? pageUserAgent(askPage, port) : terminalUserAgent({ port, opens, isForced });
}
