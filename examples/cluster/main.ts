// Starts Redis, three instances of server.ts, and a round-robin proxy. Ctrl-C stops everything. If an instance is
// killed, its clients continue with the remaining instances.
//
// deno run -A examples/cluster/main.ts [port]
import { Buffer } from "node:buffer";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttpServer, request } from "node:http";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import process from "node:process";

const RUNTIMES = ["deno", "bun", "deno"];
const here = new URL("./", import.meta.url).pathname;
const tool = new URL("../../mod.ts", import.meta.url).pathname;
const folder = mkdtempSync(`${tmpdir()}/mcp-cluster-`);

/** Functions that stop the started processes and servers. The function that was added last is called first. */
const stops: (() => void)[] = [() => rmSync(folder, { recursive: true, force: true })];

function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject).listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}

interface Started {
  readonly pid: number;
  readonly isAlive: () => boolean;
}

/**
 * Waits until a program accepts connections. There is no time limit, because a runtime downloads packages at its first
 * start.
 */
async function untilListening(port: number, what: string, { isAlive }: Started): Promise<void> {
  const isListening = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1").once("connect", () => resolve(true)).once(
        "error",
        () => resolve(false),
      );
      socket.once("connect", () => socket.destroy());
    });
  while (!await isListening()) {
    if (!isAlive()) throw new Error(`Cannot start ${what}: the program has ended; see its errors above`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function start(command: string, args: readonly string[], env: Record<string, string> = {}): Started {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["ignore", "ignore", "pipe"] });
  let isAlive = true;
  let errors = "";
  child.stderr.on("data", (text) => errors += text);
  // Not `exit`, after which a part of the errors may still arrive.
  child.once("close", (code) => {
    isAlive = false;
    if (code) console.error(errors);
  });
  child.once("error", (error) => fail(`Cannot start ${command}: ${error.message}; install it and try again`));
  stops.push(() => void (isAlive && child.kill("SIGTERM")));
  return { pid: child.pid ?? 0, isAlive: () => isAlive };
}

function stop(code: number): never {
  for (const each of stops.reverse()) each();
  process.exit(code);
}

function fail(text: string): never {
  console.error(text);
  stop(1);
}

interface Instance extends Started {
  readonly name: string;
  readonly port: number;
}

async function startInstance(runtime: string, number: number, env: Record<string, string>): Promise<Instance> {
  const port = await findFreePort();
  const name = `instance ${number} on ${runtime}`;
  const command = [...runtime === "deno" ? ["run", "-A", "--quiet"] : [], tool, `${here}server.ts`];
  const started = start(runtime, [...command, "--http", "--port", `${port}`], { ...env, INSTANCE: name });
  await untilListening(port, name, started);
  return { ...started, name, port };
}

/** Sends each request to the next running instance, and prints the instance's name. */
function startProxy(instances: readonly Instance[], port: number): Promise<number> {
  let turn = 0;
  const proxy = createHttpServer(async (incoming, outgoing) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const living = instances.filter(({ isAlive }) => isAlive());
    if (!living.length) return void outgoing.writeHead(502).end("no instance is alive");
    const { name, port } = living[turn++ % living.length];
    const { method, url: path, headers } = incoming;
    console.log(`${method} ${headers["mcp-method"] ?? ""} → ${name}`);
    const forwarded = request({ host: "127.0.0.1", port, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
      answer.once("error", () => outgoing.destroy());
    });
    forwarded.once("error", () => outgoing.headersSent ? outgoing.destroy() : outgoing.writeHead(502).end());
    // Destroy the forwarded request when the client disconnects, so that the instance cancels the call.
    outgoing.once("close", () => forwarded.destroy());
    forwarded.end(Buffer.concat(chunks));
  });
  return new Promise((resolve, reject) => {
    proxy.once("error", reject).listen(port, "127.0.0.1", () => {
      const address = proxy.address();
      resolve(typeof address === "object" && address ? address.port : port);
    });
  });
}

process.once("SIGINT", () => stop(0));
process.once("SIGTERM", () => stop(0));

const redisPort = await findFreePort();
const redis = start("redis-server", ["--port", `${redisPort}`, "--bind", "127.0.0.1", "--dir", folder, "--save", ""]);
await untilListening(redisPort, "Redis", redis).catch((error) => fail(error.message));

const env = { REDIS_URL: `redis://127.0.0.1:${redisPort}`, MCP_SECRET: crypto.randomUUID() };
const starting = RUNTIMES.map((runtime, i) => startInstance(runtime, i + 1, env));
const instances = await Promise.all(starting).catch((error) => fail(error.message));

const port = await startProxy(instances, Number(process.argv[2] ?? 8000)).catch((error) => fail(error.message));
const url = `http://127.0.0.1:${port}/mcp`;
console.log(`Three instances of a server behind ${url}:
${instances.map(({ name, pid }) => `  ${name}, process ${pid}`).join("\n")}

Try, in another terminal:
  deno run -A mod.ts call ${url} add item=milk key=1
  deno run -A mod.ts call ${url} add item=milk key=1      adds nothing, on whatever instance
  deno run -A mod.ts call ${url} suggest                  the answer may reach another instance
  deno run -A mod.ts read ${url} list://shopping
  deno run -A mod.ts call ${url} order                    a task, which survives the kill
  kill -9 ${instances[1].pid}                             nobody misses it

Press Ctrl-C to stop all.`);
