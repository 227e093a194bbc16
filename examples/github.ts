/**
 * A server whose users sign in with GitHub, and whose tools use GitHub on the user's behalf.
 *
 * Create an OAuth app at GitHub with the callback URL `http://127.0.0.1:3000/callback`, and set `GITHUB_CLIENT_ID`,
 * `GITHUB_CLIENT_SECRET` and `GITHUB_USERS`, such as `ada,grace`.
 *
 * Run it with `deno run -A jsr:@x/mcp examples/github.ts`.
 */
import process from "node:process";
import { createServer, tool, ToolError } from "@x/mcp";
import { github, oauthProxy } from "@x/mcp/oauth/proxy";
import { z } from "zod";

export interface Options {
  readonly clientId: string | undefined;
  readonly clientSecret: string | undefined;
  /** The accounts that may sign in, in lower case. */
  readonly users: readonly string[];
  /** Replaced in tests. */
  readonly fetch?: (request: Request) => Promise<Response>;
}

export function create({ clientId, clientSecret, users, fetch }: Options) {
  const login = oauthProxy({
    resource: "http://127.0.0.1:3000/mcp",
    provider: github({ clientId, clientSecret, scopes: ["repo"] }),
    who: ({ facts }) => users.includes(String(facts.login).toLowerCase()),
    fetch,
  });

  async function ask<T>(ctx: Parameters<typeof login.fetch>[0], path: string, body?: unknown): Promise<T> {
    const request = new Request(`https://api.github.com${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { accept: "application/vnd.github+json", "user-agent": "mcp-github-example" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const response = await login.fetch(ctx, request);
    if (response.ok) return await response.json();
    throw new ToolError(`GitHub responded with status ${response.status}`);
  }

  const repository = z.string().regex(/^[\w.-]+\/[\w.-]+$/).describe("Owner and name, such as ada/notes");
  const listRepositories = tool({
    name: "list_repositories",
    title: "List repositories",
    description: "Lists the repositories of the user",
    annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: true },
    async run(_input, ctx) {
      const found = await ask<readonly { readonly full_name: string }[]>(ctx, "/user/repos?per_page=50");
      return found.map((each) => each.full_name).join("\n") || "There are no repositories.";
    },
  });
  const listIssues = tool({
    name: "list_issues",
    title: "List issues",
    description: "Lists the open issues of a repository",
    input: z.object({ repository }),
    annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: true },
    async run({ repository }, ctx) {
      const path = `/repos/${repository}/issues`;
      const found = await ask<readonly { readonly number: number; readonly title: string }[]>(ctx, path);
      return found.map(({ number, title }) => `#${number} ${title}`).join("\n") || "There are no open issues.";
    },
  });
  const createIssue = tool({
    name: "create_issue",
    title: "Create an issue",
    description: "Creates an issue in a repository",
    input: z.object({ repository, title: z.string(), body: z.string().optional() }),
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: true },
    async run({ repository, ...issue }, ctx) {
      const { number } = await ask<{ readonly number: number }>(ctx, `/repos/${repository}/issues`, issue);
      return `Created #${number}.`;
    },
  });
  const handlers = [listRepositories, listIssues, createIssue];
  return createServer({ name: "github", version: "1.0.0", auth: login, handlers });
}

const { GITHUB_CLIENT_ID: clientId, GITHUB_CLIENT_SECRET: clientSecret, GITHUB_USERS = "" } = process.env;
const users = GITHUB_USERS.split(",").map((name) => name.trim().toLowerCase());

export default create({ clientId, clientSecret, users });
