// Bundles a server file and runs the bundle in workerd. Workerd has no Deno or Bun globals, so the server can use only
// web standards. This test is a separate task, because it installs workerd (160 MB).
//
// deno task test:workerd [file]
import { assertEquals } from "@std/assert";
import { findPackages } from "../support/npm_packages.ts";

const VERSION = "1.20261117.1";
const root = new URL("../../", import.meta.url).pathname;

async function run(command: string, args: readonly string[]): Promise<void> {
  const { success, stdout, stderr } = await new Deno.Command(command, { args: [...args], cwd: root }).output();
  if (success) return;
  throw new Error(
    `Cannot run ${command} ${args.join(" ")}:\n${new TextDecoder().decode(stdout)}${new TextDecoder().decode(stderr)}`,
  );
}

/** Returns the path of workerd, which is installed into the folder for temporary files. */
async function install(): Promise<string> {
  const found = await findPackages("workerd", [`workerd@${VERSION}`]);
  if ("missing" in found) throw new Error(found.missing);
  return `${found.folder}/node_modules/workerd/bin/workerd`;
}

const config = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .worker)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [(name = "server.js", esModule = embed "server.js")],
  compatibilityDate = "2026-11-17",
);
`;

interface Worker extends AsyncDisposable {
  readonly url: string;
}

/** Bundles a file, and serves the bundle on a free port of 127.0.0.1. */
async function start(file: string): Promise<Worker> {
  const workerd = await install();
  const folder = await Deno.makeTempDir({ prefix: "workerd-" });
  await run(Deno.execPath(), ["bundle", "--quiet", "--platform=browser", "-o", `${folder}/server.js`, file]);
  await Deno.writeTextFile(`${folder}/config.capnp`, config);
  const child = new Deno.Command(workerd, {
    args: ["serve", `${folder}/config.capnp`, "--control-fd=1"],
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  let isOver = false;
  const over = child.status.then(() => isOver = true);
  const stop = async () => {
    if (!isOver) child.kill("SIGKILL");
    await over;
    await Deno.remove(folder, { recursive: true });
  };
  let text = "";
  for await (const piece of child.stdout.pipeThrough(new TextDecoderStream())) {
    text += piece;
    const { port } = /\n/.test(text) ? JSON.parse(text.split("\n")[0]) : {};
    if (port) return { url: `http://127.0.0.1:${port}/mcp`, [Symbol.asyncDispose]: stop };
  }
  await stop();
  throw new Error("Cannot serve the file: workerd ended");
}

interface Answer {
  readonly status: number;
  readonly session: string | null;
  // deno-lint-ignore no-explicit-any -- any response of the server
  readonly message: any;
}

async function post(url: string, message: object, more: Record<string, string> = {}): Promise<Answer> {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream", ...more };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(message) });
  const text = await response.text();
  return {
    status: response.status,
    session: response.headers.get("mcp-session-id"),
    message: text ? JSON.parse(text) : undefined,
  };
}

await using worker = await start(Deno.args[0] ?? "examples/calc.ts");
const { url } = worker;
const add = { name: "add", arguments: { a: 20, b: 22 } };
const sum = [{ type: "text", text: "42" }];

const prefix = "io.modelcontextprotocol/";
const _meta = { [`${prefix}protocolVersion`]: "2026-07-28", [`${prefix}clientCapabilities`]: {} };
const modern = await post(url, { jsonrpc: "2.0", id: 1, method: "tools/call", params: { ...add, _meta } }, {
  "mcp-protocol-version": "2026-07-28",
  "mcp-method": "tools/call",
  "mcp-name": "add",
});
assertEquals([modern.status, modern.message.result?.content], [200, sum], JSON.stringify(modern));

const clientInfo = { name: "c", version: "1" };
const offer = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
const hello = await post(url, { jsonrpc: "2.0", id: 1, method: "initialize", params: offer });
assertEquals([hello.status, hello.message.result?.protocolVersion], [200, "2025-11-25"], JSON.stringify(hello));
const session = { "mcp-session-id": hello.session ?? "", "mcp-protocol-version": "2025-11-25" };
const ready = await post(url, { jsonrpc: "2.0", method: "notifications/initialized" }, session);
assertEquals(ready.status, 202);
const legacy = await post(url, { jsonrpc: "2.0", id: 2, method: "tools/call", params: add }, session);
assertEquals([legacy.status, legacy.message.result?.content], [200, sum], JSON.stringify(legacy));

// On other runtimes, large bodies wait in a queue. In workerd, a request must not wait for another request.
const listed = await Promise.all(Array.from({ length: 6 }, (_, i) =>
  post(url, {
    jsonrpc: "2.0",
    id: i,
    method: "tools/call",
    params: { ...add, _meta: { ..._meta, filler: "x".repeat(i % 2 ? 200_000 : 40_000) } },
  }, { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "add" })));
assertEquals(listed.map(({ status }) => status), [200, 200, 200, 200, 200, 200]);

console.log(`workerd ${VERSION} serves clients of the modern and of the legacy era, and large bodies`);
console.log("3 passed, 0 failed");
