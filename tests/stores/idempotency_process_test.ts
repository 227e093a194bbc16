// Idempotency keys across processes, one of which is killed while its handler runs.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import process from "node:process";
import { tmpdir } from "node:os";
import { DatabaseSync } from "node:sqlite";
import { McpError } from "../../mod.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { until } from "../support/behaviour.ts";
import { startCounter } from "../support/counter.ts";
import { sentence } from "../support/messages.ts";

const folder = mkdtempSync(`${tmpdir()}/idempotency-`);
const LEASE_MS = 500;

/** The program of an instance that calls both tools, whose handlers never end. */
const PROGRAM = `
const path = process.argv.at(-1);
const { sqliteStore } = await import(${JSON.stringify(new URL("../../src/stores/sqlite.ts", import.meta.url).href)});
const { startCounter } = await import(${JSON.stringify(new URL("../support/counter.ts", import.meta.url).href)});
const { connectTest } = await import(${JSON.stringify(new URL("../../src/testing/testing.ts", import.meta.url).href)});
const { DatabaseSync } = await import("node:sqlite");
const store = sqliteStore(() => new DatabaseSync(path), { leaseMs: ${LEASE_MS} });
const server = startCounter(store, () => {
  console.log("counted");
  return new Promise(() => {});
});
const client = await connectTest(server, { principal: { id: "ada" }, timeoutMs: 60_000 });
for (const name of ["count", "once"]) client.callTool(name, { key: "a" }).catch(() => {});
`;

/** Starts the program on the current runtime. */
function start(path: string) {
  const file = `${folder}/program.mjs`;
  writeFileSync(file, PROGRAM);
  const root = new URL("../../", import.meta.url).pathname;
  const words = "Bun" in globalThis
    ? [file]
    : ["run", "--quiet", "--no-check", "-A", "--config", `${root}deno.json`, file];
  const child = spawn(process.execPath, [...words, path], { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
  const state = { text: "" };
  child.stdout.on("data", (bytes) => state.text += bytes);
  return { child, state, exited: new Promise((resolve) => child.once("close", resolve)) };
}

Deno.test("after a process was killed, the outcome of a call is unknown, or the call runs again without doubling its effect", async () => {
  const path = `${folder}/shared.db`;
  const { child, state, exited } = start(path);
  const store = sqliteStore(() => new DatabaseSync(path), { leaseMs: LEASE_MS });
  const server = startCounter(store, () => {});
  await using client = await connectTest(server, { principal: { id: "ada" } });
  await until(() => state.text.split("counted").length === 3, "both handlers run");
  const waiting = client.callTool("count", { key: "a" });
  const failing = assertRejects(() => client.callTool("once", { key: "a" }), McpError, sentence("a"));
  child.kill("SIGKILL");
  const killed = performance.now();
  await exited;
  // The killed process caused its effect, and the second run has not doubled it.
  assertEquals((await waiting).structuredContent, { count: 1 });
  assertEquals((await failing).code, -31409);
  assert(performance.now() - killed < 10_000);
  for (const key of ["a", "b", "b"]) {
    const { structuredContent } = await client.callTool("count", { key });
    assertEquals(structuredContent, { count: key === "a" ? 1 : 2 });
  }
  await assertRejects(() => client.callTool("once", { key: "a" }), McpError, sentence("a"));
  assertEquals((await client.callTool("once", { key: "b" })).structuredContent, { count: 2 });
  await server.close();
  rmSync(folder, { recursive: true });
});
