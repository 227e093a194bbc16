// `postgresStore` on a real PostgreSQL server, with each client: it fulfils the contract of a store, even if the server
// is killed, paused or emptied.
import { postgresStore } from "../../src/stores/postgres/postgres.ts";
import type { Store } from "../../src/stores/stores.ts";
import { testStore } from "../../src/testing/test_store.ts";
import { until } from "../support/behaviour.ts";
import { CLIENTS } from "../support/postgres/clients.ts";
import { missingPostgres, type PostgresServer, startPostgres } from "../support/postgres/server.ts";
import { needs } from "../support/required.ts";

/** The server for the contract tests. The first test starts it, and the last test stops it. */
let shared: PostgresServer | undefined;
let left = 0;

function testShared(name: string, fn: () => Promise<void>): void {
  left++;
  Deno.test({
    ...needs(name, missingPostgres),
    async fn() {
      shared ??= await startReady();
      try {
        await fn();
      } finally {
        if (!--left) await shared?.[Symbol.asyncDispose]();
      }
    },
  });
}

async function startReady(): Promise<PostgresServer> {
  const server = startPostgres();
  const store = postgresStore(() => CLIENTS[0].connect(server));
  await until(() => isUp(store), "the server has started");
  await store.close();
  return server;
}

async function isUp(store: Store): Promise<boolean> {
  try {
    await store.get("key");
    return true;
  } catch {
    return false;
  }
}

for (const { name, connect } of CLIENTS) {
  testStore(() => postgresStore(() => connect(shared ?? { folder: "" })), {
    test: (rule, run) => testShared(`${name} ${rule}`, run),
  });
}
