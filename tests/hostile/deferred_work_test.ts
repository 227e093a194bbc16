// Deferred work of a handler counts towards the limits of the client that called the handler.
import { assertEquals } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { gate, until } from "../support/behaviour.ts";
import { any, toCall } from "./attack.ts";

Deno.test("calls of a client with too much deferred work wait until some of the work is done, and other clients do not wait", async () => {
  const { pass, open } = gate();
  let deferred = 0;
  const later = tool({
    name: "later",
    input: any,
    run: (_, { defer }) => {
      defer(async () => {
        deferred++;
        await pass;
      });
      return "said";
    },
  });
  const quick = tool({ name: "quick", input: any, run: () => "quick" });
  const server = createServer({
    name: "deferring",
    version: "1.0.0",
    handlers: [later, quick],
    limits: { calls: { running: 16, runningPerClient: 2 } },
  });
  const call = async (name: string, hostname: string): Promise<string> => {
    const response = await server.fetch(toCall(name, { text: "x".repeat(10_000) }), { remoteAddr: { hostname } });
    return await response.text();
  };
  const { engine: { accounts: { memory }, scheduler } } = server[INTERNALS];
  for (let i = 0; i < 2; i++) await call("later", "198.51.100.1");
  await until(() => deferred === 2, "deferred work");
  assertEquals(memory.used > 20_000, true, "the parameters that the deferred work holds count");
  let isOver = false;
  const third = call("quick", "198.51.100.1").finally(() => isOver = true);
  await until(() => scheduler.waiting === 1, "a waiting call");
  assertEquals((await call("quick", "192.0.2.1")).includes('"quick"'), true);
  assertEquals(isOver, false);
  open();
  assertEquals((await third).includes('"quick"'), true);
  await server.close();
  assertEquals([memory.used, scheduler.waiting], [0, 0]);
});

Deno.test("deferred work that fails releases its memory", async () => {
  const failing = tool({
    name: "failing",
    input: any,
    run: (_, { defer }) => {
      defer(() => Promise.reject(new Error("it fails")));
      return "said";
    },
  });
  const faults: unknown[] = [];
  const server = createServer({
    name: "deferring",
    version: "1.0.0",
    handlers: [failing],
    limits: { calls: { running: 4, runningPerClient: 1 } },
    observer: { fault: ({ error }) => void faults.push(error) },
  });
  for (let i = 0; i < 20; i++) {
    const response = await server.fetch(toCall("failing"), { remoteAddr: { hostname: "198.51.100.1" } });
    assertEquals(response.status, 200);
    await response.text();
  }
  await server.close();
  const { accounts } = server[INTERNALS].engine;
  assertEquals([faults.length, accounts.memory.used, accounts.running.used, accounts.known.size], [20, 0, 0, 0]);
});
