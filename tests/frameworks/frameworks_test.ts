// The server in common frameworks. The programs in examples/frameworks run as processes, on every runtime that each
// framework supports.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { connect } from "../../src/client/client.ts";
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { findFreePort, root, type Running } from "../support/processes.ts";
import { sentence } from "../support/messages.ts";
import { startApp } from "./start_app.ts";

const ignore = typeof Deno === "undefined"; // Only Deno starts the processes of all runtimes.
const ERAS = ["2026-07-28", "2025-11-25"] as const;

type FindWords = (port: number) => Promise<readonly string[] | undefined>;

const runtimes: Readonly<Record<string, FindWords>> = {
  deno: () => Promise.resolve(["deno", "run", "-A", "--quiet", "--no-check"]),
  "deno serve": (port) =>
    Promise.resolve(["deno", "serve", "-A", "--quiet", "--no-check", "--host", "127.0.0.1", "--port", `${port}`]),
  bun: () => Promise.resolve(["bun"]),
  ...Object.fromEntries(NODE_VERSIONS.map((version) => [`node ${version}`, async () => {
    const found = await findNode(version);
    if ("path" in found) return [found.path, "--import", `${root}tests/frameworks/node_imports.ts`];
    if (Deno.env.get("REQUIRE_ALL")) throw new Error(found.missing);
    console.log(`Skipped: ${found.missing}`);
  }])),
};
const NODES = NODE_VERSIONS.map((version) => `node ${version}`);

/** The programs, each with the runtimes on which it runs. */
const programs: Readonly<Record<string, readonly string[]>> = {
  hono: ["deno serve", "bun"],
  hono_node: NODES,
  express: NODES,
  fastify: NODES,
  elysia: ["bun"],
  h3: ["deno", "bun", ...NODES],
};

async function isOpen(origin: string): Promise<boolean> {
  try {
    const response = await fetch(origin);
    return await response.text() === "Hello";
  } catch {
    return false;
  }
}

/** Starts a program, and waits until it listens. Returns `undefined` if the runtime is missing. */
async function startProgram(
  path: string,
  runtime: string,
): Promise<{ readonly running: Running; readonly origin: string } | undefined> {
  const port = findFreePort();
  const words = await runtimes[runtime](port);
  if (!words) return;
  const running = await startApp([...words, `${root}${path}`], { cwd: root, port, env: { BUN_PORT: `${port}` } });
  return { running, origin: `http://127.0.0.1:${port}` };
}

for (const [program, names] of Object.entries(programs)) {
  for (const name of names) {
    Deno.test({
      name: `${program} on ${name} serves clients of both eras, and serves its other routes`,
      ignore,
      async fn() {
        const started = await startProgram(`examples/frameworks/${program}.ts`, name);
        if (!started) return;
        await using running = started.running;
        const { origin } = started;
        for (const version of ERAS) {
          const progress: number[] = [];
          await using client = await connect(`${origin}/mcp`, { revisions: [version] });
          const onProgress = ({ progress: value }: { readonly progress: number }) => void progress.push(value);
          const result = await client.callTool("add", { a: 2, b: 3 }, { onProgress });
          assertEquals([result.content, progress], [[{ type: "text", text: "5" }], [1]]);
        }
        // The server refuses a page of another origin, which shows that the server gets the connection info.
        const headers = { "content-type": "application/json", origin: "https://evil.example" };
        const refused = await fetch(`${origin}/mcp`, { method: "POST", headers, body: "{}" });
        await refused.body?.cancel();
        assertEquals(refused.status, 403);
        assertEquals(await isOpen(origin), true);
        running.kill("SIGTERM");
        const { code } = await running.finished;
        // The programs without their own listener leave the handling of signals to the runtime.
        if (program !== "hono") assertEquals(code, 0);
      },
    });
  }
}

for (const [program, name] of [["express_routes", NODES[1]], ["hono_routes", "deno serve"], ["hono_routes", "bun"]]) {
  Deno.test({
    name: `${program} on ${name} serves the endpoint, the routes and the metadata of the MCP server`,
    ignore,
    async fn() {
      const started = await startProgram(`examples/frameworks/${program}.ts`, name);
      if (!started) return;
      await using _running = started.running;
      const rows = [
        ["/", 200, "Hello"],
        ["/health", 200, "{}"],
        ["/ready", 200, "{}"],
        ["/.well-known/oauth-protected-resource/mcp", 200, "https://login.example.com"],
        ["/mcp", 401, ""],
      ] as const;
      for (const [path, status, text] of rows) {
        const method = path === "/mcp" ? "POST" : "GET";
        const headers = { "content-type": "application/json" };
        const response = await fetch(started.origin + path, { method, headers });
        assertEquals(response.status, status, path);
        assertStringIncludes(await response.text(), text);
      }
    },
  });
}

Deno.test({
  name: "behind express.json(), the error of the MCP server names this body parser",
  ignore,
  async fn() {
    const started = await startProgram("tests/frameworks/parsed_program.ts", NODES[1]);
    if (!started) return;
    await using _running = started.running;
    for (const text of ["", "x".repeat(90_000)]) {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping", params: { text } });
      const headers = { "content-type": "application/json" };
      const response = await fetch(`${started.origin}/mcp`, { method: "POST", headers, body });
      assertEquals(response.status, 400);
      assertEquals((await response.json()).error.message, sentence("express.json()"));
    }
  },
});
