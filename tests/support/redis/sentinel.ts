// A real Redis server with a replica, and a Sentinel that replaces the server when it fails.
import { writeFileSync } from "node:fs";
import { findPorts } from "./cluster.ts";
import { startWatched } from "../watched_process.ts";
import { redisServer, startRedis } from "./server.ts";

/** The name under which Sentinel knows the servers. */
export const SERVICE = "store";

export interface SentinelSite extends AsyncDisposable {
  /** The port of Sentinel, on 127.0.0.1. */
  readonly port: number;
  /** Kills the first server, so that Sentinel makes the replica its successor. */
  killPrimary(): Promise<void>;
}

/** Starts the servers. The function returns before they accept connections. */
export async function startSentinel(): Promise<SentinelSite> {
  const [port, first, second] = await findPorts(3);
  const address = ["--bind", "127.0.0.1"];
  const primary = startRedis("--port", `${first}`, ...address);
  const replica = startRedis("--port", `${second}`, ...address, "--replicaof", "127.0.0.1", `${first}`);
  const config = `${replica.folder}/sentinel.conf`;
  writeFileSync(
    config,
    [
      `port ${port}`,
      "bind 127.0.0.1",
      `dir ${replica.folder}`,
      `sentinel monitor ${SERVICE} 127.0.0.1 ${first} 1`,
      `sentinel down-after-milliseconds ${SERVICE} 1000`,
      `sentinel failover-timeout ${SERVICE} 5000`,
    ].join("\n"),
  );
  const kill = startWatched([redisServer ?? "", config, "--sentinel"]);
  return {
    port,
    killPrimary: () => primary.kill(),
    async [Symbol.asyncDispose]() {
      await kill();
      for (const server of [primary, replica]) await server[Symbol.asyncDispose]();
    },
  };
}
