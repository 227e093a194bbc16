// Serves the page of `page/`, which is a client of `server.ts`. Bundle the page first:
//
//   deno bundle --platform browser -o examples/browser/page.js examples/browser/page/page.ts
//   deno serve --port 5173 -A examples/browser/site.ts
import { readFile } from "node:fs/promises";
import process from "node:process";

const { SERVER = "http://127.0.0.1:8000/mcp", ISSUER = "", CLIENT = "{}", ERA, KEEP } = process.env;
const { BUNDLE = new URL("page.js", import.meta.url).pathname } = process.env;

const { origin } = new URL(SERVER);

/** The page's own files, the MCP server and the authorization server, and nothing else. */
const POLICY = [
  "default-src 'none'",
  `script-src 'self' ${origin}`, // the server serves the script of WebMCP
  `connect-src 'self' ${origin} ${ISSUER && new URL(ISSUER).origin}`,
  "style-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const HTML = `<!doctype html>
<html lang="en">
  <title>Notes</title>
  <h1>Notes</h1>
  <p id="state" role="status">Connecting</p>
  <button id="sign-in" hidden></button>
  <button id="sign-out" hidden>Sign out</button>
  <ul id="tools"></ul>
  <form id="form"><input name="text" aria-label="Note" required><button>Add</button></form>
  <pre id="notes"></pre>
  <script type="module" src="/page.js"></script>
</html>
`;

async function respond(path: string): Promise<Response> {
  const headers = {
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer", // the address of the redirect contains a code
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
  };
  const send = (type: string, body: BodyInit) => new Response(body, { headers: { ...headers, "content-type": type } });
  if (path === "/page.js") return send("text/javascript", await readFile(BUNDLE, "utf8"));
  if (path === "/config.json") {
    const config = { server: SERVER, era: ERA, keep: KEEP === "1", signIn: JSON.parse(CLIENT) };
    return send("application/json", JSON.stringify(config));
  }
  // The authorization server sends the user back to `/callback`, which is the same page.
  return ["/", "/callback"].includes(path) ? send("text/html", HTML) : new Response(null, { status: 404, headers });
}

const { PORT = "5173" } = process.env;

export default {
  port: Number(PORT),
  hostname: "127.0.0.1",
  fetch: (request: Request) => respond(new URL(request.url).pathname),
};
