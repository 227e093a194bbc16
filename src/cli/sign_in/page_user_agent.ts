/**
 * Signs in the user of the inspector's page. The page shows the link to the authorization server, but never receives
 * the tokens.
 */
import { loopback, type SignInPage, type UserAgent } from "../../client/oauth/oauth.ts";

/** Asks the page's user to open the link. Resolves with whether the user agrees. */
export type AskPage = (page: SignInPage, signal: AbortSignal) => Promise<boolean>;

export function pageUserAgent(ask: AskPage, port?: number): UserAgent {
  return async (start) => {
    const attempt = await loopback({ port, open: () => {} })(start);
    return {
      redirectUri: attempt.redirectUri,
      async visit(page, { signal }) {
        const stop = new AbortController();
        const refused = refuse(ask(page, AbortSignal.any([signal, stop.signal])), page);
        refused.catch(() => {});
        try {
          return await Promise.race([attempt.visit(page, { signal }), refused]);
        } finally {
          // Close the dialog, because the redirect can arrive while the dialog is still open.
          stop.abort(new DOMException("The user has come back", "AbortError"));
        }
      },
      end: (error) => attempt.end(error),
    };
  };
}

/**
 * Rejects if the user does not agree. If the user agrees, the promise never settles, because the response arrives
 * through the browser's redirect.
 */
async function refuse(agreed: Promise<boolean>, { server }: SignInPage): Promise<never> {
  if (await agreed) return await new Promise(() => {});
  throw new Error(`Cannot sign in to ${server}: you have declined the sign-in; reconnect to try again`);
}
