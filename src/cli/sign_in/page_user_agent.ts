/**
 * Sends the user of the inspector's page to an authorization server and back. The page shows the link. The tokens stay
 * in this process.
 *
 * @module
 */
import { loopback, type SignInPage, type UserAgent } from "../../client/oauth/oauth.ts";

/** Asks the user of the page to open the link. Resolves with whether the user agrees. */
export type AskPage = (page: SignInPage, signal: AbortSignal) => Promise<boolean>;

/** Returns the user agent of a page. */
export function pageUserAgent(ask: AskPage, port?: number): UserAgent {
  return async () => {
    const trip = await loopback({ port, open: () => {} })();
    return {
      redirectUri: trip.redirectUri,
      async visit(page, { signal }) {
        const stop = new AbortController();
        const refused = refuse(ask(page, AbortSignal.any([signal, stop.signal])), page);
        refused.catch(() => {});
        try {
          return await Promise.race([trip.visit(page, { signal }), refused]);
        } finally {
          // Close the dialog, because the user may have come back without closing it.
          stop.abort(new DOMException("The user has come back", "AbortError"));
        }
      },
      end: (error) => trip.end(error),
    };
  };
}

/**
 * Rejects if the user does not agree. If the user agrees, it never settles, because the browser brings the response.
 */
async function refuse(agreed: Promise<boolean>, { server }: SignInPage): Promise<never> {
  if (await agreed) return await new Promise(() => {});
  throw new Error(`Cannot sign in to ${server}: you have declined; connect again to be asked again`);
}
