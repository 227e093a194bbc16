// An app that Next has built and serves. Next builds the URL of a request from the address on which it listens.
import { request as httpRequest } from "node:http";
import { Readable } from "node:stream";
import { assertEquals } from "@std/assert";
import config from "../../deno.json" with { type: "json" };
import { connect } from "../../src/client/client.ts";
import { until } from "../support/behaviour.ts";
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { findPackages } from "../support/npm_packages.ts";
import { findFreePort, root, run, start } from "../support/processes.ts";
import { needs, requireAll } from "../support/required.ts";
import { buildNpmPackage } from "../release/npm_package.ts";

const isDeno = typeof Deno !== "undefined"; // Only Deno starts processes.
const PACKAGES = [
  "next@16.4.6",
  "react@19.3.1",
  "react-dom@19.3.1",
  "typescript@7.0.2",
  "@types/node@26.6.6",
  "@types/react@19.3.0",
  "zod@4.6.7",
];
const ENV = { NEXT_TELEMETRY_DISABLED: "1", CI: "1" };
const PUBLIC = "mcp.example.com";

const found = isDeno ? await findPackages("next", PACKAGES) : { missing: "Deno" };
const node = isDeno ? await findNode(NODE_VERSIONS[1]) : { missing: "Deno" };
const missing = isDeno && ("missing" in found ? found.missing : "missing" in node ? node.missing : undefined) ||
  undefined;

/** Writes an app with the route of the frameworks page into a folder. */
async function writeApp(folder: string): Promise<void> {
  const page = 'export default function Page() { return "Hello"; }';
  const layout =
    "export default ({ children }: { children: React.ReactNode }) => <html><body>{children}</body></html>;";
  const read = (name: string) => Deno.readTextFile(`${root}examples/frameworks/${name}`);
  const files: Readonly<Record<string, string>> = {
    "package.json": '{ "name": "site", "private": true, "type": "module" }',
    "tsconfig.json":
      '{ "compilerOptions": { "strict": true, "skipLibCheck": true, "allowImportingTsExtensions": true } }',
    // The packages are in the folder above the app.
    "next.config.mjs": 'export default { turbopack: { root: import.meta.dirname + "/.." } };',
    "app/layout.tsx": layout,
    "app/page.tsx": page,
    "app/mcp/route.ts": await read("next_route.ts"),
    "app/mcp/server.ts": (await read("server.ts")).replace("handlers: [add]", `handlers: [add], hosts: ["${PUBLIC}"]`),
  };
  for (const [name, text] of Object.entries(files)) {
    await Deno.mkdir(`${folder}/${name}`.replace(/\/[^/]*$/, ""), { recursive: true });
    await Deno.writeTextFile(`${folder}/${name}`, text);
  }
  await buildNpmPackage(root, `${folder}/node_modules/${config.name}`);
}

/** Creates a `fetch` that connects to a port of this machine, and sends a Host header of its own. */
function toFetch(port: number, host: string): (request: Request) => Promise<Response> {
  return async (request) => {
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const { pathname, search } = new URL(request.url);
    const { method, signal } = request;
    const headers = { ...Object.fromEntries(request.headers), host };
    const sent = httpRequest({ host: "127.0.0.1", port, path: pathname + search, method, headers, signal });
    sent.on("error", reject);
    sent.on("response", (answer) => {
      const { statusCode: status = 0 } = answer;
      const named = Object.entries(answer.headers).map(([name, value]): [string, string] => [name, String(value)]);
      answer.on("error", () => {}); // The client has closed the stream.
      // The cast is safe, because both types describe the web's stream.
      const body = Readable.toWeb(answer) as ReadableStream<Uint8Array<ArrayBuffer>>;
      resolve(new Response([202, 204].includes(status) ? null : body, { status, headers: named }));
    });
    sent.end(await request.text());
    return await promise;
  };
}

async function checkHosts(port: number): Promise<void> {
  for (const host of [PUBLIC, `${PUBLIC}:8443`, `127.0.0.1:${port}`, `localhost:${port}`]) {
    for (const revision of ["2026-07-28", "2025-06-18"]) {
      const fetch = toFetch(port, host);
      await using client = await connect(`http://${host}/mcp`, { revisions: [revision], fetch });
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
    const headers = { "content-type": "application/json", ...origin && { origin } };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
    const request = new Request("http://localhost/mcp", { method: "POST", headers, body });
    const response = await toFetch(port, host)(request);
    await response.body?.cancel();
    assertEquals(response.status, status, `${host}, page of ${origin}`);
  }
}

Deno.test({
  ...isDeno
    ? needs("an app that Next has built serves the hosts in `hosts`, and no other host", missing)
    : { name: "an app that Next has built serves the hosts in `hosts`, and no other host", ignore: true },
  async fn() {
    requireAll(missing);
    if ("missing" in found || "missing" in node) return;
    const folder = await Deno.makeTempDir({ dir: found.folder, prefix: "site-" });
    try {
      await writeApp(folder);
      const next = [node.path, `${found.folder}/node_modules/next/dist/bin/next`];
      const built = await run([...next, "build"], { cwd: folder, env: ENV, timeoutMs: 600_000 });
      assertEquals(built.code, 0, built.stdout + built.stderr);
      for (const address of [[], ["-H", "0.0.0.0"]]) {
        const port = findFreePort();
        await using running = await start([...next, "start", "-p", `${port}`, ...address], { cwd: folder, env: ENV });
        let hasEnded = false;
        running.finished.then(() => hasEnded = true);
        const isOpen = () => fetch(`http://127.0.0.1:${port}/`).then((it) => it.text()).then(() => true, () => false);
        await until(async () => hasEnded || await isOpen(), "the app listens");
        if (hasEnded) throw new Error((await running.finished).stderr);
        await checkHosts(port);
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
