// Real Redis servers that tests start, pause and kill.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import process from "node:process";
import { startWatched } from "../watched_process.ts";

const folders = (process.env.PATH ?? "").split(":");

/** The path of the Redis server program; `undefined` if Redis is not installed. */
export const redisServer: string | undefined = folders.map((folder) => `${folder}/redis-server`).find((file) =>
  existsSync(file)
);

/** The reason why tests that need Redis cannot run; `undefined` if they can run. */
export const missingRedis: string | undefined = redisServer ? undefined : "redis-server is not installed";

/** A Redis server process. Disposing kills it and removes its folder. */
export interface RedisServer extends AsyncDisposable {
  /** The server's folder, which is removed on disposal. */
  readonly folder: string;
  /** The path of the server's Unix socket. */
  readonly socket: string;
  /** Starts the process again after `kill`. */
  start(): void;
  /** Kills the process immediately. Data is lost unless the options make the server write to disk. */
  kill(): Promise<void>;
  /** Suspends the process until `resume`. */
  pause(): void;
  resume(): void;
}

/**
 * Starts a server that writes nothing to disk, unless options change this. The function returns before the server
 * accepts connections.
 */
export function startRedis(...options: readonly string[]): RedisServer {
  const folder = mkdtempSync(`${tmpdir()}/redis-`);
  const [socket, pidFile] = [`${folder}/redis.sock`, `${folder}/redis.pid`];
  let kill: (() => Promise<void>) | undefined;
  const server: RedisServer = {
    folder,
    socket,
    start() {
      const words = ["--port", "0", "--unixsocket", socket, "--dir", folder, "--save", "", "--loglevel", "warning"];
      kill = startWatched([redisServer ?? "", ...words, ...options, "--pidfile", pidFile]);
    },
    async kill() {
      const end = kill;
      kill = undefined;
      await end?.();
    },
    pause: () => void process.kill(Number(readFileSync(pidFile, "utf8")), "SIGSTOP"),
    resume: () => void process.kill(Number(readFileSync(pidFile, "utf8")), "SIGCONT"),
    async [Symbol.asyncDispose]() {
      await server.kill();
      rmSync(folder, { recursive: true });
    },
  };
  server.start();
  return server;
}
