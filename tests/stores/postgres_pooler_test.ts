// `postgresStore` behind PgBouncer, which gives each transaction any connection to the server: it fulfils the contract of
// a store without notifications.
import { assertEquals } from "@std/assert";
import { postgresStore } from "../../src/stores/postgres/postgres.ts";
import type { Store } from "../../src/stores/stores.ts";
import { testStore } from "../../src/testing/test_store.ts";
import { until } from "../support/behaviour.ts";
import { CLIENTS } from "../support/postgres/clients.ts";
import {
  type Bouncer,
  missingBouncer,
  type PostgresServer,
  startBouncer,
  startPostgres,
} from "../support/postgres/server.ts";
import { needs } from "../support/required.ts";

interface Site {
  readonly server: PostgresServer;
  readonly bouncer: Bouncer;
}

let site: Site | undefined;
/** Number of tests that have not ended. The last test stops the servers. */
let left = 0;

function test(name: string, fn: () => Promise<void>): void {
  left++;
  Deno.test({
    ...needs(`PgBouncer: ${name}`, missingBouncer),
    async fn() {
      site ??= start();
      try {
        await fn();
      } finally {
        if (!--left) {
          await site.bouncer[Symbol.asyncDispose]();
          await site.server[Symbol.asyncDispose]();
        }
      }
    },
  });
}

function start(): Site {
  const server = startPostgres();
  return { server, bouncer: startBouncer(server) };
}

async function open(kind: typeof CLIENTS[number]): Promise<Store> {
  const { folder = "", port } = site?.bouncer ?? {};
  const store = postgresStore(() => kind.connect({ folder, port, prepare: false }));
  await until(async () => {
    try {
      await store.get("key");
      return true;
    } catch {
      return false;
    }
  }, "the servers answer");
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
    const topic = kind.name.replace(".", "-");
    const store = await open(kind);
    const heard: string[] = [];
    await store.subscribe(topic, (text) => void heard.push(text));
    const other = await open(kind);
    const direct = postgresStore(() => kind.connect({ folder: site?.server.folder ?? "" }));
    await other.publish(topic, "1");
    await direct.publish(topic, "2");
    await until(() => heard.length === 2, "both texts");
    assertEquals(heard, ["1", "2"]);
    for (const each of [store, other, direct]) await each.close();
    assertEquals(site?.server.run("select setting from pg_settings where name = 'lock_timeout'"), "0");
  });
}
