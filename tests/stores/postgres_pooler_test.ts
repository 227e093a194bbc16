// `postgresStore` behind PgBouncer, which gives each transaction any connection to the server: it fulfils the contract of
// a store without notifications.
import { assertEquals } from "@std/assert";
import { postgresStore } from "../../src/stores/postgres/postgres.ts";
import type { Store } from "../../src/stores/stores.ts";
import { testStore } from "../../src/testing/test_store.ts";
import { until } from "../support/behaviour.ts";
import { CLIENTS, startReady } from "../support/postgres/clients.ts";
import { type Bouncer, missingBouncer, type PostgresServer, startBouncer } from "../support/postgres/server.ts";
import { isUp, SharedServer } from "../support/store_servers.ts";

interface Site extends AsyncDisposable {
  readonly server: PostgresServer;
  readonly bouncer: Bouncer;
}

const shared = new SharedServer<Site>(async () => {
  // If PostgreSQL is not ready, PgBouncer waits for a second before it connects again.
  const server = await startReady();
  const bouncer = startBouncer(server);
  return {
    server,
    bouncer,
    async [Symbol.asyncDispose]() {
      await bouncer[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}, missingBouncer);

const test = (name: string, fn: () => Promise<void>) => shared.test(`PgBouncer: ${name}`, fn);

async function open(kind: typeof CLIENTS[number]): Promise<Store> {
  const { folder, port } = shared.running.bouncer;
  const store = postgresStore(() => kind.connect({ folder, port, prepare: false }));
  await until(() => isUp(store), "the servers answer");
  return store;
}

for (const kind of CLIENTS) {
  testStore(() => open(kind), {
    test(rule, run) {
      // This rule uses a timeout of 300 ms, but the engine waits longer for its own notification.
      if (!rule.includes("an operation times out")) test(`${kind.name} ${rule}`, run);
    },
  });

  test(`${kind.name}: a change arrives by polling, also when it was published without PgBouncer`, async () => {
    const { server } = shared.running;
    const topic = kind.name.replace(".", "-");
    const store = await open(kind);
    const heard: string[] = [];
    await store.subscribe(topic, (text) => void heard.push(text));
    const other = await open(kind);
    const direct = postgresStore(() => kind.connect(server));
    await other.publish(topic, "1");
    await direct.publish(topic, "2");
    await until(() => heard.length === 2, "both texts");
    assertEquals(heard, ["1", "2"]);
    for (const each of [store, other, direct]) await each.close();
    assertEquals(server.run("select setting from pg_settings where name = 'lock_timeout'"), "0");
  });
}
