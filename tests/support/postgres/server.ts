// Real PostgreSQL servers that tests start, pause and kill.
import { execFileSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import process from "node:process";
import { startWatched } from "../watched_process.ts";

/** Returns the folder of the newest version's programs. Debian does not put this folder into the path. */
function findPrograms(): string | undefined {
  const root = "/usr/lib/postgresql";
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [...versions.map((version) => `${root}/${version}/bin`), ...(process.env.PATH ?? "").split(":")];
  return folders.find((folder) => existsSync(`${folder}/initdb`) && existsSync(`${folder}/postgres`));
}

const programs = findPrograms();

/** The reason why tests that need PostgreSQL cannot run; `undefined` if they can run. */
export const missingPostgres: string | undefined = programs ? undefined : "postgresql is not installed";

/** A PostgreSQL server process. Disposing kills it and removes its folder. */
export interface PostgresServer extends AsyncDisposable {
  /** The folder of the server's Unix socket, which is removed on disposal. */
  readonly folder: string;
  /** Starts the process again after `kill`. */
  start(): void;
  /** Kills the process and its children immediately, as a crash does. Committed data is kept. */
  kill(): Promise<void>;
  /** Suspends all processes until `resume`. */
  pause(): void;
  resume(): void;
  /** Runs SQL as the administrator. Returns the first column of all rows. */
  run(sql: string, options?: { readonly database?: string }): string;
}

// A suspended process would not react to SIGQUIT, with which PostgreSQL ends all its processes at once.
const KILL = "kill -QUIT $server; kill -CONT $server $(ps -o pid= --ppid $server)";

// PostgreSQL and PgBouncer refuse to run as root.
const isRoot = process.getuid?.() === 0;
const asUser = isRoot ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] : [];

/** Creates a folder that belongs to the user of the servers. */
function makeFolder(prefix: string): string {
  const folder = mkdtempSync(`${tmpdir()}/${prefix}-`);
  if (isRoot) {
    const toId = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
    chownSync(folder, toId("-u"), toId("-g"));
  }
  return folder;
}

/** The options of all servers. A killed process loses nothing without fsync, but a killed machine would. */
const OPTIONS = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=400", "-c", "log_statement=none"];

/** Creates a database, and starts a server. The function returns before the server accepts connections. */
export function startPostgres(...options: readonly string[]): PostgresServer {
  const folder = makeFolder("postgres");
  const data = `${folder}/data`;
  const initdb = [`${programs}/initdb`, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"];
  const [command, ...args] = [...asUser, ...initdb];
  execFileSync(command, args, { stdio: "ignore" });
  let kill: (() => Promise<void>) | undefined;
  /** Returns the ids of the main process and its children. */
  const listIds = () => {
    const [main] = readFileSync(`${data}/postmaster.pid`, "utf8").split("\n");
    const found = execFileSync("ps", ["-o", "pid=", "--ppid", main], { encoding: "utf8" });
    return [main, ...found.trim().split(/\s+/)].map(Number);
  };
  const signalAll = (signal: "SIGSTOP" | "SIGCONT") => {
    for (const id of listIds()) {
      try {
        process.kill(id, signal);
      } catch (error) {
        // A worker of the server may have ended in the meantime.
        if (Object(error).code !== "ESRCH") throw error;
      }
    }
  };
  const server: PostgresServer = {
    folder,
    start() {
      kill = startWatched([...asUser, `${programs}/postgres`, "-D", data, "-k", folder, ...OPTIONS, ...options], KILL);
    },
    async kill() {
      const end = kill;
      kill = undefined;
      await end?.();
    },
    pause: () => signalAll("SIGSTOP"),
    resume: () => signalAll("SIGCONT"),
    run: (sql, { database = "postgres" } = {}) =>
      execFileSync(`${programs}/psql`, ["-h", folder, "-U", "postgres", "-d", database, "-Atqc", sql], {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
      }).trim(),
    async [Symbol.asyncDispose]() {
      await server.kill();
      rmSync(folder, { recursive: true });
    },
  };
  server.start();
  return server;
}

const bouncer = ["/usr/sbin", ...(process.env.PATH ?? "").split(":")].map((folder) => `${folder}/pgbouncer`)
  .find((file) => existsSync(file));

/** The reason why tests that need PgBouncer cannot run; `undefined` if they can run. */
export const missingBouncer: string | undefined = missingPostgres ??
  (bouncer ? undefined : "pgbouncer is not installed");

/** A PgBouncer process. Disposing kills it and removes its folder. */
export interface Bouncer extends AsyncDisposable {
  /** The folder of the socket. */
  readonly folder: string;
  /** The number in the name of the socket. */
  readonly port: number;
}

/** Starts PgBouncer in front of a server. Each transaction can run on another connection to the server. */
export function startBouncer({ folder: host }: PostgresServer): Bouncer {
  const folder = makeFolder("pgbouncer");
  const port = 6432;
  writeFileSync(
    `${folder}/pgbouncer.ini`,
    [
      "[databases]",
      `* = host=${host} port=5432 user=postgres`,
      "[pgbouncer]",
      "listen_addr =",
      `listen_port = ${port}`,
      `unix_socket_dir = ${folder}`,
      "pool_mode = transaction",
      "server_login_retry = 1",
      "default_pool_size = 3",
      "auth_type = any",
    ].join("\n"),
  );
  const kill = startWatched([...asUser, bouncer ?? "", "-q", `${folder}/pgbouncer.ini`]);
  return {
    folder,
    port,
    async [Symbol.asyncDispose]() {
      await kill();
      rmSync(folder, { recursive: true });
    },
  };
}
