/**
 * The token source of a command. The user signs in from the terminal, and the tokens are stored in the user's
 * configuration folder.
 */
import { type SignIn, signIn } from "../../client/oauth/oauth.ts";
import { type AskPage, pageUserAgent } from "./page_user_agent.ts";
import { terminalUserAgent } from "./terminal_user_agent.ts";
import { tokenFolder, toTokenPath } from "./token_folder.ts";
import { CLIENT_NAME, type SignInSettings } from "./sign_in_settings.ts";

export function createSignIn(
  settings: SignInSettings,
  { isForced, askPage }: { readonly isForced: boolean; readonly askPage?: AskPage },
): SignIn {
  const { clientSecret, issuer, clientMetadataUrl, resource, scopes, port, opens, signInMs } = settings;
  // If the user names the issuer, the URL of the document is the id of a client at this issuer.
  const clientId = settings.clientId ?? (issuer === undefined ? undefined : clientMetadataUrl);
  return signIn({
    userAgent: askPage ? pageUserAgent(askPage, port) : terminalUserAgent({ port, opens, isForced }),
    clientName: CLIENT_NAME,
    clientMetadataUrl,
    client: clientId === undefined ? undefined : { id: clientId, secret: clientSecret, issuer },
    resource,
    scopes,
    store: tokenFolder(toTokenPath()),
    signInMs,
  });
}
