// Limits of tenants apply to all instances together.
import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import process from "node:process";
import { DatabaseSync } from "node:sqlite";
import { createServer } from "../../mod.ts";
import { INTERNALS } from "../../src/core/call/internals.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { customStore, memoryStore, type Store, type StoreOptions } from "../../src/stores/stores.ts";
import { McpError } from "../../src/testing/testing.ts";
import { until } from "../support/behaviour.ts";
import { createLosable, wrapEngine } from "../support/engines.ts";
import { startTenantInstance, type TenantInstance, toHeld, type Way } from "../support/tenant_instance.ts";

/** A lease that outlasts the delays of a busy machine, and a lease that outlasts the test. */
const LEASE_MS = 1500;
const LONG_MS = 600_000;

const folder = mkdtempSync(`${tmpdir()}/tenants-`);
let files = 0;

/** Functions that create a function which opens the same store at each call. */
const engines: Readonly<Record<string, (options?: StoreOptions) => () => Store>> = {
  memory(options) {
    const { connect } = memoryStore()[INTERNALS];
    return () => customStore(connect, { leaseMs: LEASE_MS, ...options });
  },
  SQLite(options) {
    const path = `${folder}/${files++}.db`;
    return () => sqliteStore(() => new DatabaseSync(path), { leaseMs: LEASE_MS, ...options });
  },
};

const ways: readonly Way[] = [
  { transport: "http", era: "modern" },
  { transport: "http", era: "legacy" },
  { transport: "pipe", era: "modern" },
  { transport: "pipe", era: "legacy" },
];

async function isRefused(instance: TenantInstance, tenant: string, size = 1): Promise<boolean> {
  const call = await instance.hold(tenant, size);
  if (call instanceof McpError) {
    // A large body is refused before it is read.
    const expected = size < 65_536 ? /^-31503 .*perTenant\.running/ : /^-31503 .*perTenant\.bytes|^-32600 .*memory/;
    assertMatch(`${call.code} ${call.message}`, expected);
    return true;
  }
  await call.end();
  return false;
}

const admits = async (instance: TenantInstance, tenant = "acme") => !await isRefused(instance, tenant);

for (const [engine, createEngine] of Object.entries(engines)) {
  for (const way of ways) {
    Deno.test(`three instances together run as many calls of a tenant as one instance (${engine}, ${way.era} over ${way.transport})`, async () => {
      const open = createEngine();
      const limits = { running: 3 };
      await using a = startTenantInstance(open(), limits, { way });
      await using b = startTenantInstance(open(), limits, { way });
      await using c = startTenantInstance(open(), limits, { way });
      const first = toHeld(await a.hold("acme"));
      const others = [toHeld(await a.hold("acme")), toHeld(await b.hold("acme"))];
      for (const each of [a, b, c]) {
        await until(() => isRefused(each, "acme"), "the instance has received the calls of the other instances");
      }
      for (const each of [a, b, c]) assert(await admits(each, "other"), "another tenant has its own limits");
      await first.end();
      await until(() => admits(c), "the place of a call that has ended");
      others.push(toHeld(await c.hold("acme")));
      for (const each of [a, b, c]) await until(() => isRefused(each, "acme"), "the place is taken");
      for (const each of others) await each.end();
      for (const each of [a, b, c]) await until(() => admits(each), "all have ended");
      for (const { events } of [a, b, c]) assertEquals(events, []);
    });
  }

  Deno.test(`instances together hold as many bytes of a tenant as one instance (${engine})`, async () => {
    const open = createEngine();
    const limits = { bytes: 200_000 };
    await using a = startTenantInstance(open(), limits);
    await using b = startTenantInstance(open(), limits);
    const large = toHeld(await a.hold("acme", 70_000));
    await until(() => isRefused(b, "acme", 70_000), "the instance has received the bytes of the other instance");
    assertEquals([await isRefused(b, "acme"), await isRefused(b, "other", 70_000)], [false, false]);
    await large.end();
    await until(async () => !await isRefused(b, "acme", 70_000), "the bytes are free");
  });

  Deno.test(`the share of a closing instance is released immediately (${engine})`, async () => {
    const open = createEngine({ leaseMs: LONG_MS });
    const limits = { running: 2 };
    const a = startTenantInstance(open(), limits);
    await using b = startTenantInstance(open(), limits);
    for (let i = 0; i < 2; i++) toHeld(await a.hold("acme"));
    await until(() => isRefused(b, "acme"), "the instance has received the calls of the other instance");
    await a[Symbol.asyncDispose]();
    await until(() => admits(b), "the share");
  });

  Deno.test(`the share of a disconnected instance is released when its lease has expired (${engine})`, async () => {
    let isCut = false;
    const open = createEngine();
    const { connect } = open()[INTERNALS];
    const cut = customStore(async () =>
      wrapEngine(await connect(), ({ run }) => {
        if (isCut) throw new Error("the network is gone");
        return run();
      }), { leaseMs: LEASE_MS, timeoutMs: 200 });
    const limits = { running: 2 };
    await using a = startTenantInstance(cut, limits);
    await using b = startTenantInstance(open(), limits);
    for (let i = 0; i < 2; i++) toHeld(await a.hold("acme"));
    await until(() => isRefused(b, "acme"), "the instance has received the calls of the other instance");
    isCut = true;
    await until(() => admits(b), "the share");
    assertEquals(await isRefused(a, "acme"), true, "its own limit applies");
  });
}

/** A process with an instance that runs two calls of a tenant. */
const PROGRAM = `
const { sqliteStore } = await import(${JSON.stringify(new URL("../../src/stores/sqlite.ts", import.meta.url).href)});
const { startTenantInstance } =
  await import(${JSON.stringify(new URL("../support/tenant_instance.ts", import.meta.url).href)});
const { DatabaseSync } = await import("node:sqlite");
const path = process.argv.at(-1);
const instance = startTenantInstance(sqliteStore(() => new DatabaseSync(path), { leaseMs: ${LEASE_MS} }), { running: 2 });
for (let i = 0; i < 2; i++) await instance.hold("acme");
setInterval(() => {}, 1000);
`;

Deno.test("the share of a killed process is released when its lease has expired", async () => {
  const [path, file] = [`${folder}/killed.db`, `${folder}/program.mjs`];
  writeFileSync(file, PROGRAM);
  const root = new URL("../../", import.meta.url).pathname;
  const words = "Bun" in globalThis
    ? [file]
    : ["run", "--quiet", "--no-check", "-A", "--config", `${root}deno.json`, file];
  const child = spawn(process.execPath, [...words, path], { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
  const exited = new Promise((resolve) => child.once("close", resolve));
  const store = sqliteStore(() => new DatabaseSync(path), { leaseMs: LEASE_MS });
  await using instance = startTenantInstance(store, { running: 2 });
  await until(() => isRefused(instance, "acme"), "the instance has received the calls of the process");
  child.kill("SIGKILL");
  await exited;
  await until(() => admits(instance), "the share");
});

Deno.test("without the store each instance applies the limit alone, and afterwards all instances share it again", async () => {
  const store = createLosable({ leaseMs: LEASE_MS });
  const limits = { running: 2 };
  await using a = startTenantInstance(store.open(), limits);
  await using b = startTenantInstance(store.open(), limits);
  const calls = [toHeld(await a.hold("acme")), toHeld(await a.hold("acme"))];
  await until(() => isRefused(b, "acme"), "the instance has received the calls of the other instance");
  store.isLost = true;
  await until(() => admits(b), "the calls of the other instance are forgotten");
  const local = [toHeld(await b.hold("acme")), toHeld(await b.hold("acme"))];
  for (const each of [a, b]) assert(await isRefused(each, "acme"), "each instance has its own limit");
  for (const each of local) await each.end();
  assert(await admits(b));
  store.isLost = false;
  await until(() => isRefused(b, "acme"), "the instance has received the calls of the other instance again");
  for (const each of calls) await each.end();
  for (const each of [a, b]) await until(() => admits(each), "all have ended");
  // The other instance may have had nothing to publish in the meantime.
  assertEquals(a.events.map(({ state }) => state), ["degraded", "recovered"]);
});

Deno.test("a burst exceeds the limit by at most the limit of each other instance, until the instances have received each other's counts", async () => {
  const open = engines.memory();
  const limit = 4;
  const instances = [1, 2, 3].map(() => startTenantInstance(open(), { running: limit }));
  const bursts = instances.map((each) => Promise.all(Array.from({ length: 10 }, () => each.hold("acme"))));
  const all = (await Promise.all(bursts)).map((each) => each.flatMap((call) => call instanceof McpError ? [] : call));
  const ended = all.map((each) => each.pop());
  const calls = all.flat();
  assert(calls.length + ended.length <= instances.length * limit, `${calls.length} calls`);
  // Each instance has room within its own limit until it receives the counts of the other instances.
  for (const each of ended) await each?.end();
  for (const each of instances) await until(() => isRefused(each, "acme"), "the instance has received the burst");
  for (let i = 0; i < 20; i++) for (const each of instances) assert(await isRefused(each, "acme"));
  for (const each of calls) await each.end();
  for (const each of instances) await each[Symbol.asyncDispose]();
});

Deno.test("instances with more calls than the limit allows share it evenly, and do not block each other", async () => {
  const open = engines.memory({ leaseMs: 600 });
  const limit = 4;
  const instances = [1, 2].map(() => startTenantInstance(open(), { running: limit }));
  let isOver = false;
  async function load(instance: TenantInstance) {
    while (!isOver) if (!await instance.call("work", "acme")) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const loads = instances.flatMap((each) => Array.from({ length: 6 }, () => load(each)));
  // A second is five times as long as an instance takes to publish.
  await until(async () => {
    for (const each of instances) each.peak = 0;
    await new Promise((resolve) => setTimeout(resolve, 1000));
    return instances.every(({ peak }) => peak === limit / 2);
  }, "both instances run half of the limit");
  isOver = true;
  await Promise.all(loads);
  for (const each of instances) await each[Symbol.asyncDispose]();
});

Deno.test("large bodies that are refused at one instance do not block small calls at another instance", async () => {
  const open = engines.memory({ leaseMs: 600 });
  const limits = { bytes: 4_000_000 };
  await using a = startTenantInstance(open(), limits);
  await using b = startTenantInstance(open(), limits);
  const calls = [];
  for (let i = 0; i < 3; i++) calls.push(toHeld(await a.hold("acme", 400_000)));
  await until(() => isRefused(b, "acme", 1_000_000), "the instance has received the bytes of the other instance");
  const { accounts } = a.server[INTERNALS].engine;
  const account = accounts.find("tenant /acme/mcp");
  const half = limits.bytes / 2;
  assert(account.amount(accounts.memory) > half, `${account.amount(accounts.memory)} bytes are held`);
  // The other instance refuses a large amount continuously, and publishes this.
  const large = 300_000;
  const limit = (amount: number) => accounts.tenantLimit(accounts.memory, account, amount);
  await until(
    async () => await isRefused(b, "acme", 1_000_000) && limit(large) <= half,
    "the instance gets an equal part",
  );
  for (let i = 0; i < 20; i++) {
    assert(await isRefused(b, "acme", 1_000_000));
    assert(await admits(a));
  }
  for (const each of calls) await each.end();
});

Deno.test("calls of a tenant that was idle are published again", async () => {
  const open = engines.memory({ leaseMs: 150 });
  await using a = startTenantInstance(open(), { running: 1 });
  await using b = startTenantInstance(open(), { running: 1 });
  const { accounts } = a.server[INTERNALS].engine;
  for (let i = 0; i < 3; i++) {
    const call = toHeld(await a.hold("acme"));
    await until(() => isRefused(b, "acme"), "the instance has received the call of the other instance");
    await call.end();
    await until(() => admits(b), "the call has ended");
    assert(await admits(a));
    assertEquals(accounts.known.size, 0);
    // Long enough for an instance to detect that nothing is held.
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
});

/** Stores on one engine that count the requests to it. */
function createCounted(options: StoreOptions) {
  const { connect } = memoryStore()[INTERNALS];
  const asked: string[] = [];
  let largest = 0;
  const open = () =>
    customStore(async () =>
      wrapEngine(await connect(), ({ name, args, run }) => {
        asked.push(name);
        if (name === "append") largest = Math.max(largest, String(args[1]).length);
        return run();
      }), { pollMs: LONG_MS, ...options });
  return { open, take: () => asked.splice(0), toLargest: () => largest };
}

Deno.test("short calls send no requests to the engine, and running calls are one entry a second for all tenants", async () => {
  const { open, take } = createCounted({ leaseMs: LONG_MS });
  await using a = startTenantInstance(open(), { running: 3, bytes: 1_000_000 });
  for (const tenant of ["acme", "other"]) assert(await a.call("quick", tenant));
  await until(() => take().length === 0, "the log is followed");
  const quick = performance.now();
  while (performance.now() < quick + 1200) assert(await a.call("quick", "acme") && await a.call("quick", "other"));
  assertEquals(take(), []);
  const began = performance.now();
  const calls = [];
  for (let i = 0; i < 20; i++) calls.push(toHeld(await a.hold(`t${i}`)));
  const asked: string[] = [];
  await until(() => (asked.push(...take()), asked.includes("append")), "the calls are published");
  const known = performance.now();
  // An unchanged entry is not written again before the lease is renewed.
  await until(() => performance.now() > known + 2200, "no change");
  asked.push(...take());
  const seconds = Math.ceil((performance.now() - began) / 1000);
  const appends = asked.filter((name) => name === "append").length;
  assert(appends <= Math.min(2, seconds), `${appends} appends`);
  // The instance reads its own entry too.
  assertEquals(asked.filter((name) => name !== "append" && name !== "read"), []);
  for (const each of calls) await each.end();
  const last: string[] = [];
  await until(() => (last.push(...take()), last.includes("append")), "the end is published");
  const over = performance.now();
  await until(() => performance.now() > over + 2200, "nothing is held");
  last.push(...take());
  assertEquals(last.filter((name) => name !== "read"), ["append"]);
});

Deno.test("unchanged sums are written as often as a lease is renewed", async () => {
  const { open, take } = createCounted({ leaseMs: 600 });
  await using a = startTenantInstance(open(), { running: 3 });
  const call = toHeld(await a.hold("acme"));
  let appends = 0;
  const count = () => appends += take().filter((name) => name === "append").length;
  await until(() => count() > 0, "the call is published");
  const began = performance.now();
  appends = 0;
  await until(() => count() >= 4, "it is published again");
  const most = 1 + Math.ceil((performance.now() - began) / 200);
  assert(appends <= most, `${appends} appends, at most ${most}`);
  await call.end();
});

Deno.test("a flood of tenants is one entry of limited size, and its counts are deleted afterwards", async () => {
  const { open, take, toLargest } = createCounted({ leaseMs: LONG_MS });
  const limits = { running: 4 };
  await using a = startTenantInstance(open(), limits);
  await using b = startTenantInstance(open(), limits);
  assert(await admits(b));
  const calls = await Promise.all(
    Array.from({ length: 300 }, (_, i) => a.hold(`${"x".repeat(900)}${i}`)),
  );
  for (let i = 0; i < 4; i++) calls.push(await a.hold("acme"));
  await until(() => isRefused(b, "acme"), "the tenant at its limit is published, however many other tenants there are");
  assert(toLargest() < 100_000, `${toLargest()} characters`);
  const appends = () => take().filter((name) => name === "append").length;
  assert(appends() < 30, "there is no entry for each tenant");
  for (const each of calls) await toHeld(each).end();
  await until(() => admits(b), "all have ended");
  await until(
    () => [a, b].every(({ server }) => server[INTERNALS].engine.accounts.known.size === 0),
    "nothing is held",
  );
});

Deno.test("limits that cannot be shared are refused when the server is created", () => {
  const start = (limits: object, options: object = {}) => () => {
    createServer({ name: "t", version: "1.0.0", path: "/:tenant/mcp", limits: { perTenant: limits }, ...options });
  };
  const store = memoryStore();
  assertThrows(
    start({ running: 1, shared: true }),
    TypeError,
    "limits.perTenant.shared requires a store; set store too",
  );
  assertThrows(start({ shared: true }, { store }), TypeError, "no limit per tenant is set; set running or bytes too");
  for (const shared of ["true", 1, 0, null]) {
    assertThrows(start({ running: 1, shared }, { store }), TypeError, "it must be true or false");
  }
  for (const [name, value] of Object.entries({ running: true, bytes: false })) {
    assertThrows(start({ [name]: value }, { store }), TypeError, "it must be a number above 0");
  }
  assertThrows(start({ running: 1 }, { path: "/mcp" }), TypeError, "require path parameters, but the path is /mcp");
  start({ running: 1, shared: false })();
});

Deno.test("the files are removed", () => rmSync(folder, { recursive: true }));
