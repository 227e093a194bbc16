// An app that Next has built and serves. Next builds the URL of a request from the address on which it listens.
import { assertEquals } from "@std/assert";
import { connect } from "../../src/client/client.ts";
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { findPackages } from "../support/npm_packages.ts";
import { findFreePort, root, run } from "../support/processes.ts";
import { needs, requireAll } from "../support/required.ts";
import { buildNpmPackage } from "../release/npm_package.ts";
import { createHostFetch } from "./host_fetch.ts";
import { ENV, next, writeProject } from "./projects.ts";
import { startApp } from "./start_app.ts";

const isDeno = typeof Deno !== "undefined"; // Only Deno starts processes.
const PUBLIC = "mcp.example.com";
const ORIGIN = "https://app.example.com";
const KEY = "ada-2f6c1e0b9d4a7853";
/** The values that only a started app has, not the build. */
const SECRETS = { MCP_SECRET: "a secret of at least thirty-two characters", ADA_KEY: KEY };
const METADATA = "/.well-known/oauth-protected-resource/mcp";

const found = isDeno ? await findPackages("framework", next.packages) : { missing: "Deno" };
const node = isDeno ? await findNode(NODE_VERSIONS[1]) : { missing: "Deno" };
const missing = isDeno && ("missing" in found ? found.missing : "missing" in node ? node.missing : undefined) ||
  undefined;

/** Writes an app with the routes of the frameworks page into a folder. */
async function writeApp(folder: string): Promise<void> {
  const library = `${folder}-library`;
  await buildNpmPackage(root, library);
  const text = await Deno.readTextFile(`${root}examples/frameworks/apps/next_server.ts`);
  const route = `{ path: "${METADATA}", public: true, fetch: () => new Response("{}") }`;
  const server = text.replace("routes: [health()]", `cors: { origins: ["${ORIGIN}"] }, routes: [health(), ${route}]`);
  const programs = { ...next.programs, "app/health/route.ts": "apps/next_health_route.ts" };
  const files = {
    ...next.files,
    "tsconfig.json": '{ "compilerOptions": { "strict": true, "skipLibCheck": true, "paths": { "@/*": ["./*"] } } }',
    [`app${METADATA}/route.ts`]: 'export { GET } from "@/app/mcp/route";',
  };
  await writeProject({ ...next, programs, files }, { folder, server, library });
  await Deno.remove(library, { recursive: true });
}

/** Checks the routes of the MCP server, and its response to a preflight request. */
async function checkRoutes(port: number): Promise<void> {
  const send = createHostFetch(port, PUBLIC);
  for (const path of ["/health", METADATA]) {
    const response = await send(new Request(`http://localhost${path}`));
    assertEquals([response.status, await response.text()], [200, "{}"], path);
  }
  const headers = { origin: ORIGIN, "access-control-request-method": "POST" };
  const preflight = await send(new Request("http://localhost/mcp", { method: "OPTIONS", headers }));
  assertEquals([preflight.status, preflight.headers.get("access-control-allow-origin")], [204, ORIGIN]);
}

/** Checks that an app without its secrets serves nobody. */
async function checkUnready(port: number): Promise<void> {
  const send = createHostFetch(port, PUBLIC);
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
  for (const authorization of ["", "Bearer undefined", `Bearer ${KEY}`]) {
    const headers = { "content-type": "application/json", authorization };
    const response = await send(new Request("http://localhost/mcp", { method: "POST", headers, body }));
    await response.body?.cancel();
    assertEquals(response.status, 503);
  }
}

async function checkHosts(port: number): Promise<void> {
  for (const host of [PUBLIC, `${PUBLIC}:8443`, `127.0.0.1:${port}`, `localhost:${port}`]) {
    for (const revision of ["2026-07-28", "2025-06-18"]) {
      const fetch = createHostFetch(port, host);
      const headers = { authorization: `Bearer ${KEY}` };
      await using client = await connect(`http://${host}/mcp`, { revisions: [revision], fetch, headers });
      const { content } = await client.callTool("add", { a: 2, b: 3 });
      assertEquals(content, [{ type: "text", text: "5" }], `${host} in ${revision}`);
    }
  }
  const rows = [
    ["evil.example", undefined, 403],
    ["evil.example", "http://evil.example", 403],
    [`${PUBLIC}.evil.example`, undefined, 403],
    [PUBLIC, `https://${PUBLIC}`, 200],
    [PUBLIC, `http://localhost:${port}`, 403],
    [PUBLIC, "https://evil.example", 403],
  ] as const;
  for (const [host, origin, status] of rows) {
    const authorization = `Bearer ${KEY}`;
    const headers = { "content-type": "application/json", authorization, ...origin && { origin } };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
    const request = new Request("http://localhost/mcp", { method: "POST", headers, body });
    const response = await createHostFetch(port, host)(request);
    await response.body?.cancel();
    assertEquals(response.status, status, `${host}, page of ${origin}`);
  }
}

Deno.test({
  ...isDeno
    ? needs(
      "an app that Next has built serves the hosts in `hosts` and no other host, routes, and preflight requests",
      missing,
    )
    : {
      name: "an app that Next has built serves the hosts in `hosts` and no other host, routes, and preflight requests",
      ignore: true,
    },
  async fn() {
    requireAll(missing);
    if ("missing" in found || "missing" in node) return;
    const folder = await Deno.makeTempDir({ dir: found.folder, prefix: "site-" });
    try {
      await writeApp(folder);
      const program = [node.path, `${found.folder}/node_modules/next/dist/bin/next`];
      const built = await run([...program, "build"], { cwd: folder, env: ENV, timeoutMs: 600_000 });
      assertEquals(built.code, 0, built.stdout + built.stderr);
      for (const address of [[], ["-H", "0.0.0.0"], ["-H", "127.0.0.1"]]) {
        const port = findFreePort();
        await using _running = await startApp([...program, "start", "-p", `${port}`, ...address], {
          cwd: folder,
          port,
          env: SECRETS,
        });
        await checkHosts(port);
        await checkRoutes(port);
      }
      const port = findFreePort();
      await using _bare = await startApp([...program, "start", "-p", `${port}`], { cwd: folder, port });
      await checkUnready(port);
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
