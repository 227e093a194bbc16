// Serves a file for the official conformance suite. Deno only.
import { install } from "../release/npm_install.ts";
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { findFreePort } from "../support/processes.ts";

export type Runtime = "deno" | "bun" | "node";

/** Throws if an option does not name a runtime. */
export function readRuntime(runtime: string | undefined): Runtime | undefined {
  if (runtime === undefined || runtime === "deno" || runtime === "bun" || runtime === "node") return runtime;
  throw new Error(`Cannot serve under "${runtime}": the runtimes are deno, bun and node`);
}

export interface Served extends AsyncDisposable {
  readonly url: string;
}

/**
 * Installs the npm package into a project. Returns the command that serves a file in this project on the oldest
 * supported Node.
 */
async function installOnNode(
  folder: string,
  { file, port }: { readonly file: string; readonly port: number },
): Promise<readonly string[]> {
  const found = await findNode(NODE_VERSIONS[0]);
  if ("missing" in found) throw new Error(found.missing);
  const installed = await install(folder, `${folder}/project`);
  const served = `${folder}/project/${file.replace(/^.*\//, "")}`;
  await Deno.copyFile(file, served);
  return [found.path, `${installed}/bin.js`, served, "--http", "--port", String(port)];
}

/**
 * Serves the server file, and waits until the server responds. `more` are further environment variables. Disposing the
 * result ends the process.
 */
export async function serve(runtime: Runtime, file: string, more?: Readonly<Record<string, string>>): Promise<Served> {
  const port = findFreePort();
  // On Node, the file imports the npm package.
  const folder = runtime === "node" ? await Deno.makeTempDir({ prefix: "mcp-conformance-" }) : undefined;
  const [command, ...args] = folder !== undefined
    ? await installOnNode(folder, { file, port })
    : runtime === "deno"
    ? ["deno", "serve", "-q", "-A", "--host", "127.0.0.1", "--port", String(port), file]
    : ["bun", file];
  const child = new Deno.Command(command, {
    args,
    env: { PORT: String(port), BUN_PORT: String(port), NO_COLOR: "1", ...more },
    stdin: "null",
    stdout: "null",
    stderr: "inherit",
  }).spawn();
  let exited = false;
  const status = child.status.then(() => exited = true);
  const server: Served = {
    url: `http://127.0.0.1:${port}/mcp`,
    async [Symbol.asyncDispose]() {
      if (!exited) child.kill("SIGTERM");
      const late = setTimeout(() => child.kill("SIGKILL"), 3_000); // Kill the process if it has not ended after 3 s, because a closing server can wait for open streams.
      await status;
      clearTimeout(late);
      if (folder !== undefined) await Deno.remove(folder, { recursive: true });
    },
  };
  const end = Date.now() + 30_000;
  while (Date.now() < end && !exited) {
    const response = await fetch(server.url).catch(() => undefined);
    await response?.body?.cancel();
    if (response) return server;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await server[Symbol.asyncDispose]();
  throw new Error(`Cannot serve ${file} under ${runtime}: it ${exited ? "ended" : "did not answer"}`);
}
