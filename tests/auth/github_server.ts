// A server whose users sign in at a stand-in for GitHub, which the server serves at `/github`.
import process from "node:process";
import { createServer, type Server, tool } from "@x/mcp";
import { github, oauthProxy } from "@x/mcp/oauth/proxy";
import { fakeGitHub } from "@x/mcp/testing";

const resource = process.env.GITHUB_RESOURCE ?? "";
const hub = fakeGitHub({ isApp: true, callback: new URL("/callback", resource).href });

const login = oauthProxy({
  resource,
  provider: github(hub.client),
  who: ({ facts }) => facts.login === "ada",
  scopes: ["repos:read"],
  fetch: hub.fetch,
});

const list = tool({
  name: "list",
  description: "Lists the repositories of the user",
  scopes: ["repos:read"],
  async run(_input, ctx) {
    const response = await login.fetch(ctx, new Request("https://api.github.com/user/repos", { headers }));
    const all: readonly { readonly full_name: string }[] = await response.json();
    return all.map((each) => each.full_name).join(", ");
  },
});
const headers = { "user-agent": "test" };

/** Responds to the browser of the user whose login is in the header `x-user`. */
const page = {
  path: "/github",
  fetch(request: Request): Promise<Response> {
    hub.current = hub.users.find((each) => each.login === request.headers.get("x-user"))?.id ?? 0;
    return hub.fetch(new Request(new URL(request.url).searchParams.get("url") ?? ""));
  },
};

export default createServer({
  name: "repositories",
  version: "1.0.0",
  auth: login,
  handlers: [list],
  routes: [page],
}) satisfies Server;
