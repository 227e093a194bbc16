/**
 * A server whose users connect their GitHub accounts on a page of the server. Users sign in to the server, and to its
 * pages, at another authorization server; with `oauthProxy`, as in `github.ts`, they sign in with GitHub itself.
 *
 * The page must know which user opens the link. Therefore the site has its own OAuth login at the authorization server
 * that also issues the access tokens, and stores the `sub` of this login in the session of a cookie.
 *
 * Run it with `deno run -A jsr:@x/mcp examples/connect_account.ts --http`.
 */
import { createServer, tool } from "@x/mcp";
import { elicitationLinks, requirePrincipal } from "@x/mcp/auth";
import { oauth, toPrincipalId } from "@x/mcp/oauth";

const site = "https://notes.example.com"; // the public URL of the server and of both pages
const issuer = "https://login.example.com"; // signs users in, to the server and to the site
const github = { client_id: "Iv1.0a1b2c3d", client_secret: "5f2b8c1d" }; // in production, from the environment

const links = elicitationLinks();
const tokens = new Map<string, string>(); // GitHub tokens by caller; in production, encrypted in your database
const logins = new Map<string, { caller: string; expires: number }>(); // logins at GitHub that have begun, by `state`
/** The `sub` of each session. The login of your site adds the entries. */
export const sessions = new Map<string, string>();

const repositories = tool({
  name: "repositories",
  title: "Repositories",
  description: "Lists the user's repositories on GitHub",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: true },
  async run(_input, ctx) {
    const { id } = requirePrincipal(ctx);
    const token = tokens.get(id);
    if (token !== undefined) {
      const headers = { authorization: `Bearer ${token}` };
      const response = await fetch("https://api.github.com/user/repos", { headers, signal: ctx.signal });
      if (response.status !== 401) return response;
      // GitHub does not accept the token any more. Delete it, unless the user has connected again in the meantime.
      if (tokens.get(id) === token) tokens.delete(id);
    }
    const page = { message: "Connect your GitHub account", url: `${site}/connect` };
    const { action } = await links.elicit(ctx, "github", page);
    return action === "accept" ? "Connect the account on the page, then try again." : "Not connected.";
  },
});

/** Returns the `sub` of the user who has signed in to the site. Replace this function with the code of your site. */
function readSubject(request: Request): string | undefined {
  const [, session = ""] = /(?:^|; )session=([^;]+)/.exec(request.headers.get("cookie") ?? "") ?? [];
  return sessions.get(session);
}

/** Creates a page for users who have signed in to the site. Other users must sign in first. */
function createPage(path: string, show: (url: URL, caller: string) => Promise<Response>) {
  async function fetch(request: Request): Promise<Response> {
    const { search } = new URL(request.url);
    const url = new URL(path + search, site); // the public URL, even behind a proxy
    const subject = readSubject(request);
    const login = `${site}/login?${new URLSearchParams({ next: path + search })}`;
    return subject === undefined ? Response.redirect(login) : await show(url, toPrincipalId(issuer, subject));
  }
  return { path, fetch };
}

/** The page of the link. It starts a login at GitHub. */
const connectPage = createPage("/connect", async (url, caller) => {
  if (!await links.open(url.href, caller)) {
    return new Response("This link has expired, or it was created for another user.", { status: 403 });
  }
  const now = Date.now();
  for (const [state, { expires }] of logins) if (expires <= now) logins.delete(state);
  const state = crypto.randomUUID();
  logins.set(state, { caller, expires: now + 600_000 });
  const query = new URLSearchParams({ client_id: github.client_id, state });
  return Response.redirect(`https://github.com/login/oauth/authorize?${query}`);
});

/** The callback URL of the GitHub app. Only the user who started the login can finish the login, and only once. */
const finishPage = createPage("/connected", async ({ searchParams }, caller) => {
  const [state, code] = [searchParams.get("state") ?? "", searchParams.get("code")];
  const login = logins.get(state);
  if (login?.caller !== caller || login.expires <= Date.now()) {
    return new Response("This login has expired, or another user started it.", { status: 403 });
  }
  logins.delete(state);
  const token = code === null ? undefined : await exchangeCode(code);
  if (token === undefined) {
    return new Response("GitHub did not connect your account. Call the tool again to get a new link.", { status: 502 });
  }
  tokens.set(caller, token);
  return new Response("Connected. You can close this page.");
});

/** Returns the access token for a code, or `undefined` if GitHub rejects the code. */
async function exchangeCode(code: string): Promise<string | undefined> {
  const body = new URLSearchParams({ ...github, code });
  const headers = { accept: "application/json" };
  const response = await fetch("https://github.com/login/oauth/access_token", { method: "POST", body, headers });
  // If GitHub rejects the code, the status is 200, and the body has `error` instead of `access_token`.
  const { access_token, error } = response.ok ? await response.json() : { error: `HTTP ${response.status}` };
  if (typeof access_token === "string") return access_token;
  console.error(`GitHub did not issue a token: ${error}`);
}

const auth = oauth({ resource: `${site}/mcp`, issuers: [issuer] });
const routes = [connectPage, finishPage];
export default createServer({ name: "notes", version: "1.0.0", auth, handlers: [repositories], routes });
