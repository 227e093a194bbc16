// Per-tenant limits that all instances share.
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
import { sentence } from "../support/messages.ts";
import { startTenantInstance, type TenantInstance, toHeld, type Way } from "../support/tenant_instance.ts";

/** One lease is long enough for the delays of a busy machine. The other lease is longer than the test. */
const LEASE_MS = 1500;
const LONG_MS = 600_000;

const folder = mkdtempSync(`${tmpdir()}/tenants-`);
let files = 0;

/** By name, functions that return a function which opens the same store on each call. */
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
    // The server refuses a large body before reading it.
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
    Deno.test(`three instances together run as many calls of a tenant as one instance can (${engine}, ${way.era} over ${way.transport})`, async () => {
      const open = createEngine();
      const limits = { running: 3 };
      await using a = startTenantInstance(open(), limits, { way });
      await using b = startTenantInstance(open(), limits, { way });
      await using c = startTenantInstance(open(), limits, { way });
      const first = toHeld(await a.hold("acme"));
      const others = [toHeld(await a.hold("acme")), toHeld(await b.hold("acme"))];
      for (const each of [a, b, c]) {
        await until(() => isRefused(each, "acme"), "the instance knows the other instances' calls");
      }
      for (const each of [a, b, c]) assert(await admits(each, "other"), "a tenant's limits applied to another tenant");
      await first.end();
      await until(() => admits(c), "a call has ended and its place is free");
      others.push(toHeld(await c.hold("acme")));
      for (const each of [a, b, c]) await until(() => isRefused(each, "acme"), "the place is taken again");
      for (const each of others) await each.end();
      for (const each of [a, b, c]) await until(() => admits(each), "all have ended");
      for (const { events } of [a, b, c]) assertEquals(events, []);
    });
  }

  Deno.test(`instances together hold as many bytes of a tenant as one instance can (${engine})`, async () => {
    const open = createEngine();
    const limits = { bytes: 200_000 };
    await using a = startTenantInstance(open(), limits);
    await using b = startTenantInstance(open(), limits);
    const large = toHeld(await a.hold("acme", 70_000));
    await until(() => isRefused(b, "acme", 70_000), "the instance knows the other instance's bytes");
    assertEquals([await isRefused(b, "acme"), await isRefused(b, "other", 70_000)], [false, false]);
    await large.end();
    await until(async () => !await isRefused(b, "acme", 70_000), "the bytes are free");
  });

  Deno.test(`an instance that closes releases its share immediately (${engine})`, async () => {
    const open = createEngine({ leaseMs: LONG_MS });
    const limits = { running: 2 };
    const a = startTenantInstance(open(), limits);
    await using b = startTenantInstance(open(), limits);
    for (let i = 0; i < 2; i++) toHeld(await a.hold("acme"));
    await until(() => isRefused(b, "acme"), "the instance knows the other instance's calls");
    await a[Symbol.asyncDispose]();
    await until(() => admits(b), "the share");
  });

  Deno.test(`the share of a disconnected instance is released when the instance's lease expires (${engine})`, async () => {
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
    await until(() => isRefused(b, "acme"), "the instance knows the other instance's calls");
    isCut = true;
    await until(() => admits(b), "the share");
    assertEquals(await isRefused(a, "acme"), true, "the instance's own limit did not apply");
  });
}

/** The program of a process whose instance runs two calls of a tenant. */
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

Deno.test("the share of a killed process is released when the process's lease expires", async () => {
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
  await until(() => isRefused(instance, "acme"), "the instance knows the process's calls");
  child.kill("SIGKILL");
  await exited;
  await until(() => admits(instance), "the share");
});

Deno.test("while the store is unavailable, each instance applies the limit separately; after the recovery, all instances share the limit again", async () => {
  const store = createLosable({ leaseMs: LEASE_MS });
  const limits = { running: 2 };
  await using a = startTenantInstance(store.open(), limits);
  await using b = startTenantInstance(store.open(), limits);
  const calls = [toHeld(await a.hold("acme")), toHeld(await a.hold("acme"))];
  await until(() => isRefused(b, "acme"), "the instance knows the other instance's calls");
  store.isLost = true;
  await until(() => admits(b), "the other instance's calls no longer count");
  const local = [toHeld(await b.hold("acme")), toHeld(await b.hold("acme"))];
  for (const each of [a, b]) assert(await isRefused(each, "acme"), "an instance refused a call within its own limit");
  for (const each of local) await each.end();
  assert(await admits(b));
  store.isLost = false;
  await until(() => isRefused(b, "acme"), "the instance knows the other instance's calls again");
  for (const each of calls) await each.end();
  for (const each of [a, b]) await until(() => admits(each), "all have ended");
  // The other instance may have had nothing to publish during the outage.
  assertEquals(a.events.map(({ state }) => state), ["degraded", "recovered"]);
});

Deno.test("until the instances know each other's counts, a burst can exceed the limit by at most the limit of each other instance", async () => {
  const open = engines.memory();
  const limit = 4;
  const instances = [1, 2, 3].map(() => startTenantInstance(open(), { running: limit }));
  const bursts = instances.map((each) => Promise.all(Array.from({ length: 10 }, () => each.hold("acme"))));
  const all = (await Promise.all(bursts)).map((each) => each.flatMap((call) => call instanceof McpError ? [] : call));
  const ended = all.map((each) => each.pop());
  const calls = all.flat();
  assert(calls.length + ended.length <= instances.length * limit, `${calls.length} calls`);
  // Until an instance knows the other instances' counts, it accepts calls up to its own limit.
  for (const each of ended) await each?.end();
  for (const each of instances) {
    await until(() => isRefused(each, "acme"), "the instance knows the counts of the burst");
  }
  for (let i = 0; i < 20; i++) for (const each of instances) assert(await isRefused(each, "acme"));
  for (const each of calls) await each.end();
  for (const each of instances) await each[Symbol.asyncDispose]();
});

Deno.test("instances with more calls than the limit allows share the limit evenly, and do not block each other", async () => {
  const open = engines.memory({ leaseMs: 600 });
  const limit = 4;
  const instances = [1, 2].map(() => startTenantInstance(open(), { running: limit }));
  let isOver = false;
  async function load(instance: TenantInstance) {
    // Fixed wait: instances with more load than the limit allows are observed for a fixed time.
    while (!isOver) if (!await instance.call("work", "acme")) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const loads = instances.flatMap((each) => Array.from({ length: 6 }, () => load(each)));
  // An instance takes a fifth of a second to publish its counts.
  await until(async () => {
    for (const each of instances) each.peak = 0;
    // Fixed wait: instances with more load than the limit allows are observed for a fixed time.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    return instances.every(({ peak }) => peak === limit / 2);
  }, "each instance runs half as many calls as the limit allows");
  isOver = true;
  await Promise.all(loads);
  for (const each of instances) await each[Symbol.asyncDispose]();
});

Deno.test("large bodies that one instance refuses do not block small calls on another instance", async () => {
  const open = engines.memory({ leaseMs: 600 });
  const limits = { bytes: 4_000_000 };
  await using a = startTenantInstance(open(), limits);
  await using b = startTenantInstance(open(), limits);
  const calls = [];
  for (let i = 0; i < 3; i++) calls.push(toHeld(await a.hold("acme", 400_000)));
  await until(() => isRefused(b, "acme", 1_000_000), "the instance knows the other instance's bytes");
  const { accounts } = a.server[INTERNALS].engine;
  const account = accounts.find("tenant /acme/mcp");
  const half = limits.bytes / 2;
  assert(account.amount(accounts.memory) > half, `${account.amount(accounts.memory)} bytes are held`);
  // The other instance repeatedly refuses a large amount, and publishes this.
  const large = 300_000;
  const limit = (amount: number) => accounts.tenantLimit(accounts.memory, account, amount);
  await until(
    async () => await isRefused(b, "acme", 1_000_000) && limit(large) <= half,
    "the instance gets an equal part of the limit",
  );
  for (let i = 0; i < 20; i++) {
    assert(await isRefused(b, "acme", 1_000_000));
    assert(await admits(a));
  }
  for (const each of calls) await each.end();
});

Deno.test("when an idle tenant becomes active again, its calls are published again", async () => {
  const open = engines.memory({ leaseMs: 150 });
  await using a = startTenantInstance(open(), { running: 1 });
  await using b = startTenantInstance(open(), { running: 1 });
  const { accounts } = a.server[INTERNALS].engine;
  for (let i = 0; i < 3; i++) {
    const call = toHeld(await a.hold("acme"));
    await until(() => isRefused(b, "acme"), "the instance knows the other instance's call");
    await call.end();
    await until(() => admits(b), "the call has ended");
    assert(await admits(a));
    assertEquals(accounts.known.size, 0);
    // This delay is long enough for an instance to detect that nothing is held.
    // Fixed wait: instances with more load than the limit allows are observed for a fixed time.
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
});

/** Creates stores on one engine, and counts the requests to the engine. */
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

Deno.test("short calls send no requests to the engine, and running calls take one entry a second for all tenants", async () => {
  const { open, take } = createCounted({ leaseMs: LONG_MS });
  await using a = startTenantInstance(open(), { running: 3, bytes: 1_000_000 });
  for (const tenant of ["acme", "other"]) assert(await a.call("quick", tenant));
  await until(() => take().length === 0, "the instance is subscribed to the log");
  const quick = performance.now();
  while (performance.now() < quick + 1200) assert(await a.call("quick", "acme") && await a.call("quick", "other"));
  assertEquals(take(), []);
  const began = performance.now();
  const calls = [];
  for (let i = 0; i < 20; i++) calls.push(toHeld(await a.hold(`t${i}`)));
  const asked: string[] = [];
  await until(() => (asked.push(...take()), asked.includes("append")), "the running calls are published");
  const known = performance.now();
  // An unchanged entry is written again only when the lease is renewed.
  await until(() => performance.now() > known + 2200, "no change");
  asked.push(...take());
  const seconds = Math.ceil((performance.now() - began) / 1000);
  const appends = asked.filter((name) => name === "append").length;
  assert(appends <= Math.min(2, seconds), `${appends} appends`);
  // The instance also reads its own entry.
  assertEquals(asked.filter((name) => name !== "append" && name !== "read"), []);
  for (const each of calls) await each.end();
  const last: string[] = [];
  await until(() => (last.push(...take()), last.includes("append")), "the end of the calls is published");
  const over = performance.now();
  await until(() => performance.now() > over + 2200, "nothing is held");
  last.push(...take());
  assertEquals(last.filter((name) => name !== "read"), ["append"]);
});

Deno.test("unchanged sums are written only when a lease is renewed", async () => {
  const { open, take } = createCounted({ leaseMs: 600 });
  await using a = startTenantInstance(open(), { running: 3 });
  const call = toHeld(await a.hold("acme"));
  let appends = 0;
  const count = () => appends += take().filter((name) => name === "append").length;
  await until(() => count() > 0, "the running call is published");
  const began = performance.now();
  appends = 0;
  await until(() => count() >= 4, "the running call is published again");
  const most = 1 + Math.ceil((performance.now() - began) / 200);
  assert(appends <= most, `${appends} appends; at most ${most} are expected`);
  await call.end();
});

Deno.test("a flood of tenants writes one entry of limited size, and the tenants' counts are deleted after the flood", async () => {
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
  assert(appends() < 30, "an entry was written for each tenant");
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
  assertThrows(start({ running: 1, shared: true }), TypeError, sentence("limits.perTenant.shared"));
  assertThrows(
    start({ shared: true }, { store }),
    TypeError,
    sentence("limits.perTenant.running", "limits.perTenant.bytes"),
  );
  for (const shared of ["true", 1, 0, null]) {
    assertThrows(start({ running: 1, shared }, { store }), TypeError, sentence("limits.perTenant.shared"));
  }
  for (const [name, value] of Object.entries({ running: true, bytes: false })) {
    assertThrows(start({ [name]: value }, { store }), TypeError, sentence(`limits.perTenant.${name}`));
  }
  assertThrows(start({ running: 1 }, { path: "/mcp" }), TypeError, sentence("limits.perTenant"));
  start({ running: 1, shared: false })();
});

Deno.test("cleanup: the files are deleted", () => rmSync(folder, { recursive: true }));
