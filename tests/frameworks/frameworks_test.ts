// The server in common frameworks. The programs in examples/frameworks run as processes, on every runtime that each
// framework supports.
import { assertEquals } from "@std/assert";
import { connect } from "../../src/client/client.ts";
import { until } from "../support/behaviour.ts";
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { findFreePort, root, start } from "../support/processes.ts";

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

for (const [program, names] of Object.entries(programs)) {
  for (const name of names) {
    Deno.test({
      name: `${program} on ${name} serves clients of both eras, and serves its other routes`,
      ignore,
      async fn() {
        const port = findFreePort();
        const words = await runtimes[name](port);
        if (!words) return;
        const env = { PORT: `${port}`, BUN_PORT: `${port}` };
        await using running = await start([...words, `${root}examples/frameworks/${program}.ts`], { env });
        let hasEnded = false;
        running.finished.then(() => hasEnded = true);
        const origin = `http://127.0.0.1:${port}`;
        await until(async () => hasEnded || await isOpen(origin), "the program listens");
        if (hasEnded) throw new Error((await running.finished).stderr);
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
