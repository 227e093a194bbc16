// Real servers of Redis that tests start, pause and kill.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import process from "node:process";

const folders = (process.env.PATH ?? "").split(":");

/** The program, or `undefined` if it is not installed. */
export const redisServer: string | undefined = folders.map((folder) => `${folder}/redis-server`).find((file) =>
  existsSync(file)
);

/** What tests that are skipped without the program append to their names. */
export const missing: string = redisServer ? "" : " (redis-server is not installed)";

/** A server. */
export interface RedisServer extends AsyncDisposable {
  /** Folder of the server, which is removed with it. */
  readonly folder: string;
  /** Path of its socket. */
  readonly socket: string;
  /** Starts it again. */
  start(): void;
  /** Ends the process at once. Without options that write to disk, its data is lost. */
  kill(): Promise<void>;
  /** Stops the process until `resume`. */
  pause(): void;
  resume(): void;
}

/** Starts a server that writes nothing to disk, unless options say so. It accepts connections a little later. */
export function startRedis(...options: readonly string[]): RedisServer {
  const folder = mkdtempSync(`${tmpdir()}/redis-`);
  const socket = `${folder}/redis.sock`;
  let running: ChildProcess | undefined;
  const server: RedisServer = {
    folder,
    socket,
    start() {
      const words = ["--port", "0", "--unixsocket", socket, "--dir", folder, "--save", "", "--loglevel", "warning"];
      running = spawn(redisServer ?? "", [...words, ...options], { stdio: "ignore" });
    },
    async kill() {
      const child = running;
      running = undefined;
      if (!child) return;
      const exited = new Promise((resolve) => child.once("exit", resolve));
      process.kill(child.pid ?? 0, "SIGKILL");
      await exited;
    },
    // `kill` of Deno's child processes sends one signal only.
    pause: () => void process.kill(running?.pid ?? 0, "SIGSTOP"),
    resume: () => void process.kill(running?.pid ?? 0, "SIGCONT"),
    async [Symbol.asyncDispose]() {
      await server.kill();
      rmSync(folder, { recursive: true });
    },
  };
  server.start();
  return server;
}
