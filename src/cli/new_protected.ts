/**
 * The files that `mcp new --auth` creates: a server that authenticates its callers, a test, and a README about tokens.
 */

export interface Modules {
  readonly library: string;
  readonly auth: string;
  readonly oauth: string;
}

export function toProtectedServer(name: string, { library, auth, oauth }: Modules): string {
  return `import process from "node:process";
import { createServer, tool } from ${JSON.stringify(library)};
import { allScopes, apiKey, requirePrincipal } from ${JSON.stringify(auth)};

const { MCP_ISSUERS, MCP_RESOURCE, MCP_KEY } = process.env;

// Accept access tokens if MCP_ISSUERS and MCP_RESOURCE are set, or else an API key. See README.md.
const auth = MCP_ISSUERS && MCP_RESOURCE
  ? (await import(${JSON.stringify(oauth)})).oauth({
    resource: MCP_RESOURCE,
    issuers: MCP_ISSUERS.split(" "),
    scopes: ["notes:read"],
  })
  : apiKey({ keys: { owner: { key: MCP_KEY ?? createKey(), scopes: allScopes } } });

function createKey() {
  const key = crypto.randomUUID();
  console.error(\`API key of this run: \${key}\`);
  return key;
}

const notes = new Map<string, string[]>();

export const add = tool({
  name: "add",
  title: "Add a note",
  description: "Adds a note for the caller",
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  input: { type: "object", properties: { text: { type: "string", description: "The note" } }, required: ["text"] },
  scopes: ["notes:write"], // A token without this scope gets 403, and clients then ask their users for the scope.
  run({ text }, ctx) {
    const { id } = requirePrincipal(ctx);
    const own = [...notes.get(id) ?? [], String(text)];
    notes.set(id, own);
    return \`You have \${own.length} notes.\`;
  },
});

export const list = tool({
  name: "list",
  title: "List notes",
  description: "Lists the notes of the caller",
  scopes: ["notes:read"],
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  run: (_, ctx) => notes.get(requirePrincipal(ctx).id)?.join("\\n") ?? "You have no notes.",
});

export default createServer({ name: ${JSON.stringify(name)}, version: "0.1.0", auth, handlers: [add, list] });
`;
}

interface TestStyle {
  readonly imports: string;
  readonly test: string;
}

export function toProtectedTest(testing: string, { imports, test }: TestStyle): string {
  return `${imports}import { connectTest } from ${JSON.stringify(testing)};
import server from "./server.ts";

const ada = { id: "ada", scopes: ["notes:read", "notes:write"] };
const eve = { id: "eve", scopes: ["notes:read"] };

/** Calls a tool as a user, and returns its text or its error. */
async function call(principal: { id: string; scopes: string[] }, name: string, args = {}) {
  const client = await connectTest(server, { principal });
  try {
    const { content: [block] } = await client.callTool(name, args);
    return block.type === "text" ? block.text : block.type;
  } catch (error) {
    return String(error);
  } finally {
    await client.close();
  }
}

function expect(actual: unknown, expected: string) {
  if (!String(actual).includes(expected)) throw new Error(\`\${actual} is not \${expected}\`);
}

${test}("users see their own notes", async () => {
  expect(await call(ada, "add", { text: "buy milk" }), "You have 1 notes.");
  expect(await call(ada, "list"), "buy milk");
  expect(await call(eve, "list"), "You have no notes.");
});

${test}("a user without the scope cannot add notes", async () => {
  expect(await call(eve, "add", { text: "hi" }), "notes:write");
});

${test}("a caller without a token is rejected", async () => {
  const { status } = await server.fetch(new Request("http://localhost/mcp", { method: "POST" }));
  expect(status, "401");
});
`;
}

interface Commands {
  readonly serve: string;
  readonly call: string;
  readonly doctor: string;
  readonly test: string;
}

export function toProtectedReadme(name: string, { serve, call, doctor, test }: Commands): string {
  return `# ${name}

An MCP server that authenticates its callers. Each user has separate notes.

    ${test}
    ${serve}

## Use an API key

By default, the server requires an API key, and prints a new key each time it starts. To use a permanent key, set MCP_KEY:

    export MCP_KEY=$(openssl rand -hex 16)
    ${serve}

Clients send the key in each request. To call the server from another terminal with the same \`MCP_KEY\`:

    ${call} --header "authorization=Bearer $MCP_KEY"

## Use OAuth

Set the issuer, exactly as in the \`iss\` claim of its tokens, and the public URL of this server:

    export MCP_ISSUERS=https://login.example.com MCP_RESOURCE=https://mcp.example.com/mcp
    ${serve}

To try OAuth on this machine, use \`MCP_RESOURCE=http://127.0.0.1:3000/mcp\`.

1. Register the scopes \`notes:read\` and \`notes:write\` at the authorization server. Its access tokens must have the
   value of \`MCP_RESOURCE\` in the \`aud\` claim. If \`aud\` must have a different value, add \`audience\` to
   \`oauth({ … })\`.
2. Clients that support OAuth get a token by themselves, and need only the URL of the server. They open a browser, and
   the user signs in. If the authorization server does not register unknown clients, register your client by hand.
3. For a script, get a token from the token endpoint of the authorization server, and send it as a header:

       curl -d grant_type=client_credentials -d resource=$MCP_RESOURCE -d scope=notes:read \\
         -u "$CLIENT_ID:$CLIENT_SECRET" https://login.example.com/token
       ${call} --header "authorization=Bearer $TOKEN"

Then check everything that clients rely on:

    ${doctor}
    ${doctor} --header "authorization=Bearer $TOKEN"
`;
}
