// A real cluster of three Redis nodes.
import { execFileSync } from "node:child_process";
import { createServer } from "node:net";
import { until } from "../behaviour.ts";
import { type RedisServer, startRedis } from "./server.ts";

export interface RedisCluster extends AsyncDisposable {
  /** The ports of the nodes, on 127.0.0.1. */
  readonly ports: readonly number[];
  readonly nodes: readonly RedisServer[];
}

/** Starts three nodes, and joins them into a cluster. */
export async function startCluster(): Promise<RedisCluster> {
  const [first, second, third, ...buses] = await findPorts(6);
  const ports = [first, second, third];
  const nodes = ports.map((port, i) =>
    startRedis(
      ...["--port", `${port}`, "--bind", "127.0.0.1"],
      ...["--cluster-enabled", "yes", "--cluster-port", `${buses[i]}`, "--cluster-node-timeout", "2000"],
    )
  );
  for (const port of ports) await until(() => ask(port, "ping").includes("PONG"), "a node has started");
  ask(ports[0], "--cluster", "create", ...ports.map((port) => `127.0.0.1:${port}`), "--cluster-yes");
  for (const port of ports) {
    await until(() => ask(port, "cluster", "info").includes("cluster_state:ok"), "the nodes have joined");
  }
  return {
    ports,
    nodes,
    async [Symbol.asyncDispose]() {
      for (const node of nodes) await node[Symbol.asyncDispose]();
    },
  };
}

function ask(port: number, ...words: readonly string[]): string {
  const isTool = words[0] === "--cluster";
  try {
    const args = isTool ? words : ["-p", `${port}`, ...words];
    return execFileSync("redis-cli", args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    if (isTool) throw error;
    return ""; // The node has not started yet.
  }
}

/** Returns ports that are currently free. */
export async function findPorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  await Promise.all(servers.map((server) => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))));
  const ports = servers.map((server) => {
    const address = server.address();
    return typeof address === "object" ? address?.port ?? 0 : 0;
  });
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
