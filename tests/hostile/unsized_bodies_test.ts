// Bodies that do not declare their length.
import { assert, assertEquals } from "@std/assert";
import { tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { until } from "../support/behaviour.ts";
import { as, start, toCall, toSlowCall } from "./attack.ts";

const handlers = [tool({ name: "quick", run: () => "" })];

Deno.test("a body without a declared length is charged from its first byte, and a slow body also for the runtime's buffer", async () => {
  const server = start({ handlers });
  const { memory } = server[INTERNALS].engine.accounts;
  const { request, write, abort } = toSlowCall("quick");
  const answer = server.fetch(request, as("eve"));
  write(1);
  await until(() => memory.used > 0, "it is charged");
  assert(memory.used <= 1024, `${memory.used} bytes are charged for one byte`);
  await until(() => memory.used >= 196_608, "it is slow");
  write(2000);
  await until(() => memory.used >= 196_608 + 2001, "its buffer grows");
  abort();
  await (await answer).text();
  assertEquals(memory.used, 0);
  await server.close();
});

Deno.test("thousands of one-byte bodies do not use more memory than the client's limit", async () => {
  const server = start({ handlers, limits: { memory: { bytes: 4_000_000, bytesPerClient: 1_000_000 } } });
  const { accounts } = server[INTERNALS].engine;
  const slow = Array.from({ length: 2000 }, () => toSlowCall("quick"));
  const statuses: number[] = [];
  const answers = slow.map(async ({ request, write }) => {
    const answer = server.fetch(request, as("eve"));
    write(1);
    const response = await answer;
    statuses.push(response.status);
    await response.text();
  });
  await until(() => statuses.length >= 1990, "most are refused");
  assert(accounts.memory.used <= 1_000_000, `${accounts.memory.used}`);
  assertEquals(new Set(statuses), new Set([503]));
  const ada = await server.fetch(toCall("quick"), as("ada"));
  assertEquals(ada.status, 200, await ada.text());
  for (const { abort } of slow) abort();
  await Promise.all(answers);
  await server.close();
});
