// Bundles a file, and serves the bundle in workerd, the runtime of Workers. workerd is installed into the folder for
// temporary files.
import { findPackages } from "../support/npm_packages.ts";

export const VERSION = "1.20261117.1";
const root = new URL("../../", import.meta.url).pathname;

/** How a file is served. */
export interface WorkerOptions {
  /** The variables of the Worker. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Whether the file exports the class of a Durable Object, `McpObject`, which has the binding `MCP`. */
  readonly hasObjects?: boolean;
}

export interface Worker extends AsyncDisposable {
  /** The origin, such as `http://127.0.0.1:40123`. */
  readonly origin: string;
}

/** Returns the path of workerd. */
async function install(): Promise<string> {
  const found = await findPackages("workerd", [`workerd@${VERSION}`]);
  if ("missing" in found) throw new Error(found.missing);
  return `${found.folder}/node_modules/workerd/bin/workerd`;
}

function toConfig({ variables = {}, hasObjects = false }: WorkerOptions): string {
  const bindings = Object.entries(variables).map(([name, text]) =>
    `(name = "${name}", text = ${JSON.stringify(text)})`
  );
  if (hasObjects) bindings.push('(name = "MCP", durableObjectNamespace = "McpObject")');
  const objects = `
  durableObjectNamespaces = [(className = "McpObject", uniqueKey = "objects")],
  durableObjectStorage = (inMemory = void),`;
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .worker)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [(name = "server.js", esModule = embed "server.js")],
  compatibilityDate = "2026-11-17",${hasObjects ? objects : ""}
  bindings = [${bindings.join(", ")}],
);
`;
}

async function bundle(file: string, target: string): Promise<void> {
  const args = ["bundle", "--quiet", "--no-check", "--platform=browser", "--external=cloudflare:workers"];
  const command = new Deno.Command(Deno.execPath(), { args: [...args, "-o", target, file], cwd: root });
  const { success, stderr } = await command.output();
  if (!success) throw new Error(`Cannot bundle ${file}:\n${new TextDecoder().decode(stderr)}`);
}

/** Bundles a file, and serves the bundle on a free port of 127.0.0.1. Throws with the output of a Worker that fails. */
export async function serveWorker(file: string, options: WorkerOptions = {}): Promise<Worker> {
  const workerd = await install();
  const folder = await Deno.makeTempDir({ prefix: "workerd-" });
  await bundle(file, `${folder}/server.js`);
  await Deno.writeTextFile(`${folder}/config.capnp`, toConfig(options));
  const child = new Deno.Command(workerd, {
    args: ["serve", `${folder}/config.capnp`, "--control-fd=1"],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  // Read everything that workerd writes, because it waits if a pipe is full.
  const errors = new Response(child.stderr).text();
  let isOver = false;
  const over = child.status.then(() => isOver = true);
  const stop = async () => {
    if (!isOver) child.kill("SIGKILL");
    await over;
    await Deno.remove(folder, { recursive: true });
    return await errors;
  };
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  readPort(child.stdout, resolve);
  const port = await promise;
  if (port === undefined) throw new Error(`Cannot serve ${file}: workerd ended:\n${await stop()}`);
  return { origin: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: async () => void await stop() };
}

/** Calls `found` with the port of the socket, or with `undefined` if the output ends. Reads the output to its end. */
async function readPort(
  output: ReadableStream<Uint8Array<ArrayBuffer>>,
  found: (port?: number) => void,
): Promise<void> {
  let text = "";
  for await (const piece of output.pipeThrough(new TextDecoderStream())) {
    text += piece;
    const lines = text.split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) {
      const { port } = /^\{/.test(line) ? JSON.parse(line) : {};
      if (port) found(port);
    }
  }
  found();
}
