/**
 * The files that `mcp new --github` creates: a server whose users sign in with GitHub, a test, and a README.
 */

export interface GitHubModules {
  readonly library: string;
  readonly proxy: string;
}

export function toGitHubServer(name: string, { library, proxy }: GitHubModules): string {
  return `import process from "node:process";
import { createServer, tool, ToolError } from ${JSON.stringify(library)};
import { github, oauthProxy } from ${JSON.stringify(proxy)};

export interface Options {
  clientId?: string;
  clientSecret?: string;
  /** The GitHub accounts that may use the server, in lower case. */
  users: string[];
  /** Public URL of the server. */
  resource?: string;
  secret?: string;
  fetch?: (request: Request) => Promise<Response>;
}

export function create({ clientId, clientSecret, users, resource = "http://127.0.0.1:3000/mcp", secret, fetch }: Options) {
  const login = oauthProxy({
    resource,
    provider: github({ clientId, clientSecret, scopes: ["repo"] }),
    // Everybody can have an account at GitHub, so decide who may use the server.
    who: ({ facts }) => users.includes(String(facts.login).toLowerCase()),
    fetch,
  });
  const list = tool({
    name: "list_repositories",
    title: "List repositories",
    description: "Lists the repositories of the user",
    annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: true },
    async run(_input, ctx) {
      const headers = { accept: "application/vnd.github+json", "user-agent": ${JSON.stringify(name)} };
      const request = new Request("https://api.github.com/user/repos?per_page=50", { headers });
      const response = await login.fetch(ctx, request);
      if (!response.ok) throw new ToolError(\`GitHub responded with status \${response.status}\`);
      const found: { full_name: string }[] = await response.json();
      return found.map((each) => each.full_name).join("\\n") || "There are no repositories.";
    },
  });
  return createServer({ name: ${JSON.stringify(name)}, version: "0.1.0", auth: login, secret, handlers: [list] });
}

const { GITHUB_CLIENT_ID, GITHUB_CLIENT_SECRET, GITHUB_USERS = "", MCP_RESOURCE, MCP_SECRET } = process.env;
const users = GITHUB_USERS.split(",").map((name) => name.trim().toLowerCase());

export default create({
  clientId: GITHUB_CLIENT_ID,
  clientSecret: GITHUB_CLIENT_SECRET,
  users,
  resource: MCP_RESOURCE,
  secret: MCP_SECRET,
});
`;
}

interface TestParts {
  readonly client: string;
  readonly oauth: string;
  readonly testing: string;
  readonly imports: string;
  readonly test: string;
}

export function toGitHubTest({ client, oauth, testing, imports, test }: TestParts): string {
  return `${imports}import { connect } from ${JSON.stringify(client)};
import { signIn } from ${JSON.stringify(oauth)};
import { fakeGitHub } from ${JSON.stringify(testing)};
import { create } from "./server.ts";

const origin = "http://127.0.0.1:3000";

/** Signs a user of the stand-in for GitHub in, and connects. */
async function open(login: string) {
  const hub = fakeGitHub({ callback: \`\${origin}/callback\` });
  hub.current = hub.users.find((user) => user.login === login)?.id ?? 0;
  const server = create({ ...hub.client, users: ["ada"], fetch: hub.fetch });
  const send = async (request: Request) =>
    await (request.url.startsWith(origin) ? server.fetch(request) : hub.fetch(request));
  const userAgent = () => ({
    redirectUri: "http://127.0.0.1:7777/callback",
    // Does what the user does in the browser: agrees on the consent page, and signs in.
    async visit({ url }: { url: string }) {
      const html = await (await send(new Request(url))).text();
      const request = /name="request" value="([^"]+)"/.exec(html)?.[1] ?? "";
      const body = new URLSearchParams({ request, action: "allow" });
      const agreed = await send(new Request(\`\${origin}/consent\`, { method: "POST", body, headers: { origin } }));
      const cookie = agreed.headers.getSetCookie().map((each) => each.split(";")[0]).join("; ");
      const signedIn = await send(new Request(agreed.headers.get("location") ?? ""));
      const back = await send(new Request(signedIn.headers.get("location") ?? "", { headers: { cookie } }));
      return back.headers.get("location") ?? "";
    },
    end() {},
  });
  const repositories = hub.users.find((user) => user.login === login)?.repos ?? [];
  const connecting = connect(\`\${origin}/mcp\`, { fetch: send, auth: signIn({ fetch: send, userAgent }) });
  return { connecting, repositories, close: () => server.close() };
}

${test}("a user sees their repositories", async () => {
  const { connecting, repositories, close } = await open("ada");
  const client = await connecting;
  const { content: [block] } = await client.callTool("list_repositories");
  const text = block.type === "text" ? block.text : "";
  for (const { name } of repositories) if (!text.includes(\`ada/\${name}\`)) throw new Error(text);
  await client.close();
  await close();
});

${test}("another user is refused", async () => {
  const { connecting, close } = await open("grace");
  const error = await connecting.then(() => "connected", String);
  if (!error.includes("access_denied")) throw new Error(error);
  await close();
});
`;
}

export function toGitHubReadme(
  name: string,
  { serve, call, test }: { readonly serve: string; readonly call: string; readonly test: string },
): string {
  return `# ${name}

An MCP server whose users sign in with GitHub. Its tool lists the user's repositories.

    ${test}

The test uses a stand-in for GitHub. To use GitHub:

1. Create an OAuth app at https://github.com/settings/developers. Its callback URL is http://127.0.0.1:3000/callback.
2. Set its id and secret, and the accounts that may use the server:

       export GITHUB_CLIENT_ID=… GITHUB_CLIENT_SECRET=… GITHUB_USERS=ada,grace
       ${serve}

3. Sign in, and call the tool from another terminal:

       ${call}

To deploy the server, set \`MCP_RESOURCE\` to its public URL, such as \`https://mcp.example.com/mcp\`, and \`MCP_SECRET\` to
a secret of 32 or more characters, such as from \`openssl rand -hex 32\`. Add the callback URL that the server prints to
the OAuth app. To keep users signed in after a restart, pass a \`store\` to \`createServer\`.
`;
}
