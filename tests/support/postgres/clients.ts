// The PostgreSQL clients that the store supports, each created as its documentation describes.
import { type PostgresClient, postgresStore } from "../../../src/stores/postgres/postgres.ts";
import { until } from "../behaviour.ts";
import { isUp } from "../store_servers.ts";
import { type PostgresServer, startPostgres } from "./server.ts";

/** A PostgreSQL client library. */
export interface ClientKind {
  readonly name: string;
  connect(place: Place): Promise<PostgresClient>;
}

/** The address of a database. */
export interface Place {
  /** The folder of the server's Unix socket. */
  readonly folder: string;
  /** The number in the name of the socket. Defaults to 5432. */
  readonly port?: number;
  /** Defaults to `postgres`. */
  readonly database?: string;
  /** Defaults to `postgres`. */
  readonly user?: string;
  /** Whether postgres.js prepares statements. Defaults to `true`. Old versions of PgBouncer need `false`. */
  readonly prepare?: boolean;
  /** The maximum number of connections of a pool. Defaults to 4, because a busy machine opens connections slowly. */
  readonly max?: number;
}

/** The PostgreSQL clients. */
export const CLIENTS: readonly ClientKind[] = [
  {
    name: "pg",
    async connect({ folder, port = 5432, database = "postgres", user = "postgres", max = 4 }) {
      const { default: { Pool } } = await import("pg");
      return new Pool({ host: folder, port, database, user, max });
    },
  },
  {
    name: "postgres.js",
    async connect({ folder, port = 5432, database = "postgres", user = "postgres", max = 4, prepare = true }) {
      const { default: postgres } = await import("postgres");
      return postgres({ path: `${folder}/.s.PGSQL.${port}`, database, user, max, prepare });
    },
  },
];

/** Starts a server, and waits until it accepts connections. */
export async function startReady(): Promise<PostgresServer> {
  const server = startPostgres();
  const store = postgresStore(() => CLIENTS[0].connect(server));
  await until(() => isUp(store), "the server has started");
  await store.close();
  return server;
}
